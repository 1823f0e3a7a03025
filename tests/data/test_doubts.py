"""What is odd in data is said in a sentence, and clean data leave nothing to say."""

import numpy as np
import pytest

import svae
from benchmarks import messy_folders
from svae import data
from svae.data import doubts
from svae.data.sides import sides


def test_a_hundred_messy_folders_change_no_meaning_in_silence():
    counts, failures = messy_folders.run(100, seed=0)
    assert failures == [] and sum(counts.values()) == 100 and set(counts) == {"right", "said", "refused"}


@pytest.mark.parametrize("mess", messy_folders.MESS, ids=lambda mess: mess.__name__)
def test_each_mess_alone_is_right_said_or_refused(mess):
    _, how = messy_folders.outcome(0, 0, mess)
    assert how in ("right", "said", "refused")


def mice(number=3, T=200):
    rng = np.random.default_rng(0)
    return [messy_folders.recording(f"m{i}", rng, T).xy for i in range(number)]


def loaded(arrays, fps=30):
    views = [data.views.Floats(np.asarray(y, float), kind="keypoints", points=messy_folders.POINTS) for y in arrays]
    return svae.load({f"m{i}": view for i, view in enumerate(views)}, fps=fps)


def test_clean_recordings_leave_nothing_to_say():
    assert doubts(loaded(mice())) == []


@pytest.mark.parametrize("scale", [0.1, 0.4, 2.5])
def test_another_unit_in_one_recording(scale):
    arrays = mice()
    arrays[1] = arrays[1] * scale
    (said,) = doubts(loaded(arrays))
    assert said.startswith("m1: its body is") and said.endswith("is it in another unit?")


def test_left_and_right_swapped_for_a_stretch():
    (xy,) = mice(1)
    xy[60:100, [1, 2]] = xy[60:100, [2, 1]]
    xy[150:153, [1, 2]] = xy[150:153, [2, 1]]  # too short to be told
    (said,) = doubts(loaded([xy]))
    assert said.startswith(
        "m0: left_ear and right_ear are swapped in 1 stretches, 20 % of the frames, first at frame 60"
    )


def test_points_of_two_sides_by_many_names():
    assert sides(("nose", "left_ear", "right_ear", "earL", "earR", "l hip", "r hip", "tail")) == [
        (1, 2),
        (3, 4),
        (5, 6),
    ]
    assert sides(("leftPaw", "rightPaw", "lever", "roof")) == [(0, 1)]


ODD = {
    "an animal that does not move": (lambda a: [a[0], a[1] * 0 + a[1][:1]], "m1: it does not move"),
    "a tracker that stands still": (lambda a: [np.repeat(a[0][:100], 2, 0)], "m0: 50 % of its frames are the same"),
    "one frame": (lambda a: [a[0], a[1][:1]], "m1: one frame"),
    "a copy": (lambda a: [a[0], a[0]], "m1 and m0 are the same"),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_recordings(name):
    change, said = ODD[name]
    assert [sentence for sentence in doubts(loaded(change(mice()))) if sentence.startswith(said)]


def test_odd_times_and_rates():
    y = loaded(mice(1))
    time = np.arange(200) / 30
    assert doubts(y._replace(times=(time,))) == []
    time[50] = time[49]
    assert doubts(y._replace(times=(time,)))[0] == "m0: its times repeat, go back or are missing 1 times, first at 50."
    assert "slow for keypoints" in doubts(loaded(mice(1), fps=0.03))[0]


def test_a_table_that_lies_on_its_side():
    assert "more columns than frames" in doubts(svae.load(np.random.default_rng(0).normal(size=(3, 500))))[0]


def test_columns_in_another_unit():
    y = np.random.default_rng(0).normal(size=(100, 4))
    assert (
        "m2: its values are 0.001 times as spread out"
        in doubts(svae.load({"m0": y, "m1": -y, "m2": y[::-1] / 1000}))[0]
    )


def test_marks_of_missing_points_and_cells_are_told_from_measurements():
    for mark in (0.0, -1.0, 999.0):
        arrays = mice(2)
        arrays[1][::20, 2] = mark
        (said,) = doubts(loaded(arrays))
        assert said == f"m1: points lie at exactly ({mark:g}, {mark:g}) again and again; {EMPTY}"
    rng = np.random.default_rng(0)
    y = rng.normal(size=(300, 3))
    y[::20, 1] = -999
    assert doubts(svae.load(y))[0] == f"recording 0: -999 stands far from all other numbers; {EMPTY}"
    codes = np.concatenate([rng.normal(size=(300, 2)), rng.choice([-1, 0, 1], (300, 1))], 1)
    assert doubts(svae.load(codes)) == []


EMPTY = "if that means missing, leave these cells empty."


@pytest.mark.parametrize("odd", [[1], [0], [0, 2]])
def test_a_mirrored_body(odd):
    arrays = mice(5)
    for i in odd:
        arrays[i][..., 1] = 480 - arrays[i][..., 1]
    (said,) = doubts(loaded(arrays))
    assert said.startswith(f"{', '.join(f'm{i}' for i in odd)}: the body is a mirror image")


def test_a_column_that_counts():
    y = np.random.default_rng(0).normal(size=(100, 3))
    y[:, 1] = np.round(np.arange(100) / 30, 4)
    (said,) = doubts(svae.load({"a": y, "b": y * [2, 1, 2]}))
    assert said.startswith("Column 1 goes up by the same step at each frame")
    y[50, 1] = 0
    assert doubts(svae.load(y)) == []


def test_animals_that_change_places():
    one, other = mice(2)
    other = other + 150
    one[60:], other[60:] = other[60:].copy(), one[60:].copy()
    (said,) = doubts(loaded([one, other]))
    assert said == "m0 and m1 change places 1 times, first at frame 60; swap them back."
    one[55:66], other[50:66] = np.nan, np.nan  # where neither is seen
    (said,) = doubts(loaded([one, other]))
    assert said.startswith("m0 and m1 change places 1 times")


def test_frames_of_views_by_number_are_those_of_slices():
    rng = np.random.default_rng(0)
    y = data.views.Floats(rng.normal(size=(50, 4, 2)), points=("a", "b", "c", "d"))
    seen = data.views.Mapped(data.views.Picked(data.cut(y, 5, 45), [2, 0], ("c", "a")), lambda f: 2 * f, (2, 2))
    found = data.sample_frames(svae.data.Recordings((seen,), ("r",), None), 10, seed=1)
    frames = np.random.default_rng(1).permutation(40)[:10]
    np.testing.assert_array_equal(found, seen[:][frames])


def test_frames_by_number_of_a_view_that_looks_around_are_those_of_slices():
    y = data.views.Floats(np.random.default_rng(0).normal(size=(40, 3)))
    steps = data.views.Mapped(y, lambda f: np.gradient(f, axis=0), (3,), reach=1)
    found = data.sample_frames(svae.data.Recordings((steps,), ("r",), None), 10, seed=1)
    np.testing.assert_array_equal(found, steps[:][np.random.default_rng(1).permutation(40)[:10]])
