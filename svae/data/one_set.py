"""The recordings of several files as one set: frames alike, one clock, and what is said of them once."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from .layout import plain_name
from .readers.pieces import Contents, Note, Piece, listed
from .recordings import DataError
from .views import Picked, names_of

SAME = 0.02  # rates that differ by less are measurements of one rate
SLIGHT = 1e-3  # and by less than this they are not worth a word


def alike(pieces: Sequence[Piece], names: Sequence[str]) -> tuple[list[Any], list[Note]]:
    """The sequences with points or columns in the order of the first, and what was reordered."""
    sequences = [piece.y for piece in pieces]
    units = _one_unit(sequences, names)
    first, reordered = names_of(sequences[0]), []
    for i, (y, name) in enumerate(zip(sequences, names, strict=True)):
        own = names_of(y)
        if not own or not first or own == first:
            continue
        _require_one_set(own, first, name, names[0])
        sequences[i] = Picked(y, _places(own, first), first)
        reordered.append(name)
    said = f"points or columns of {listed(reordered, 3)} are put into the order of {names[0]}"
    return sequences, [*units, *([Note(said)] if reordered else [])]


def _one_unit(sequences, names):
    """What is said where only some recordings tell their unit; two units are refused."""
    units = {name: getattr(y, "unit", "") for y, name in zip(sequences, names, strict=True)}
    known = {unit: name for name, unit in reversed(units.items()) if unit}
    if len(known) > 1:
        said = listed([f"{name} in {unit}" for unit, name in known.items()])
        raise DataError(f"The recordings have different units ({said}); bring them to one or fit them apart.")
    silent = [name for name, unit in units.items() if not unit]
    unit = next(iter(known), "")
    return (
        [Note(f"recordings that do not say their unit ({listed(silent, 3)}) are taken to be in {unit}")]
        if unit and silent
        else []
    )


def _places(own, first):
    where = {plain_name(name): i for i, name in enumerate(own)}
    return [where[plain_name(name)] for name in first]


def _require_one_set(own, first, name, other):
    here, there = {plain_name(n): n for n in own}, {plain_name(n): n for n in first}
    if here.keys() == there.keys() and len(here) == len(own) == len(first):
        return
    more = [n for key, n in here.items() if key not in there]
    less = [n for key, n in there.items() if key not in here]
    differ = [f"{name} has {listed(more)}, which {other} has not" if more else ""]
    differ += [f"{other} has {listed(less)}, which {name} has not" if less else ""]
    raise DataError(
        f"The recordings have different points or columns: {' and '.join(filter(None, differ))}; take what all have "
        "with --dataset NAME,NAME,... or fit them apart."
    )


def one_clock(
    pieces: Sequence[Piece], rates: Sequence[float | None], names: Sequence[str], fps: float | None
) -> tuple[float | None, tuple[Any, ...], list[Note]]:
    """The frame rate of all recordings, seconds where they are not frame / rate, and what is said of both.

    Rates that differ by less than 2 % are one rate, and each recording keeps its own seconds; others are refused. `fps`
    is the rate that the user gave, which holds whatever the files say.
    """
    if fps is not None:
        return fps, _times(pieces, [fps] * len(pieces), fps, keep=False), _overruled(pieces, rates, names, fps)
    known = [rate for rate in rates if rate]
    if not known:
        return None, _times(pieces, rates, None), _begins(pieces, names)
    _require_one_rate(rates, names)
    rate = known[0] if len(set(known)) == 1 else float(np.median(known))
    silent = [name for name, own in zip(names, rates, strict=True) if not own]
    words = f"recordings without a frame rate ({listed(silent, 3)}) are taken to have {rate:.4g}, as the others have"
    notes = [Note(words)] if silent else []
    if max(known) > (1 + SLIGHT) * min(known):
        notes.append(
            Note(f"rates of {min(known):.5g} to {max(known):.5g} frames per second are taken for one, {rate:.5g}")
        )
    return rate, _times(pieces, [own or rate for own in rates], rate), notes


def _require_one_rate(rates, names):
    known = [(rate, name) for rate, name in zip(rates, names, strict=True) if rate]
    (low, slow), (high, fast) = min(known), max(known)
    if high > (1 + SAME) * low:
        raise DataError(
            f"{slow} has {low:.4g} frames per second but {fast} has {high:.4g}, and a model has one clock: bring them "
            "to one rate or fit them apart; --fps gives the rate where the files are wrong."
        )


def _times(pieces, rates, rate, keep=True):
    """Seconds of each recording; None where they are frame / rate, () where all are."""
    found = tuple(_seconds(piece, own, rate, keep) for piece, own in zip(pieces, rates, strict=True))
    return found if any(t is not None for t in found) else ()


def _seconds(piece, own, rate, keep):
    if keep and piece.times is not None:
        return piece.times
    apart = rate is not None and abs(own / rate - 1) * len(piece.y) > 0.5  # by half a frame at the end
    if rate is None or (not piece.first and not apart):
        return None
    return piece.first / rate + np.arange(len(piece.y)) / own


def _begins(pieces, names):
    """Where a recording begins in its file: without a rate its clock counts its own frames."""
    late = [f"{name} at frame {p.first}" for p, name in zip(pieces, names, strict=True) if p.first]
    return (
        [Note(f"recordings begin later than their file: {listed(late, 5)}; their frames count from 0")] if late else []
    )


def _overruled(pieces, rates, names, fps):
    """What the files said of time, where the user says otherwise."""
    other = [f"{n} ({r:.4g})" for n, r in zip(names, rates, strict=True) if r and abs(r / fps - 1) > SAME]
    uneven = [name for name, piece in zip(names, pieces, strict=True) if piece.times is not None]
    said = [Note(f"{fps:g} frames per second as given, not as the files say: {listed(other, 3)}")] if other else []
    return [*said, *([Note(f"the times of {listed(uneven, 3)} are not used, since --fps is given")] if uneven else [])]


def sentences(contents: Sequence[Contents], files: Sequence[str], common: Sequence[Note]) -> tuple[str, ...]:
    """What the readers said, once for all files of which it holds, with the range of its percentages."""
    where: dict[str, list[tuple[str, float | None]]] = {}
    for found, file in zip(contents, files, strict=True):
        for note in found.notes:
            where.setdefault(note.words, []).append((file, note.percent))
    told = [f"{_files([f for f, _ in said])}: {words}{_range([p for _, p in said])}." for words, said in where.items()]
    return (*told, *(f"{note.words[:1].upper()}{note.words[1:]}." for note in common))


def _files(names):
    names = list(dict.fromkeys(names))
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def _range(percents):
    known = [p for p in percents if p is not None]
    if not known:
        return ""
    low, high = f"{min(known):.2g}", f"{max(known):.2g}"
    return f" ({low} %)" if low == high else f" ({low} to {high} %)"
