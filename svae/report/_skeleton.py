"""The skeleton of a body: which points are joined, where its nose and tail are, and which points are left or right."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from svae._sealed import write_atomically
from svae.data import DataError
from svae.runs import Run

FILE = "skeleton.json"  # of a run, once somebody has said it
FRONT = ("nose", "snout", "muzzle", "beak", "proboscis", "mouth", "head")
BACK = ("tailbase", "tailroot", "baseoftail", "tailstart", "proximaltail", "tail", "rump", "abdomen", "hip")
LARGEST = 2**22  # bytes of a file that may hold a skeleton
PAIR = re.compile(r"^\s*-\s*-\s*(.+?)\s*\n\s*-\s*(.+?)\s*$", re.MULTILINE)  # how DeepLabCut's config.yaml has a bone


class Skeleton(NamedTuple):
    """The skeleton of P points."""

    names: tuple[str, ...]
    edges: tuple[tuple[int, int], ...]
    sides: tuple[str, ...]  # left, right or "" for each point
    nose: int
    tail: int
    source: str  # where its lines come from, in words


def find(run: Run | None, sequence: object, keep: Sequence[int], frames: np.ndarray, body: np.ndarray) -> Skeleton:
    """The skeleton of the kept points: as given for the run, as in the file, as in the project beside it, or guessed.

    Without a run it is as in the file, or guessed.

    frames (n, P, 2) are of the kept points, body (P, 2 or 3) is their reference posture with its front along x.
    """
    known = tuple(getattr(sequence, "points", ()))
    names = tuple(known[i] for i in keep) if len(known) > max(keep, default=0) else tuple(map(str, keep))
    place = {number: i for i, number in enumerate(keep)}
    filed = tuple((place[p], place[q]) for p, q in getattr(sequence, "edges", ()) if p in place and q in place)
    edges, source = (), ""
    if run is not None and (run.path / FILE).exists():
        edges, source = _said(run.path / FILE, names), "as given with --skeleton"
    elif filed:
        edges, source = filed, "as in the file of the points"
    elif run is not None and (project := _project(run)) is not None:
        edges, source = _by_name(_bones(project), names), f"as in {project.name} beside the recordings"
    if not edges:
        edges, source = shortest(frames), "guessed: the shortest lines that join all points; --skeleton gives others"
    return Skeleton(names, edges, sides(names), *_ends(names, body), source)


def shortest(xy: np.ndarray) -> tuple[tuple[int, int], ...]:
    """The shortest lines that join all points: a skeleton without names."""
    from scipy.sparse.csgraph import minimum_spanning_tree

    P = xy.shape[1]
    distance = np.zeros((P, P))
    for p in range(P):
        for q in range(p + 1, P):
            gap = np.linalg.norm(xy[:, p] - xy[:, q], axis=-1)
            distance[p, q] = np.nanmedian(gap) + 1e-6 if np.isfinite(gap).any() else 0.0
    return tuple((int(p), int(q)) for p, q in np.argwhere(minimum_spanning_tree(distance).toarray() > 0))


# --- names --------------------------------------------------------------------------------------------------------


def sides(names: Sequence[str]) -> tuple[str, ...]:
    """left, right or "": by a word or a letter of the name, or by another name that differs in one letter l or r."""
    plain = [name.lower() for name in names]
    return tuple(_side(name, plain[i], set(plain)) for i, name in enumerate(names))


def _side(name, plain, others):
    words = [w.lower() for w in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)]
    for side, mark, mirror in (("left", "l", "r"), ("right", "r", "l")):
        if side in plain or mark in words:
            return side
        spots = (i for i, letter in enumerate(plain) if letter == mark)
        if any(plain[:i] + mirror + plain[i + 1 :] in others for i in spots):
            return side
    return ""


def _ends(names, body):
    """Nose and tail: by name, else the foremost and the hindmost point of the reference posture."""
    plain = ["".join(c for c in name.lower() if c.isalnum()) for name in names]
    middle = [i for i, side in enumerate(sides(names)) if not side] or range(len(names))
    first = lambda words: next((i for word in words for i in middle if word in plain[i]), None)  # noqa: E731
    nose, tail = first(FRONT), first(BACK)
    nose = int(np.argmax(body[:, 0])) if nose is None else nose
    tail = int(np.argmin(body[:, 0])) if tail is None or tail == nose else tail
    return nose, tail


def _by_name(pairs, names):
    """Pairs of numbers; bones of points that the model does not see are left out."""
    place = {_plain(name): i for i, name in enumerate(names)}
    found = [(place.get(_plain(a)), place.get(_plain(b))) for a, b in pairs]
    return tuple((p, q) for p, q in found if p is not None and q is not None and p != q)


def _plain(name):
    return "".join(c for c in str(name).lower() if c.isalnum())


# --- what somebody says -------------------------------------------------------------------------------------------


def keep(run: Run, given: str, known: Sequence[str]) -> None:
    """Write what --skeleton says into the run: "nose-neck,neck-tail", or DeepLabCut's config.yaml."""
    file = Path(given)
    pairs = _bones(file) if file.suffix in (".yaml", ".yml") else _typed(given, known)
    if not pairs:
        raise DataError(f"{given} holds no skeleton; give pairs of points such as nose-neck,neck-tail")
    names = {_plain(name) for name in known}
    for name in (name for pair in pairs for name in pair):
        if file.suffix not in (".yaml", ".yml") and _plain(name) not in names:
            raise DataError(f"--skeleton names {name!r}, which is no point of this run; it has {', '.join(known)}")
    text = json.dumps({"edges": [list(pair) for pair in pairs]}, ensure_ascii=False, indent=1) + "\n"
    write_atomically(run.path / FILE, text.encode())


def _typed(text, known):
    """Pairs of names divided by commas; a name may itself hold a dash."""
    names = {_plain(name) for name in known}
    return [_split(pair, names) for pair in text.split(",") if pair.strip()]


def _split(pair, names):
    cuts = [i for i, c in enumerate(pair) if c == "-"]
    both = [(pair[:i].strip(), pair[i + 1 :].strip()) for i in cuts]
    if not both:
        raise DataError(f"--skeleton needs pairs of points such as nose-neck,neck-tail, not {pair.strip()!r}")
    return next((b for b in both if _plain(b[0]) in names and _plain(b[1]) in names), both[0])


def _said(file, names):
    try:
        found = json.loads(file.read_text(encoding="utf-8"))["edges"]
        return _by_name([(str(a), str(b)) for a, b in found], names)
    except (OSError, ValueError, KeyError, TypeError):
        raise DataError(f"{file} is damaged; remove it, or write it again with --skeleton") from None


def _project(run: Run) -> Path | None:
    """DeepLabCut's config.yaml in the folder of the recordings, or in the one above it."""
    source = (run.provenance().get("source") or {}).get("path")
    home = Path(str(source)) if source else None
    if home is None or not home.exists():
        return None
    folders = [home, home.parent] if home.is_dir() else [home.parent, home.parent.parent]
    files = [folder / "config.yaml" for folder in folders]
    return next((file for file in files if file.is_file() and _bones(file)), None)


def _bones(file: Path) -> list[tuple[str, str]]:
    """The list `skeleton:` of a config.yaml: pairs in two lines, or [a, b] in one."""
    try:
        if file.stat().st_size > LARGEST:
            return []
        text = file.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise DataError(f"{file} could not be read: {error.strerror or error}") from None
    part = re.search(r"^skeleton:[ \t]*\n((?:[ \t-].*\n?)*)", text, re.MULTILINE)
    if part is None:
        return []
    flat = re.findall(r"^\s*-\s*\[\s*([^,\]]+?)\s*,\s*([^\]]+?)\s*\]", part[1], re.MULTILINE)
    return [(a.strip("'\""), b.strip("'\"")) for a, b in [*PAIR.findall(part[1]), *flat]]
