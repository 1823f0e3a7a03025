"""Keypoints as SLEAP and JABS keep them in HDF5."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from ..recordings import DataError
from .pieces import Contents, Note, Piece, doubted, joined, keypoints, left_aside, listed, text

SHORTEST = 10  # frames of a track that is worth keeping
MOST_ANIMALS = 1000


def sleap_analysis(file: Any, path: Path) -> Contents | None:
    """SLEAP's analysis h5: tracks (animals, xy, points, T)."""
    from .hdf5 import plain, whole

    if not ("tracks" in file and "node_names" in file and "track_occupancy" in file and plain(file["tracks"])):
        return None
    tracks = whole(file, "tracks", path)
    points = [text(word) for word in whole(file, "node_names", path)]
    if tracks.ndim != 4 or tracks.shape[1] not in (2, 3) or tracks.shape[2] != len(points):
        raise DataError(f"{path.name} has tracks of shape {tracks.shape}; SLEAP writes (animals, 2, points, frames).")
    names = [text(word) for word in whole(file, "track_names", path)] if "track_names" in file else []
    names = names if len(names) == len(tracks) else list(map(str, range(len(tracks))))
    pieces = [
        _track(name, np.moveaxis(xy, -1, 0).swapaxes(1, 2), points) for name, xy in zip(names, tracks, strict=True)
    ]
    scores = left_aside("dataset", [name for name in ("point_scores", "instance_scores") if name in file])
    edges = (
        whole(file, "edge_inds", path) if "edge_inds" in file and plain(file["edge_inds"]) else np.zeros((0, 2), int)
    )
    joined([p for p in pieces if p is not None], edges.reshape(-1, 2).tolist() if edges.size % 2 == 0 else [])
    return _tracks(pieces, names, path, scores)


def _track(name, xy, points):
    """The stretch of frames in which an animal was seen; None if it is too short to use."""
    seen = np.flatnonzero(np.isfinite(xy).all(-1).any(1))
    if len(seen) < SHORTEST:
        return None
    return Piece(name, keypoints(xy[seen[0] : seen[-1] + 1], None, points), first=int(seen[0]))


def _tracks(pieces, names, path, notes=()):
    """The tracks that are long enough; a note names the others."""
    kept = [piece for piece in pieces if piece is not None]
    if not kept:
        raise DataError(f"{path.name} has no track that is seen in {SHORTEST} frames; track the video first.")
    short = [name for name, piece in zip(names, pieces, strict=True) if piece is None]
    notes = [*notes, *left_aside(f"track seen in fewer than {SHORTEST} frames", short)]
    if len(pieces) > 1:
        notes.append(Note(f"its tracks are recordings of their own: {listed([piece.name for piece in kept])}"))
    return Contents(kept if len(kept) > 1 else [kept[0]._replace(name="")], notes=notes)


def sleap_project(file: Any, path: Path) -> Contents | None:
    """SLEAP's own project file: predicted points of every instance, put together by track."""
    from .hdf5 import require_plausible

    if not all(name in file for name in ("frames", "instances", "pred_points", "metadata")):
        return None
    for name in ("frames", "instances", "pred_points"):
        require_plausible(file[name], path)
    frames, instances, points = (file[name][()] for name in ("frames", "instances", "pred_points"))
    project = json.loads(file["metadata"].attrs["json"])
    names, predicted = _nodes(project), instances["instance_type"] == 1
    used = instances[predicted & (instances["track"] >= 0)]
    if len(used) == 0:
        raise DataError(f"{path.name} has no tracked predictions; export an analysis h5 from SLEAP.")
    length = int(frames["frame_idx"].max()) + 1
    if length > 100 * len(frames) + 1000:
        raise DataError(f"{path.name} numbers its frames up to {length} but has {len(frames)}; it is damaged.")
    number_of = dict(zip(frames["frame_id"].tolist(), frames["frame_idx"].tolist(), strict=True))
    video_of = dict(zip(frames["frame_id"].tolist(), _videos(frames), strict=True))
    video = np.array([video_of[i] for i in used["frame_id"].tolist()])
    several = len(np.unique(video)) > 1
    pieces, called = [], []
    for v, track in np.unique(np.stack([video, used["track"]], 1), axis=0).tolist():
        own = used[(video == v) & (used["track"] == track)]
        called.append(f"video{v}-track{track}" if several else f"track{track}")
        pieces.append(_predicted(own, number_of, points, names, called[-1]))
    joined([p for p in pieces if p is not None], _links(project))
    return _tracks(pieces, called, path, _unused(predicted, instances, project, points))


def _videos(frames):
    return frames["video"].tolist() if "video" in frames.dtype.names else [0] * len(frames)


def _predicted(own, number_of, points, names, called):
    """The points of one track, frame by frame."""
    times = np.array([number_of[i] for i in own["frame_id"].tolist()])
    first, last = times.min(), times.max() + 1
    xy = np.full((last - first, len(names), 2), np.nan)
    found = points[own["point_id_start"][:, None].astype(int) + np.arange(len(names))]
    xy[times - first] = np.where(found["visible"][..., None], np.stack([found["x"], found["y"]], -1), np.nan)
    piece = _track(called, xy, names)
    return None if piece is None else piece._replace(first=piece.first + int(first))


def _unused(predicted, instances, project, points):
    """What of a project is not read."""
    by_hand, loose = int((~predicted).sum()), int((predicted & (instances["track"] < 0)).sum())
    notes = [Note(f"{by_hand} instances labelled by hand are left aside")] if by_hand else []
    notes += [Note(f"{loose} instances without a track are left aside")] if loose else []
    notes += left_aside("dataset", ["scores of points"]) if "score" in points.dtype.names else []
    others = [str(skeleton.get("name", i)) for i, skeleton in enumerate(project["skeletons"])][1:]
    return [*notes, *left_aside("skeleton", others)]


def _nodes(project):
    """Names of the points in the order of the first skeleton."""
    names = [str(node["name"]) for node in project["nodes"]]
    return [names[int(node["id"])] for node in project["skeletons"][0]["nodes"]]


def _links(project):
    """Pairs of points that the first skeleton joins."""
    places = {int(node["id"]): i for i, node in enumerate(project["skeletons"][0]["nodes"])}
    links = project["skeletons"][0].get("links", [])
    return [(places.get(int(link["source"]), -1), places.get(int(link["target"]), -1)) for link in links]


JABS = ("nose", "left ear", "right ear", "neck", "left front paw", "right front paw", "spine", "left rear paw",
        "right rear paw", "tail base", "mid tail", "tail tip")  # fmt: skip


def jabs(file: Any, path: Path) -> Contents | None:
    """JABS pose files: points (T, [instances,] 12, 2) as (y, x); from version 3 on with identities."""
    from .hdf5 import whole

    if "poseest/points" not in file or "poseest/confidence" not in file:
        return None
    notes = [Note("it does not say its frame rate, which is taken to be 30"), *_beside(file)]
    points = whole(file, "poseest/points", path)[..., ::-1].astype(np.float32)
    confidence = whole(file, "poseest/confidence", path)
    names = JABS if points.shape[-2] == len(JABS) else tuple(map(str, range(points.shape[-2])))
    if points.ndim == 3:
        return Contents([Piece("", keypoints(points, confidence, names))], 30.0, [*notes, *doubted(points, confidence)])
    long_term = "poseest/instance_embed_id" in file
    identity = whole(file, "poseest/instance_embed_id" if long_term else "poseest/instance_track_id", path).astype(int)
    used = ~whole(file, "poseest/id_mask", path).astype(bool) if "poseest/id_mask" in file else identity >= 0
    count = whole(file, "poseest/instance_count", path) if "poseest/instance_count" in file else None
    if count is not None:
        used &= np.arange(points.shape[1]) < count[:, None]
    used &= identity > (0 if long_term else -1)
    pieces, called = [], []
    for number in np.unique(identity[used])[:MOST_ANIMALS]:
        frame, instance = np.nonzero(used & (identity == number))
        xy = np.full((len(points), *points.shape[2:]), np.nan, np.float32)
        trust = np.zeros(xy.shape[:2], np.float32)
        xy[frame], trust[frame] = points[frame, instance], confidence[frame, instance]
        called.append(f"mouse{number}")
        pieces.append(_track(called[-1], np.where(trust[..., None] > 0, xy, np.nan), names))
    loose = 0 if count is None else int(np.sum((np.arange(points.shape[1]) < count[:, None]) & ~used))
    notes += [Note(f"{loose} instances without an identity are left aside")] if loose else []
    notes += [Note("points with a confidence of 0 count as missing")] if np.any(confidence[used] <= 0) else []
    found = _tracks(pieces, called, path, notes)
    return found._replace(fps=30.0)


def _beside(file):
    """What a file holds beside poses: objects of the room, contours."""
    others = ("static_objects", "dynamic_objects", "poseest/seg_data")
    return left_aside("dataset", [name for name in others if name in file])
