"""NWB pose estimation (ndx-pose), which is HDF5 with typed groups."""

from pathlib import Path
from typing import Any

import numpy as np

from ..recordings import DataError
from .pieces import Clock, Contents, Note, Piece, doubted, joined, keypoints, text, time_base


def pose(file: Any, path: Path) -> Contents | None:
    """One recording per PoseEstimation group: its series are the points."""
    import h5py

    groups = []

    def visit(name, item):
        if isinstance(item, h5py.Group) and _kind(item) == "PoseEstimation":
            groups.append(name)

    file.visititems(visit)
    if not groups:
        return None
    names = [name.split("/")[-1] if len(groups) > 1 else "" for name in groups]
    read = [_animal(file, name, path) for name in groups]
    pieces = [Piece(n, y, clock.times, clock.fps) for n, (y, clock, _) in zip(names, read, strict=True)]
    for piece, name in zip(pieces, groups, strict=True):
        joined([piece], _edges(file, name, piece.y.points, path))
    return Contents(
        pieces, None, list(dict.fromkeys(note for _, clock, notes in read for note in (*notes, *clock.notes)))
    )


def _kind(item):
    kind = item.attrs.get("neurodata_type", "")
    return kind.decode() if isinstance(kind, bytes) else str(kind)


def _animal(file, name, path):
    from .hdf5 import whole

    series = [key for key, item in file[name].items() if _kind(item) == "PoseEstimationSeries" and "data" in item]
    if not series:
        raise DataError(f"{name} of {path.name} holds no series of points; give another file.")
    data = [whole(file, f"{name}/{key}/data", path) for key in series]
    if len({d.shape for d in data}) != 1 or data[0].ndim != 2:
        raise DataError(f"{name} of {path.name} has points of different lengths; give another file.")
    trusts = [f"{name}/{key}/confidence" for key in series]
    known = [whole(file, t, path) if t in file else np.ones(len(data[0])) for t in trusts]
    confidence = np.stack(known, 1) if any(t in file for t in trusts) else None
    units = {text(file[f"{name}/{key}/data"].attrs.get("unit", "")) for key in series}
    scale = {float(file[f"{name}/{key}/data"].attrs.get("conversion", 1.0)) for key in series}
    if len(units) > 1 or len(scale) > 1:
        raise DataError(f"{name} of {path.name} has points of several units ({', '.join(sorted(units))}); use one.")
    xy = np.stack(data, 1) * scale.pop()
    clocks = [_time(file, f"{name}/{key}", path) for key in series]
    apart = any((c.fps, c.times is None) != (clocks[0].fps, clocks[0].times is None) for c in clocks)
    said = [Note("its points have times of their own; those of the first are used")] if apart else []
    return keypoints(xy, confidence, series, units.pop()), clocks[0], [*said, *doubted(xy, confidence)]


def _edges(file, name, points, path):
    """Pairs of series from `nodes` and `edges`, which are beside the series or in the skeleton that they name."""
    from .hdf5 import plain, whole

    for home in (name, f"{name}/skeleton"):
        if f"{home}/nodes" in file and f"{home}/edges" in file and plain(file[f"{home}/edges"]):
            nodes = [n.decode() if isinstance(n, bytes) else str(n) for n in whole(file, f"{home}/nodes", path)]
            edges = whole(file, f"{home}/edges", path)
            if edges.ndim != 2 or edges.shape[1] != 2 or (edges.size and int(edges.max()) >= len(nodes)):
                return []
            place = {_plain(point): i for i, point in enumerate(points)}
            found = [_plain(node) for node in nodes]
            return [(place.get(found[int(p)], -1), place.get(found[int(q)], -1)) for p, q in edges]
    return []


def _plain(name):
    """A name of a series or a node: they differ by capitals and by marks between words."""
    return "".join(c for c in name.lower() if c.isalnum())


def _time(file, name, path) -> Clock:
    """From timestamps, or from a rate."""
    from .hdf5 import whole

    if f"{name}/timestamps" in file:
        return time_base(whole(file, f"{name}/timestamps", path))
    rate = file[f"{name}/starting_time"].attrs.get("rate") if f"{name}/starting_time" in file else None
    return Clock() if rate is None or not rate > 0 else Clock(float(rate))
