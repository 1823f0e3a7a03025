"""What recordings carry beside y: inputs, labels and a group, each in its own units."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

FREE = -1  # the label of a frame that nobody has labelled


class Beside(NamedTuple):
    """What one recording carries beside y; None where it carries nothing, so that programs see nothing of it.

    A batch has the same fields with a leading axis for its windows, and the group by its number.
    """

    inputs: Any = None  # (T, n) of each frame
    labels: Any = None  # (T,) the state of each frame, FREE where it is not known
    group: Any = None  # the name of an animal, a cage, a treatment; for a model with tables of each, its number


NOTHING = Beside()


class Called(NamedTuple):
    """Names of the columns of inputs, and of the states that labels speak of; () where states have numbers alone."""

    inputs: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()


def part(beside: Sequence[Beside], number: int, first: int, last: int) -> Beside:
    """What frames [first, last) of a recording carry."""
    return _cut(beside[number], first, last) if beside else NOTHING


def _cut(one: Beside, first: int, last: int) -> Beside:
    sliced = lambda a: None if a is None else a[first:last]  # noqa: E731
    return Beside(sliced(one.inputs), sliced(one.labels), one.group)


def of_windows(beside: Sequence[Beside], recording: Any, first: Any, last: Any, length: int) -> Beside:
    """What windows [first, last) of recordings carry, padded at the end to `length`."""
    if not beside:
        return NOTHING
    cut = [part(beside, int(i), int(a), int(b)) for i, a, b in zip(recording, first, last, strict=True)]
    inputs = None if cut[0].inputs is None else _padded([one.inputs for one in cut], length, 0.0, np.float32)
    labels = None if cut[0].labels is None else _padded([one.labels for one in cut], length, FREE, np.int32)
    group = np.array([one.group for one in cut], np.int32) if isinstance(cut[0].group, int) else None
    return Beside(inputs, labels, group)


def counted_of(beside: Beside, row: int, counted: Any) -> Beside:
    """What the counted frames of one window of a batch carry."""
    chosen = lambda a: None if a is None else a[row][counted]  # noqa: E731
    return Beside(
        chosen(beside.inputs), chosen(beside.labels), None if beside.group is None else int(beside.group[row])
    )


def joined(parts: Sequence[Beside]) -> Beside:
    """What stretches carry that follow each other in one recording."""
    whole = lambda every: None if every[0] is None else np.concatenate(every)  # noqa: E731
    return Beside(whole([one.inputs for one in parts]), whole([one.labels for one in parts]), parts[0].group)


def _padded(parts, length, value, dtype):
    found = np.full((len(parts), length, *parts[0].shape[1:]), value, dtype)
    for row, values in zip(found, parts, strict=True):
        row[: len(values)] = values
    return found
