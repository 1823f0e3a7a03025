"""Which bouts a figure of a state shows."""

import numpy as np

from svae.experiments import _bouts, _strips


def test_bouts_are_maximal_and_cover_every_frame():
    paths = [np.array([0, 0, 1, 1, 1, 0]), np.array([2, 2, 2])]
    found = _bouts.bouts(paths)
    assert [(b.recording, b.state, b.frames) for b in found] == [(0, 0, 2), (0, 1, 3), (0, 0, 1), (1, 2, 3)]
    assert sum(b.frames for b in found) == 9 and _bouts.in_use(paths) == [0, 1, 2]


def test_examples_are_near_the_median_and_have_room():
    lengths = [40, 40]
    every = [_bouts.Stretch(0, 1, a, b) for a, b in ((0, 5), (6, 16), (20, 26), (27, 32))]
    every += [_bouts.Stretch(1, 1, 10, 15)]
    assert _bouts.median(every, 1) == 5
    found = _bouts.typical(every, 1, 3, room=5, lengths=lengths)
    assert [(b.recording, b.first) for b in found] == [(0, 27), (1, 10), (0, 20)]  # (0, 0) has no room before it


def test_strips_hold_every_frame_and_the_square_is_in_the_corner():
    frames = np.arange(6 * 10 * 8, dtype=float).reshape(6, 10, 8)
    row = _strips.beside(frames)
    assert row.shape == (10, 6 * 9 - 1) and np.array_equal(row[:, 9:17], frames[1]) and np.isnan(row[:, 8]).all()
    assert _strips.grid(frames.reshape(2, 3, 10, 8)).shape == (21, 26)
    marked = _strips.marked(frames[0], 1e6)
    changed = np.argwhere(marked != frames[0])
    assert changed.min(0).tolist() == [6, 4] and changed.max(0).tolist() == [8, 6]
