"""NWB pose estimation (ndx-pose), which is HDF5 with typed groups."""

from pathlib import Path
from typing import Any

import numpy as np

from ..recordings import DataError
from .pieces import Contents, Piece, keypoints, time_base


def pose(file: Any, path: Path) -> Contents | None:
    """One recording per PoseEstimation group: its series are the points."""
    import h5py

    groups = []

    def visit(name, item):
        if isinstance(item, h5py.Group) and _kind(item) == "PoseEstimation":
            groups.append(name)

    file.visititems(visit)
    read = [_animal(file, name, path) for name in groups]
    if not read:
        return None
    names = [name.split("/")[-1] for name in groups]
    pieces = [Piece(n if len(read) > 1 else "", y, times) for n, (y, _, times) in zip(names, read, strict=True)]
    return Contents(pieces, read[0][1])


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
    confidence = np.stack([whole(file, t, path) for t in trusts], 1) if all(t in file for t in trusts) else None
    return (keypoints(np.stack(data, 1), confidence, series), *_time(file, f"{name}/{series[0]}", path))


def _time(file, name, path):
    """(fps, seconds or None) from timestamps, or from a rate."""
    from .hdf5 import whole

    if f"{name}/timestamps" in file:
        return time_base(whole(file, f"{name}/timestamps", path))
    rate = file[f"{name}/starting_time"].attrs.get("rate") if f"{name}/starting_time" in file else None
    return (None if rate is None or not rate > 0 else float(rate)), None
