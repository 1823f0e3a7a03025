"""Keypoints as DeepLabCut, SLEAP and JABS keep them in HDF5."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np

from ..recordings import DataError
from .pieces import Contents, Piece, keypoints, numbers_in, require_in_memory

TOKEN = re.compile(rb"V([^\n]*)\np(\d+)\n|g(\d+)\n")
SHORTEST = 10  # frames of a track that is worth keeping


def points_by_animal(columns: list[tuple[str, ...]], values: np.ndarray, what: str) -> Contents:
    """Columns (scorer, [animal,] point, coordinate) of a table (T, columns) as one recording per animal."""
    table = {(*column[1:-2], "", column[-2], column[-1])[-3:]: i for i, column in enumerate(columns)}
    pieces = []
    animals = list(dict.fromkeys(key[0] for key in table))
    for animal in animals:
        points = list(dict.fromkeys(key[1] for key in table if key[0] == animal))
        axes = [axis for axis in "xyz" if all((animal, point, axis) in table for point in points)]
        if len(axes) < 2:
            raise DataError(f"{what} has points without x and y; it is no table of keypoints.")
        xy = np.stack([values[:, [table[animal, point, axis] for point in points]] for axis in axes], -1)
        trust = [table.get((animal, point, "likelihood")) for point in points]
        confidence = None if None in trust else values[:, trust]
        pieces.append(Piece(animal if len(animals) > 1 else "", keypoints(xy, confidence, points)))
    return Contents(pieces)


def pandas_table(file: Any, path: Path) -> Contents | None:
    """DeepLabCut's h5: a pandas table, in either of its two layouts, without pandas or PyTables."""
    from .hdf5 import whole

    for name, group in file.items():
        if f"{name}/table" in file and b"values_block_0_kind" in _keys(file[f"{name}/table"]):
            table = file[f"{name}/table"]
            _require_table(table, path)
            columns = _columns(bytes(table.attrs["values_block_0_kind"]), table.dtype["values_block_0"].shape[0], path)
            return points_by_animal(columns, table["values_block_0"], path.name)
        if f"{name}/block0_values" in file and f"{name}/block0_items_level1" in file:
            levels = [_level(file, name, i, path) for i in range(int(group.attrs.get("axis0_nlevels", 3)))]
            values = whole(file, f"{name}/block0_values", path)
            return points_by_animal(list(zip(*levels, strict=True)), values, path.name)
    return None


def _keys(item):
    return {key.encode() for key in item.attrs}


def _require_table(table, path):
    from .hdf5 import require_plausible

    if table.dtype.names is None or "values_block_0" not in table.dtype.names or table.dtype.hasobject:
        raise DataError(f"{path.name} is a pandas table whose columns are not numbers; save it as csv.")
    require_plausible(table, path)
    require_in_memory(path.name, numbers_in(table.shape) * table.dtype.itemsize)


def _columns(text, number, path):
    """Names of columns from the text in which pandas wrote them: only its strings are looked at, nothing is run."""
    seen, words = {}, []
    for match in TOKEN.finditer(text):
        if match[1] is not None:
            seen[match[2]] = match[1].decode("unicode_escape" if b"\\u" in match[1] else "utf-8")
        words.append(seen[match[2] or match[3]])
    levels = len(words) // number
    if levels not in (3, 4) or levels * number != len(words):
        raise DataError(f"{path.name} has column names that svae cannot read; save the table as csv.")
    return [tuple(words[i : i + levels]) for i in range(0, len(words), levels)]


def _level(file, name, number, path):
    """One level of the column names, spelled out for every column; the first is the scorer, which nobody needs."""
    from .hdf5 import whole

    codes = whole(file, f"{name}/block0_items_label{number}", path).astype(int)
    if number == 0:
        return ["scorer"] * len(codes)
    words = [_text(word) for word in whole(file, f"{name}/block0_items_level{number}", path)]
    return [words[code] for code in codes]


def _text(word):
    return word.decode("utf-8", "replace") if isinstance(word, bytes) else str(word)


def sleap_analysis(file: Any, path: Path) -> Contents | None:
    """SLEAP's analysis h5: tracks (animals, xy, points, T)."""
    from .hdf5 import plain, whole

    if not ("tracks" in file and "node_names" in file and "track_occupancy" in file and plain(file["tracks"])):
        return None
    tracks = whole(file, "tracks", path)
    points = [_text(word) for word in whole(file, "node_names", path)]
    if tracks.ndim != 4 or tracks.shape[1] not in (2, 3) or tracks.shape[2] != len(points):
        raise DataError(f"{path.name} has tracks of shape {tracks.shape}; SLEAP writes (animals, 2, points, frames).")
    names = [_text(word) for word in whole(file, "track_names", path)] if "track_names" in file else []
    names = names if len(names) == len(tracks) else list(map(str, range(len(tracks))))
    pieces = [
        _track(name, np.moveaxis(xy, -1, 0).swapaxes(1, 2), points) for name, xy in zip(names, tracks, strict=True)
    ]
    return _tracks([p for p in pieces if p is not None], path)


def _track(name, xy, points):
    """The stretch of frames in which an animal was seen; None if it is too short to use."""
    seen = np.flatnonzero(np.isfinite(xy).all(-1).any(1))
    if len(seen) < SHORTEST:
        return None
    return Piece(name, keypoints(xy[seen[0] : seen[-1] + 1], None, points))


def _tracks(pieces, path):
    if not pieces:
        raise DataError(f"{path.name} has no track that is seen in {SHORTEST} frames; track the video first.")
    return Contents(pieces if len(pieces) > 1 else [pieces[0]._replace(name="")])


def sleap_project(file: Any, path: Path) -> Contents | None:
    """SLEAP's own project file: predicted points of every instance, put together by track."""
    from .hdf5 import require_plausible

    if not all(name in file for name in ("frames", "instances", "pred_points", "metadata")):
        return None
    for name in ("frames", "instances", "pred_points"):
        require_plausible(file[name], path)
    frames, instances, points = (file[name][()] for name in ("frames", "instances", "pred_points"))
    names = _nodes(json.loads(file["metadata"].attrs["json"]))
    predicted = instances[(instances["instance_type"] == 1) & (instances["track"] >= 0)]
    if len(predicted) == 0:
        raise DataError(f"{path.name} has no tracked predictions; export an analysis h5 from SLEAP.")
    length = int(frames["frame_idx"].max()) + 1
    if length > 100 * len(frames) + 1000:
        raise DataError(f"{path.name} numbers its frames up to {length} but has {len(frames)}; it is damaged.")
    frame_of = dict(zip(frames["frame_id"].tolist(), frames["frame_idx"].tolist(), strict=True))
    pieces = []
    for track in np.unique(predicted["track"]):
        own = predicted[predicted["track"] == track]
        times = np.array([frame_of[i] for i in own["frame_id"].tolist()])
        first, last = times.min(), times.max() + 1
        xy = np.full((last - first, len(names), 2), np.nan)
        rows = own["point_id_start"][:, None].astype(int) + np.arange(len(names))
        found = points[rows]
        xy[times - first] = np.where(found["visible"][..., None], np.stack([found["x"], found["y"]], -1), np.nan)
        pieces.append(_track(f"track{track}", xy, names))
    return _tracks([p for p in pieces if p is not None], path)


def _nodes(project):
    """Names of the points in the order of the first skeleton."""
    names = [str(node["name"]) for node in project["nodes"]]
    return [names[int(node["id"])] for node in project["skeletons"][0]["nodes"]]


JABS = ("nose", "left ear", "right ear", "neck", "left front paw", "right front paw", "spine", "left rear paw",
        "right rear paw", "tail base", "mid tail", "tail tip")  # fmt: skip


def jabs(file: Any, path: Path) -> Contents | None:
    """JABS pose files: points (T, [instances,] 12, 2) as (y, x); from version 3 on with identities."""
    from .hdf5 import whole

    if "poseest/points" not in file or "poseest/confidence" not in file:
        return None
    points = whole(file, "poseest/points", path)[..., ::-1].astype(np.float32)
    confidence = whole(file, "poseest/confidence", path)
    names = JABS if points.shape[-2] == len(JABS) else tuple(map(str, range(points.shape[-2])))
    if points.ndim == 3:
        return Contents([Piece("", keypoints(points, confidence, names))], 30.0)
    long_term = "poseest/instance_embed_id" in file
    identity = whole(file, "poseest/instance_embed_id" if long_term else "poseest/instance_track_id", path).astype(int)
    used = ~whole(file, "poseest/id_mask", path).astype(bool) if "poseest/id_mask" in file else identity >= 0
    count = whole(file, "poseest/instance_count", path) if "poseest/instance_count" in file else None
    if count is not None:
        used &= np.arange(points.shape[1]) < count[:, None]
    pieces = []
    for number in np.unique(identity[used & (identity > (0 if long_term else -1))])[:1000]:
        frame, instance = np.nonzero(used & (identity == number))
        xy = np.full((len(points), *points.shape[2:]), np.nan, np.float32)
        trust = np.zeros(xy.shape[:2], np.float32)
        xy[frame], trust[frame] = points[frame, instance], confidence[frame, instance]
        pieces.append(_track(f"mouse{number}", np.where(trust[..., None] > 0, xy, np.nan), names))
    found = _tracks([p for p in pieces if p is not None], path)
    return found._replace(fps=30.0)
