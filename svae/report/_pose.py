"""The figure of a state of a body: its median movement, median poses with their spread, examples, and its course."""

from typing import Any, NamedTuple

import numpy as np

from svae.experiments._figures import bare, new_figure
from svae.report import _motion
from svae.report._bodies import Bodies, course, on_screen
from svae.report._bouts import Stretch, examples
from svae.report._course import draw_course
from svae.report._look import LEFT, RIGHT
from svae.report._material import Material
from svae.report._motion import Course
from svae.report._video import Video, crop

POSES, OVERLAID, EXAMPLES, PATHS = 6, 4, 2, 40  # poses in a strip and in one picture, bouts, paths of bouts
WIDTH = 10.4  # inches
REACH = 0.72  # of a body length that a picture shows to each side of the middle, at least


class Place(NamedTuple):
    """A point that is drawn, and its name."""

    name: str
    axes: Any
    xy: np.ndarray


def _named(axes, found: Bodies, xy: np.ndarray) -> list[Place]:
    return [Place(n, axes, p) for n, p in zip(found.skeleton.names, xy, strict=True) if np.isfinite(p).all()]


def shades(colour: np.ndarray, sides: tuple[str, ...]) -> np.ndarray:
    """(P, 3): the left lighter, the right darker."""
    light, dark = colour + (1 - colour) * LEFT, colour * (1 - RIGHT)
    return np.array([light if s == "left" else dark if s == "right" else colour for s in sides])


def draw_pose(axes, found: Bodies, xy: np.ndarray, colour: np.ndarray, size: float = 1.0, alpha: float = 1.0):
    """Points (P, 2) on the screen with the skeleton; the nose is a ring, the tail a square."""
    from matplotlib.collections import LineCollection

    skeleton, tint = found.skeleton, shades(colour, found.skeleton.sides)
    lines = [xy[[p, q]] for p, q in skeleton.edges if np.isfinite(xy[[p, q]]).all()]
    inks = [(tint[p] + tint[q]) / 2 for p, q in skeleton.edges if np.isfinite(xy[[p, q]]).all()]
    axes.add_collection(LineCollection(lines, colors=inks, lw=2.2 * size, alpha=alpha, capstyle="round", zorder=3))
    inner = [i for i in range(len(xy)) if i not in (skeleton.nose, skeleton.tail)]
    axes.scatter(*xy[inner].T, s=24 * size**2, c=tint[inner], alpha=alpha, lw=0, zorder=4)
    nose, tail = xy[skeleton.nose], xy[skeleton.tail]
    axes.scatter(
        *nose, s=52 * size**2, color="white", edgecolors=[tint[skeleton.nose]], lw=2.2 * size, alpha=alpha, zorder=5
    )
    axes.scatter(*tail, s=30 * size**2, color=[tint[skeleton.tail]], marker="s", lw=0, alpha=alpha, zorder=5)


def body_figure(material: Material, found: Bodies):
    """The reference posture with the names of its points."""
    figure = new_figure(8.2, 3.0)
    axes = figure.subplots()
    xy = on_screen(found, found.body - found.body.mean(0))[:, ::-1] * [1, -1]  # lying, so that names have room
    draw_pose(axes, found, xy, np.array([0.13, 0.4, 0.67]), 1.6)
    for p, name in enumerate(found.skeleton.names):
        x, y = free = _free_side(found.skeleton.edges, xy, p)
        aside = {"ha": "left" if x > 0.4 else "right" if x < -0.4 else "center"}
        aside |= {"va": "bottom" if y > 0.4 else "top" if y < -0.4 else "center"}
        axes.annotate(
            name, xy[p], 10 * free, textcoords="offset points", fontsize=9, zorder=6, color="#333333", **aside
        )
    axes.set(aspect="equal")
    axes.margins(0.2, 0.25)
    bare(axes)
    return figure, _named(axes, found, xy)


def _free_side(edges, xy: np.ndarray, p: int) -> np.ndarray:
    """The direction (2,) from point p into the widest angle between its lines; up or outwards where it has none."""
    ends = [xy[b if a == p else a] - xy[p] for a, b in edges if p in (a, b)]
    if not ends:
        return np.array([0.0, 1.0 if xy[p, 1] >= xy[:, 1].mean() else -1.0])
    angles = np.sort([np.arctan2(y, x) for x, y in ends])
    gaps = np.diff(np.append(angles, angles[0] + 2 * np.pi))
    middle = angles[gaps.argmax()] + gaps.max() / 2
    return np.array([np.cos(middle), np.sin(middle)])


def pose_figure(material: Material, found: Bodies, k: int, video: Video | None):
    """Left the median movement; right the poses, their spread and examples; below the course in numbers."""
    done, colour = course(material, found, k), material.colours[k]
    bouts = _shown(material, k, done)
    rows = 1 + len(bouts) + (video is not None)
    figure = new_figure(WIDTH, 1.55 * rows + 1.75)
    top, bottom = figure.subfigures(2, 1, height_ratios=(1.5 * rows, 1.6))
    grid = top.add_gridspec(rows, 2, width_ratios=(2.9, 7.4))
    places = _movement(top.add_subplot(grid[:, 0]), material, found, done, colour)
    places += _medians(top.add_subplot(grid[0, 1]), material, found, done, colour)
    for i, s in enumerate(bouts):
        _example(top.add_subplot(grid[1 + i, 1]), material, found, s, colour, done.lags[_when(done)], i)
    if video is not None:
        _filmed(top.add_subplot(grid[-1, 1]), material, found, bouts[0], done.lags[_when(done)], video)
    draw_course(bottom.subplots(1, 4), material, found, done, k)
    return figure, places


def _shown(material, k, done) -> list[Stretch]:
    """Examples among the half of the bouts that go most like the median."""
    sizes = [len(p.state) for p in material.posteriors.values()]
    usual = [done.bouts[i] for i in _motion.usual(done.poses)[: max(EXAMPLES, len(done.bouts) // 2)]]
    return examples(usual, k, sizes, EXAMPLES, 0, len(done.lags))


def _when(done: Course, number: int = POSES) -> np.ndarray:
    """Which lags a strip shows: spread over those at which enough bouts go on."""
    known = np.flatnonzero(np.isfinite(_motion.middle(done.poses)[0]).all(-1).sum(-1) >= 2)
    last = known[-1] if len(known) else len(done.lags) - 1
    return np.unique(np.linspace(0, last, number).round().astype(int))


def _median_poses(found, done):
    return on_screen(found, _motion.middle(done.poses)[0])


# --- the median movement ------------------------------------------------------------------------------------------


def _movement(axes, material, found, done: Course, colour):
    """Median poses from the onset (pale) to the end (full) where the animal goes, and the paths of single bouts."""
    poses = _median_poses(found, done)
    paths = on_screen(found, _motion.centre(done.poses)[:, :, 0])  # no wild point moves them
    for path in paths[:: max(1, len(paths) // PATHS)]:
        axes.plot(*path.T, color="#c3c8cf", lw=0.8, alpha=0.8, zorder=1)
    shown = [j for j in _when(done, OVERLAID) if np.isfinite(poses[j]).any()]
    for i, j in enumerate(shown):
        part = (i + 1) / len(shown)
        draw_pose(
            axes, found, poses[j], 1 - (1 - colour) * (0.25 + 0.75 * part), 0.75 + 0.25 * part, 0.35 + 0.65 * part**2
        )
    if shown:
        _limits(axes, np.concatenate([poses[j] for j in shown]), found.unit)
    _scale(axes, found)
    bare(axes)
    axes.set_title(f"median of {len(done.poses)} bouts, onset pale", fontsize=10)
    return _named(axes, found, poses[shown[-1]]) if shown else []


def _limits(axes, xy, unit):
    low, high = np.nanmin(xy, 0), np.nanmax(xy, 0)
    half = max(float((high - low).max()) / 2 + 0.18 * unit, REACH * unit)
    x, y = (low + high) / 2
    axes.set(xlim=(x - half, x + half), ylim=(y - 1.25 * half, y + 1.25 * half), aspect="equal")


def _scale(axes, found):
    """A bar of one body length."""
    (left, _), (low, _) = axes.get_xlim(), axes.get_ylim()
    height = np.diff(axes.get_ylim())[0]
    x, y = left + 0.04 * height, low + 0.07 * height
    axes.plot([x, x + found.unit], [y, y], color="#444444", lw=2, solid_capstyle="butt", zorder=7)
    axes.text(x, y - 0.015 * height, "one body length", fontsize=8, va="top", color="#444444", zorder=7)


# --- strips -------------------------------------------------------------------------------------------------------


def _row(axes, found, poses, colour, spread=None):
    """Pictures side by side, each around the middle of its pose, at one scale."""
    reach = max(REACH * found.unit, 0.95 * float(np.abs(found.body - found.body.mean(0)).max()))
    places: list[Place] = []
    for i, xy in enumerate(poses):
        if not np.isfinite(xy).any():
            continue
        move = np.array([2 * reach * i, 0.0]) - _box(xy)
        if spread is not None:
            _clouds(axes, xy + move, spread[i], colour)
        draw_pose(axes, found, xy + move, colour)
        places += _named(axes, found, xy + move)
    for i in range(1, POSES):
        axes.axvline(2 * reach * (i - 0.5), color="#eceef1", lw=1, zorder=0)
    axes.set(xlim=(-reach, (2 * POSES - 1) * reach), ylim=(-reach, reach), aspect="equal")
    bare(axes)
    return 2 * reach, places


def _box(xy):
    """The middle of a pose."""
    return (np.nanmin(xy, 0) + np.nanmax(xy, 0)) / 2


def _clouds(axes, xy, spread, colour):
    """An ellipse for each point that holds the middle half of the bouts to each side."""
    from matplotlib.collections import EllipseCollection

    known = np.isfinite(xy).all(-1) & np.isfinite(spread).all(-1)
    wide, high = spread[known].T
    axes.add_collection(
        EllipseCollection(
            wide,
            high,
            np.zeros(known.sum()),
            units="xy",
            offsets=xy[known],
            transOffset=axes.transData,
            facecolors=[(*colour, 0.16)],
            lw=0,
            zorder=2,
        )
    )


def _medians(axes, material, found, done, colour):
    when = _when(done)
    poses = _median_poses(found, done)[when]
    low, high = (on_screen(found, part)[when] for part in _motion.middle(done.poses - _motion.centre(done.poses))[1:])
    step, places = _row(axes, found, poses, colour, np.abs(high - low))
    axes.set_xticks(np.arange(len(when)) * step, [_time(material, done.lags[j]) for j in when], fontsize=8)
    axes.tick_params(axis="x", length=0, pad=1)
    axes.set_ylabel("median", fontsize=9)
    axes.set_title(
        f"{'milliseconds' if material.fps else 'frames'} from the onset; heading at the onset is up", fontsize=10
    )
    return places


def _time(material, lag):
    return f"{1000 * lag / material.fps:.0f}" if material.fps else f"{lag:.0f}"


def _example(axes, material, found, s, colour, lags, number):
    """Single frames of a bout, turned as its first frame is; grey once the state has ended."""
    start = found.moved[s.recording]
    xy, first = found.points[s.recording], s.first
    frames = np.minimum(first + lags, len(xy) - 1)
    poses = on_screen(found, _motion.turned(xy[frames] - start.place[first], start.heading[first]))
    step, _ = _row(
        axes, found, [p if t < s.last else np.full_like(p, np.nan) for p, t in zip(poses, frames, strict=True)], colour
    )
    after = [i for i, t in enumerate(frames) if t >= s.last]
    for i in (i for i in after if np.isfinite(poses[i]).any()):
        draw_pose(axes, found, poses[i] + [step * i, 0] - _box(poses[i]), np.full(3, 0.72), 0.8)
    axes.set_ylabel(f"example {number + 1}", fontsize=9)


def _filmed(axes, material, found, s, lags, video: Video):
    """The same frames of the first example in the video."""
    pictures = [crop(video, found, s, int(t)) for t in s.first + lags]
    axes.imshow(np.concatenate(pictures, 1), cmap="gray", vmin=0, vmax=255)
    for i in range(1, len(pictures)):
        axes.axvline(i * pictures[0].shape[1] - 0.5, color="white", lw=2)
    bare(axes)
    axes.set_ylabel("video of\nexample 1", fontsize=9)
