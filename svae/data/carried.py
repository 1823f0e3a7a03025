"""Labels that recordings carry beside y: given by a person, and matched with a model by name."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .beside import FREE, Beside
from .readers.pieces import listed
from .recordings import DataError, Recordings

MOST_STATES = 10_000  # a larger number is no state


def with_labels(data: Recordings, labels: Any) -> Recordings:
    """Recordings whose frames have labels: states that are known, by their numbers or by names.

    Args:
        data: Recordings, such as `load` returns.
        labels: For each recording, in order or by name, a label for each frame: states 0, 1, ... with -1 for a frame
            without a label, or names with "" for none. Recordings that are left out of a dict have no labels.

    Returns:
        The recordings with their labels. With names, state k is the k-th name in alphabetical order.

    Raises:
        DataError: The labels do not fit; the sentence says where.

    Examples:
        >>> import numpy as np
        >>> import svae
        >>> walk = svae.load({"walk": np.zeros((4, 2))})
        >>> found = svae.data.with_labels(walk, {"walk": ["", "rear", "groom", ""]})
        >>> found.called.labels, found.beside[0].labels.tolist()
        (('groom', 'rear'), [-1, 1, 0, -1])
    """
    every = by_recording(data, labels, "labels")
    texts = any(np.asarray(one).dtype.kind in "OUS" for one in every if one is not None)
    named = [None if one is None else [_word(x) for x in one] for one in every] if texts else every
    names = tuple(sorted({x for one in named if one is not None for x in one if x})) if texts else ()
    number = {name: k for k, name in enumerate(names)} | {"": FREE}
    found = []
    for name, y, one in zip(data.names, data.sequences, named, strict=True):
        states = np.full(len(y), FREE) if one is None else np.array([number[x] for x in one] if texts else one)
        found.append(_states(name, len(y), states))
    if not any((states >= 0).any() for states in found):
        raise DataError("The labels name no frame; give at least one frame its state, or leave the labels out.")
    carried = data.beside or (Beside(),) * len(found)
    beside = tuple(one._replace(labels=states) for one, states in zip(carried, found, strict=True))
    return data._replace(beside=beside, called=data.called._replace(labels=names))


def _word(label):
    return "" if label is None or label != label else str(label).strip()


def _states(name, T, states):
    """Labels (T,) as states."""
    if states.shape != (T,):
        raise DataError(f"{name} has {T} frames but labels of shape {states.shape}; give one label for each frame.")
    if states.dtype.kind == "f":
        states = np.where(np.isnan(states), FREE, states)
    whole = states.astype(np.int64)
    wrong = (whole != states) | (whole < FREE) | (whole > MOST_STATES)
    if wrong.any():
        t = int(np.argmax(wrong))
        raise DataError(f"{name} has the label {states[t]} at frame {t}; labels are states 0, 1, ..., or -1 for none.")
    return whole.astype(np.int32)


def by_recording(data: Recordings, given: Any, what: str) -> list:
    """One entry for each recording; None where a dict has none."""
    if isinstance(given, Mapping):
        strange = [str(name) for name in given if name not in data.names]
        if strange:
            raise DataError(
                f"The {what} speak of {listed(strange)}, which is no recording; there are {listed(data.names, 20)}."
            )
        return [given.get(name) for name in data.names]
    several = isinstance(given, Sequence) and not isinstance(given, str) and len(given) and np.ndim(given[0]) > 0
    every = list(given) if several else [given]
    if len(every) != len(data.names):
        raise DataError(f"There are {what} for {len(every)} recordings, but {len(data.names)} recordings.")
    return every


def without_labels(data: Recordings) -> Recordings:
    """Recordings that are to be judged: nobody looks at their labels."""
    beside = tuple(one._replace(labels=None) for one in data.beside)
    return data._replace(beside=beside, called=data.called._replace(labels=()))


def require_states(data: Recordings, states: int | None) -> None:
    """Raise unless labels have a place in a model of so many states; None for a model without discrete states."""
    labels = [one.labels for one in data.beside if one.labels is not None]
    if not labels or states is None:
        return
    wanted = max(len(data.called.labels), 1 + max(int(one.max(initial=FREE)) for one in labels))
    if wanted > states:
        raise DataError(f"The labels are of {wanted} states, the model has {states}; give it {wanted} states or more.")


def said_of_labels(train: Recordings, held: Recordings | None, states: int | None) -> list[str]:
    """Sentences on the labels that a fit learns from, and on those that it never looks at."""
    ours, others = _labelled(train), np.zeros(0, int) if held is None else _labelled(held)
    if len(ours) + len(others) == 0:
        return []
    if states is None:
        return ["The model has no discrete states, so the labels are left aside."]
    found = []
    if len(others):
        both = len(ours) + len(others)
        found.append(f"{len(others)} of {both} labelled frames are held out, and nobody looks at their labels.")
    names = train.called.labels or tuple(f"state {k}" for k in range(max([*ours, *others]) + 1))
    lost = [name for k, name in enumerate(names) if k not in ours]
    if lost:
        found.append(f"No frame to learn from is labelled {listed(lost)}: what such a state becomes is open.")
    return found


def _labelled(data):
    """The labels of all labelled frames."""
    found = [one.labels[one.labels >= 0] for one in data.beside if one.labels is not None]
    return np.concatenate(found) if found else np.zeros(0, int)


def labels_matched(data: Recordings, labels: tuple[str, ...]) -> Recordings:
    """Labels in the order of a model's own names of states."""
    own = data.called.labels
    if own == labels:
        return data
    if not own:
        return data  # states by number, or none
    if not labels:
        raise DataError(
            f"The labels have names ({listed(own)}), but the states of the model have none; leave the labels out."
        )
    strange = [name for name in own if name not in labels]
    if strange:
        raise DataError(f"The labels have {listed(strange)}, which is no state of the model; it has {listed(labels)}.")
    place = np.array([*(labels.index(name) for name in own), FREE], np.int32)  # the last entry serves FREE
    beside = tuple(one if one.labels is None else one._replace(labels=place[one.labels]) for one in data.beside)
    return data._replace(beside=beside, called=data.called._replace(labels=labels))
