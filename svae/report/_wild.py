"""Points that a tracker put somewhere else: frames before and after, and how often it happens to each."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from svae.data import Preprocess, keypoints
from svae.experiments._figures import ORANGE, bare, new_figure
from svae.report import _motion
from svae.report._bodies import Bodies, on_screen
from svae.report._pose import WIDTH, draw_pose

FRAMES = 20_000  # that are looked at, spread over all recordings
WORST, USUAL = 2, 2  # frames that are shown: the worst, and some in the middle of all
APART = 30  # frames between two that are shown, at least
REACH = 0.85  # body lengths to each side of the middle of a picture
INK = np.array([0.13, 0.4, 0.67])  # of what is kept
PALE = np.full(3, 0.55)  # of what was tracked


class Frame(NamedTuple):
    """A frame with wild points."""

    recording: int
    t: int
    wild: np.ndarray  # (P,) which points


class Wild(NamedTuple):
    """Points that lie too far from the rest of the body."""

    shares: np.ndarray  # (P,) of the frames in which each point is wild
    missing: np.ndarray  # (P,) of those in which the file has none
    frames: list[Frame]  # that show it


def wild(before: Preprocess, found: Bodies) -> Wild | None:
    """None where points have no limits: they are few, or the model is older."""
    if not before.limits:
        return None
    step = max(1, -(-sum(map(len, found.points)) // FRAMES))
    seen, away, places = [], [], []
    for number, xy in enumerate(found.points):
        frames = np.arange(0, len(xy), step)
        seen.append(np.isfinite(xy[frames]).all(-1))
        away.append(_beyond(xy[frames], np.array(before.body)[:, :2], np.array(before.limits)))
        places.append(np.stack([np.full(len(frames), number), frames], 1))
    beyond, where = np.concatenate(away), np.concatenate(places)
    shown = [Frame(int(n), int(t), beyond[i] > 0) for i in _chosen(beyond, where) for n, t in [where[i]]]
    return Wild((beyond > 0).mean(0), 1 - np.concatenate(seen).mean(0), shown)


def _beyond(xy, body, limits):
    """How far each point (T, P) is beyond its limit; 0 where it is not, or not seen."""
    with np.errstate(invalid="ignore"):
        away = np.linalg.norm(keypoints.aligned(xy, body, keypoints.trust(xy, body)) - body, axis=-1)
    return np.maximum(np.nan_to_num(away) - limits, 0)


def _chosen(beyond, where) -> list[int]:
    """Rows of some frames, those with the farthest points and those in the middle; other points first."""
    rows = np.flatnonzero(beyond.max(1) > 0)
    rows = rows[np.argsort(-beyond[rows].max(1), kind="stable")]
    worst = _taken(rows, WORST, [], beyond, where)
    return _taken(np.roll(rows, -len(rows) // 2), WORST + USUAL, worst, beyond, where)


def _taken(rows, number: int, before: list[int], beyond, where) -> list[int]:
    """Frames taken in the order of `rows`, none near another; as long as there are some, each of another point."""
    found = [*before]
    for others in (True, False):
        for i in map(int, rows):
            near = any(where[j][0] == where[i][0] and abs(where[j][1] - where[i][1]) < APART for j in found)
            same = others and any(beyond[j].argmax() == beyond[i].argmax() for j in found)
            if len(found) < number and not near and not same:
                found.append(i)
    return found


def wild_figure(body: Bodies, found: Wild, names: Sequence[str], fps: float | None):
    """Above the frames as they were tracked, below what the model is given; right the share of each point.

    `names` are those of the recordings.
    """
    figure = new_figure(WIDTH, max(4.9, 1.5 + 0.24 * len(found.shares)))
    left, right = figure.subfigures(1, 2, width_ratios=(2.6, 1))
    axes = left.subplots(2, len(found.frames), squeeze=False)
    for column, frame in enumerate(found.frames):
        _frame(axes[:, column], body, frame, names[frame.recording], fps)
    axes[0, 0].set_ylabel("as tracked")
    axes[1, 0].set_ylabel("what is kept")
    _bars(right.subplots(), body, found)
    return figure


def _frame(axes, body: Bodies, frame: Frame, name: str, fps: float | None):
    """One frame before and after, its heading up."""
    n, t = frame.recording, frame.t
    raw, heading = body.points[n][t], body.moved[n].heading[t]
    kept = np.where(frame.wild[:, None], np.nan, raw)
    before, after = (on_screen(body, _motion.turned(xy, heading)) for xy in (raw, kept))
    middle = (np.nanmin(after, 0) + np.nanmax(after, 0)) / 2
    before, after, reach = before - middle, after - middle, REACH * body.unit
    draw_pose(axes[0], body, np.where(frame.wild[:, None], np.nan, before), PALE, 1.2)
    draw_pose(axes[1], body, after, INK, 1.2)
    for p in np.flatnonzero(frame.wild).tolist():
        _strayed(axes[0], body, before, p, frame.wild, reach)
    for one in axes:
        one.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")
        bare(one)
        one.set_facecolor("#f6f7f9")
    clock = f"{t / fps:.1f} s" if fps else f"frame {t}"
    axes[0].set_title(f"{_short(name)}, {clock}", fontsize=9)
    points = ", ".join(body.skeleton.names[p] for p in np.flatnonzero(frame.wild))
    axes[0].set_xlabel(_short(points, 24), fontsize=9, color=ORANGE)


def _strayed(axes, body: Bodies, xy, p: int, wild, reach: float):
    """A wild point as a cross, with its lines to the others; one outside the picture as an arrow at the edge."""
    for a, b in body.skeleton.edges:
        if p in (a, b) and np.isfinite(xy[[a, b]]).all():
            axes.plot(*xy[[a, b]].T, color=ORANGE, lw=1.4, alpha=0.75, zorder=2)
    far = float(np.abs(xy[p]).max())
    if far <= 0.97 * reach:
        axes.plot(*xy[p], "x", color=ORANGE, ms=11, mew=3.2, zorder=8)
        return
    edge, length = xy[p] * (0.98 * reach / far), np.linalg.norm(xy[p]) / body.unit
    arrow = {"arrowstyle": "-|>", "color": ORANGE, "lw": 2.5, "mutation_scale": 18}
    axes.annotate("", edge, edge * 0.72, arrowprops=arrow, zorder=8)
    corner = np.where(edge > 0, -1, 1) * 0.95 * reach  # opposite to the arrow
    axes.text(*corner, f"{length:.1f} body lengths", color=ORANGE, fontsize=8.5, zorder=9,
              ha="left" if corner[0] < 0 else "right", va="bottom" if corner[1] < 0 else "top")  # fmt: skip


def _bars(axes, body: Bodies, found: Wild):
    """For each point the share of frames in which it is wild, and the share in which it is missing."""
    order = np.argsort(-found.shares, kind="stable")
    rows, wild, missing = np.arange(len(order)), 100 * found.shares[order], 100 * found.missing[order]
    axes.barh(rows, wild, color=ORANGE, height=0.62, label="far from the body")
    axes.barh(rows, missing, left=wild, color="#d3d6db", height=0.62, label="missing in the file")
    axes.set_yticks(rows, [_short(body.skeleton.names[p]) for p in order], fontsize=9)
    axes.set(ylim=(len(order) - 0.4, -0.6), xlabel="% of frames")
    axes.tick_params(axis="y", length=0)
    axes.spines[["left"]].set_visible(False)
    axes.figure.legend(loc="outside upper center", fontsize=9, ncols=1)


def _short(words: str, most: int = 16) -> str:
    return words if len(words) <= most else f"{words[: most - 1]}…"


def in_words(found: Wild) -> str:
    """What the figure shows."""
    return (
        f"Points that lie too far from the rest of the body count as missing: {_percent(found.shares.mean())} of all. "
        "Above are frames as they were tracked, each turned so that it heads up: first those with the farthest such "
        "points, then some in the middle of all. Below is what the model is given. A cross is such a point, an arrow "
        "leads to one outside the picture."
    )


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %"
