"""Views read what they are asked for and nothing else, and give what arrays give."""

import numpy as np
import pytest

from svae import data
from svae.data import views


class Counted:
    """An array that remembers which frames were read."""

    def __init__(self, array):
        self.array, self.shape, self.dtype, self.read = array, array.shape, array.dtype, []

    def __getitem__(self, frames):
        self.read.append((frames.start, frames.stop))
        return self.array[frames]


def lazy(lengths=(70, 31, 5), event=(3,), seed=0):
    rng = np.random.default_rng(seed)
    arrays = [rng.normal(size=(T, *event)).astype(np.float32) for T in lengths]
    sources = [Counted(a) for a in arrays]
    names = tuple(f"mouse {i}" for i in range(len(lengths)))
    return arrays, sources, data.Recordings(tuple(map(views.Floats, sources)), names, 30.0)


def test_slices_of_views_are_slices_of_arrays():
    (y, *_), _, records = lazy()
    view = records.sequences[0]
    for a, b in [(0, 70), (3, 9), (60, 999), (9, 3), (-4, None), (None, None)]:
        np.testing.assert_array_equal(view[a:b], y[a:b])
        np.testing.assert_array_equal(data.cut(view, 10, 50)[a:b], y[10:50][a:b])
    twice = views.Mapped(view, lambda frames: 2 * frames[:, :2], (2,))
    np.testing.assert_array_equal(np.asarray(data.cut(twice, 5, 9)), 2 * y[5:9, :2])
    assert view.shape == (70, 3) and view.ndim == 2 and view.size == 210 and len(data.cut(twice, 5, 9)) == 4


def test_views_are_read_by_slices_only():
    view = lazy()[2].sequences[0]
    for frames in (3, slice(0, 9, 2), (slice(0, 3), 0)):
        with pytest.raises(TypeError, match="slices of frames"):
            view[frames]


def test_split_windows_and_batches_of_views_equal_those_of_arrays_and_read_only_their_frames():
    arrays, sources, records = lazy()
    held = data.Recordings(tuple(arrays), records.names, 30.0)
    for two in (records._replace(sequences=records.sequences[:2], names=records.names[:2]), records):
        plain = held._replace(sequences=held.sequences[: len(two.names)], names=two.names)
        for a, b in zip(data.split(two, 0.3, 1), data.split(plain, 0.3, 1), strict=True):
            assert a.names == b.names
            assert all(np.array_equal(x[:], y) for x, y in zip(a.sequences, b.sequences, strict=True))
    table = data.windows(records, 10, 2)
    pairs = zip(*(data.batch(given, table, np.arange(4)) for given in (records, held)), strict=True)
    assert all(np.array_equal(a, b) for a, b in pairs)
    sources[0].read.clear()
    data.batch(records, table, np.array([2]))
    assert sources[0].read == [(18, 32)]


def test_checks_moments_and_units_of_views_equal_those_of_arrays(monkeypatch):
    monkeypatch.setattr(views, "BLOCK_NUMBERS", 30)
    arrays, _, records = lazy(event=(4, 2))
    arrays[1][3, 1] = np.nan
    held = data.Recordings(tuple(arrays), records.names)
    assert data.check(records) == data.check(held) == []
    rows = np.concatenate(arrays).astype(float)
    for given in (records, held):
        entries, globally = data.standardize_entries(given), data.standardize_globally(given)
        np.testing.assert_allclose(entries.mean, np.nanmean(rows, 0), rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(entries.scale, np.nanstd(rows, 0), rtol=1e-12)
        np.testing.assert_allclose([globally.mean, globally.scale], [np.nanmean(rows), np.nanstd(rows)], rtol=1e-9)
    by = data.standardize_entries(held)
    for a, b in zip(data.standardized(records, by).sequences, data.standardized(held, by).sequences, strict=True):
        assert isinstance(a, data.View) and a.dtype == np.float32
        np.testing.assert_array_equal(a[:], b)


def blockwise(y, block):
    return [data.moments(data.recordings([y[i : i + block] for i in range(0, len(y), block)]))]


@pytest.mark.parametrize("offset", [0.0, 1e8, -1e10])
def test_moments_do_not_depend_on_the_blocks_even_far_from_zero(offset):
    y = np.random.default_rng(0).normal(size=(997, 3)) + offset
    for block in (1, 10, 997):
        found = blockwise(y, block)[0]
        np.testing.assert_allclose(found.mean, y.mean(0), rtol=1e-14, atol=1e-14)
        np.testing.assert_allclose(found.sd(), y.std(0), rtol=1e-5)


def test_a_constant_stays_constant_over_many_blocks():
    found = blockwise(np.full((1000, 2), 0.1), 7)[0]
    assert (found.sd() == 0).all()


def test_an_infinity_is_found_at_its_own_frame(monkeypatch):
    monkeypatch.setattr(views, "BLOCK_NUMBERS", 30)
    arrays, _, records = lazy()
    arrays[0][57, 2] = np.inf
    with pytest.raises(data.DataError, match=r"mouse 0 is infinite in column 2 at frame 57"):
        data.check(records)


def test_a_value_that_a_likelihood_cannot_have_is_named():
    counts = data.recordings({"mouse": np.array([[0.0, 3.0], [np.nan, 1.0], [2.0, -1.0]])})
    data.check_range(counts, -1.0, 3.0, "likelihood=poisson")
    with pytest.raises(
        data.DataError, match="mouse is -1 in column 1 at frame 2; likelihood=poisson needs values of 0 or"
    ):
        data.check_range(counts, 0.0, np.inf, "likelihood=poisson")
    with pytest.raises(data.DataError, match="mouse is 3 in column 1 at frame 0; it needs values from -1 to 1"):
        data.check_range(counts, -1.0, 1.0, "it")


def test_sampled_frames_are_those_of_the_concatenation_and_only_they_are_read():
    arrays, sources, records = lazy((500, 300))
    chosen = np.random.default_rng(3).permutation(800)[:20]
    np.testing.assert_array_equal(data.sample_frames(records, 20, 3), np.concatenate(arrays)[chosen])
    assert sum(b - a for source in sources for a, b in source.read) == 20
    in_blocks = records._replace(sequences=tuple(views.Floats(s, block=16) for s in sources))
    np.testing.assert_array_equal(data.sample_frames(in_blocks, 20, 3), np.concatenate(arrays)[chosen])
    assert data.sample_frames(records, 9999, 0).shape == (800, 3)


def test_small_views_settle_in_memory_and_large_ones_do_not(monkeypatch):
    arrays, _, records = lazy()
    settled = data.settled(records)
    assert all(
        isinstance(y, np.ndarray) and np.array_equal(y, a) for y, a in zip(settled.sequences, arrays, strict=True)
    )
    monkeypatch.setattr(views, "KEPT_BYTES", 100)
    assert data.settled(records) is records


def test_seconds_come_from_times_then_from_the_rate_then_from_the_frame_number():
    y = np.zeros((4, 1))
    known = data.Recordings((y, y), ("a", "b"), 2.0, (None, np.array([0, 1, 5, 6.0])))
    assert data.seconds(known, 0).tolist() == [0, 0.5, 1, 1.5] and data.seconds(known, 1).tolist() == [0, 1, 5, 6]
    assert data.seconds(data.recordings(y), 0).tolist() == [0, 1, 2, 3]
    test = data.split(known, 0.5, 0).test
    assert data.seconds(test, 1).tolist() == [5, 6]


NASTY = [
    "../../etc/passwd",
    "a/b",
    "a\\b",
    "..",
    "",
    "a\0b",
    "CON:1",
    "x" * 400,
    "ü" * 300,
    "a",
    "A",
    "a",
    " .hidden",
    "b\nc",
]


def test_safe_names_are_unique_file_stems(tmp_path):
    names = data.safe_names(NASTY)
    assert len({n.casefold() for n in names}) == len(NASTY)
    for name in names:
        (tmp_path / f"{name}.nc").write_text("")
    assert len(list(tmp_path.iterdir())) == len(NASTY)
    assert data.safe_names(["Maus 3 (früh)", "日本"]) == ("Maus 3 (früh)", "日本")
