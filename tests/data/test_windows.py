"""Theorems about windows, batches, splits, checks and standardisation."""

import numpy as np
import pytest

from svae import data

LENGTHS = (1, 2, 7, 20, 53)


def ragged(lengths=LENGTHS, event=(3,), seed=0):
    rng = np.random.default_rng(seed)
    return data.recordings(
        {f"mouse {i}": rng.normal(size=(T, *event)).astype(np.float32) for i, T in enumerate(lengths)}
    )


@pytest.mark.parametrize("length", [1, 5, 20, 100])
@pytest.mark.parametrize("overlap", [1, 4, 30])
def test_every_frame_is_counted_exactly_once(length, overlap):
    records = ragged()
    table = data.windows(records, length, overlap)
    everything = data.batch(records, table, np.arange(len(table.first)))
    counts = [np.zeros(T, int) for T in LENGTHS]
    for row, counted in enumerate(everything.counted):
        np.add.at(counts[table.recording[row]], table.first[row] + np.flatnonzero(counted), 1)
    assert all((c == 1).all() for c in counts)
    total = sum(y.sum(dtype=np.float64) for y in records.sequences)
    np.testing.assert_allclose((everything.y * everything.counted[..., None]).sum(dtype=np.float64), total, rtol=1e-5)


@pytest.mark.parametrize("overlap", [1, 4, 30])
def test_context_is_as_long_as_the_recording_allows(overlap):
    table = data.windows(ragged(), 5, overlap)
    T = np.array(LENGTHS)[table.recording]
    assert (table.core_first - table.first == np.minimum(overlap, table.core_first)).all()
    assert (table.last - table.core_last == np.minimum(overlap, T - table.core_last)).all()


def test_first_windows_start_truly_and_all_others_have_a_lead_in():
    records = ragged()
    table = data.windows(records, 5, 2)
    first = np.unique(table.recording, return_index=True)[1]
    assert (table.first[first] == 0).all() and (table.core_first[first] == 0).all()
    start = data.batch(records, table, np.arange(len(table.first))).start
    assert (table.core_first[~start] - table.first[~start] >= 1).all()


def test_batches_hold_the_data_and_zero_padding_at_the_end_only():
    records = ragged(event=(4, 2))
    table = data.windows(records, 6, 2)
    rows = np.array([3, 0, len(table.first) - 1])
    b = data.batch(records, table, rows)
    assert b.y.shape == (3, table.length, 4, 2) and b.y.dtype == np.float32
    assert b.y.ctypes.data % 64 == 0 and b.y.flags.c_contiguous  # a program reads it where it lies
    for i, row in enumerate(rows):
        piece = records.sequences[table.recording[row]][table.first[row] : table.last[row]]
        np.testing.assert_array_equal(b.y[i, : len(piece)], piece)
        assert b.mask[i].sum() == len(piece) and b.mask[i, : len(piece)].all()
        assert (b.y[i, len(piece) :] == 0).all()
    assert (b.counted <= b.mask).all()


def test_short_recordings_need_no_overlap_and_long_ones_do():
    assert len(data.windows(ragged((3, 5)), 5, 0).first) == 2
    with pytest.raises(data.DataError, match="at least 1 frame before"):
        data.windows(ragged((3, 6)), 5, 0)


def test_epoch_order_is_a_partial_permutation_that_resumes():
    order = data.epoch_order(23, 5, seed=3, epoch=7)
    assert order.shape == (4, 5) and len(np.unique(order)) == 20 and set(order.ravel()) <= set(range(23))
    np.testing.assert_array_equal(order, data.epoch_order(23, 5, seed=3, epoch=7))
    assert not np.array_equal(order, data.epoch_order(23, 5, seed=3, epoch=8))
    assert not np.array_equal(order, data.epoch_order(23, 5, seed=4, epoch=7))
    assert sorted(data.epoch_order(3, 8, seed=0, epoch=0).ravel()) == [0, 1, 2]


def test_no_window_is_left_out_for_ever():
    seen = {row for epoch in range(40) for row in data.epoch_order(7, 4, seed=0, epoch=epoch).ravel()}
    assert seen == set(range(7))


def test_split_holds_out_whole_recordings():
    records = ragged((5,) * 10)
    a, b = data.split(records, 0.2, seed=1), data.split(records, 0.2, seed=1)
    assert len(a.test.names) == 2 and sorted(a.train.names + a.test.names) == sorted(records.names)
    assert a.test.names == b.test.names
    assert any(data.split(records, 0.2, seed=s).test.names != a.test.names for s in range(2, 6))


@pytest.mark.parametrize("fraction", [0.01, 0.3, 0.99])
def test_split_of_few_recordings_holds_out_their_ends(fraction):
    records = ragged((40, 2))
    train, test = data.split(records, fraction, seed=0)
    for y, a, b in zip(records.sequences, train.sequences, test.sequences, strict=True):
        np.testing.assert_array_equal(np.concatenate([a, b]), y)
        assert len(a) >= 1 and len(b) >= 1


def test_a_recording_that_is_far_more_than_was_asked_for_is_not_held_out_whole():
    train, test = data.split(ragged((50, 60, 70)), 0.1, seed=0)
    assert [len(y) for y in test.sequences] == [5, 6, 7] and train.frames == 162
    assert [len(y) for y in data.split(ragged((50, 60, 70)), 0.3, seed=0).test.sequences] in ([50], [60], [70])
    assert len(data.split(ragged((9, 60, 70)), 0.1, seed=0).test.names) == 1


def test_recordings_accept_an_array_a_list_and_a_dict():
    y = np.arange(6).reshape(3, 2).astype(np.int8)
    for given in (y, [y], {"recording 0": y}, data.recordings(y)):
        records = data.recordings(given)
        assert records.names == ("recording 0",) and records.sequences[0].dtype == np.float32 and records.frames == 3


def poisoned(frame, column, value):
    y = np.random.default_rng(0).normal(size=(9, 4))
    y[frame, column] = value
    return y


HOPELESS = {
    "inf": (poisoned(5, 2, np.inf), r"recording 0 .* column 2 at frame 5; replace"),
    "minus inf": (poisoned(0, 3, -np.inf), r"column 3 at frame 0"),
    "nothing": ([], "no recordings; give"),
    "constant": (np.full((5, 3), 7.0), "is 7; check their source"),
    "unseen": (np.full((5, 3), np.nan), "no finite value"),
    "objects": (np.array([["a", 1], [None, 2]], dtype=object), "object values, not numbers"),
    "complex": (np.ones((3, 2), complex), "complex128 values"),
    "words": (np.array([["a", "b"]]), "not numbers"),
    "flat": (np.arange(5.0), r"y\[:, None\]"),
    "no frames": ({"empty": np.zeros((0, 3))}, "empty has 0 frames; leave it out"),
    "no columns": (np.zeros((3, 0)), "no columns"),
    "unlike": ([np.eye(3), np.eye(4)], r"recording 1 has frames of shape \(4,\) but recording 0 of \(3,\)"),
}


@pytest.mark.parametrize("name", HOPELESS)
def test_hopeless_data_get_one_sentence(name):
    given, sentence = HOPELESS[name]
    with pytest.raises(data.DataError, match=sentence) as caught:
        data.check(data.recordings(given))
    assert "\n" not in str(caught.value) and str(caught.value).endswith(".")


def test_good_data_pass_without_a_word_and_odd_data_with_one():
    y = np.random.default_rng(0).normal(size=(50, 4))
    y[3], y[4, 1] = np.nan, np.nan  # missing entries are no fault
    assert data.check(data.recordings(y)) == []
    odd = y * [1, 0, 1, 1e12] + [0, 5, 1e8, 0]
    said = " ".join(data.check(data.recordings(odd)))
    assert (
        "Column 1 is constant" in said
        and "Column 2 is so far from 0" in said
        and "columns 2, 3 is of extreme scale" in said
    )


def hostile():
    y = np.random.default_rng(1).normal(size=(200, 3))
    return {
        "scale 1e12": y * 1e12,
        "scale 1e-12": y * 1e-12,
        "offset 1e8": y + 1e8,
        "constant column": y * [1, 0, 1] + [0, 0.1, 0],
        "int8": np.random.default_rng(2).integers(-128, 128, (200, 3)).astype(np.int8),
        "missing": np.where(np.random.default_rng(3).random((200, 3)) < 0.3, np.nan, y),
        "unseen column": np.concatenate([y, np.full((200, 1), np.nan)], -1),
        "one frame": y[:1],
    }


@pytest.mark.parametrize("name", hostile())
@pytest.mark.parametrize("standardize", [data.standardize_entries, data.standardize_globally])
def test_hostile_data_become_well_scaled_and_come_back(name, standardize):
    y = hostile()[name]
    records = data.recordings(y)
    data.check(records)
    by = standardize(records)
    z = data.standardized(records, by).sequences[0]
    assert z.dtype == np.float32 and (np.isnan(z) == np.isnan(y)).all() and (by.scale > 0).all()
    assert np.nanmax(np.abs(z)) < 20
    spread = float(np.nanmax(y)) - float(np.nanmin(y))
    np.testing.assert_allclose(by.invert(z), y, rtol=1e-15, atol=1e-6 * spread)


def test_standardised_entries_have_mean_zero_and_variance_one():
    records = data.recordings([hostile()["offset 1e8"][:80], hostile()["offset 1e8"][80:]])
    z = np.concatenate(data.standardized(records, data.standardize_entries(records)).sequences).astype(np.float64)
    np.testing.assert_allclose(z.mean(0), 0, atol=1e-6)
    np.testing.assert_allclose(z.var(0), 1, atol=1e-5)
