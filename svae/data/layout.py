"""What a frame is made of: names of points or columns, their unit, the frame rate. A model keeps that of its data.

Other recordings are matched with it by name: put into its order, or refused with the names that differ.
"""

import dataclasses
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from .carried import labels_matched
from .driven import inputs_matched
from .grouped import group_names
from .readers.pieces import listed
from .recordings import DataError, Recordings
from .views import Picked, names_of

SAME = 0.02  # rates that differ by less are one rate


@dataclass(frozen=True)
class Layout:
    """Names of points or columns in order, their unit, the frame rate and the shape of a frame; empty where unknown.

    inputs: names of the columns of inputs; labels: names of the first states; groups: names of the groups of
    recordings that have tables of their own. Old folders have none of them.
    """

    names: tuple[str, ...] = ()
    unit: str = ""
    fps: float | None = None
    event: tuple[int, ...] = ()
    inputs: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain values that JSON knows; names of inputs and states where there are any."""
        found = {name: list(v) if isinstance(v, tuple) else v for name, v in dataclasses.asdict(self).items()}
        return {name: value for name, value in found.items() if value != [] or name in ("names", "event")}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Layout":
        """What `to_dict` gave; anything else is a ValueError."""
        try:
            fps = None if values["fps"] is None else float(values["fps"])
            event = tuple(int(n) for n in values["event"])
            beside = (tuple(map(str, values.get(name, ()))) for name in ("inputs", "labels", "groups"))
            made = cls(tuple(map(str, values["names"])), str(values["unit"]), fps, event, *beside)
        except (KeyError, TypeError) as error:
            raise ValueError(f"no layout is described by {values!r}") from error
        if made.to_dict() != values:
            raise ValueError(f"no layout is described by {values!r}")
        return made


class Matched(NamedTuple):
    """Recordings in the order of a model, and what was done to bring them there."""

    data: Recordings
    notes: list[str]


def layout_of(data: Recordings) -> Layout:
    """The layout of recordings; no unit is kept where theirs differ.

    Args:
        data: Recordings.

    Returns:
        `Layout`: names of points or columns, their unit, the frame rate, the shape of a frame.
    """
    units = {getattr(y, "unit", "") for y in data.sequences} - {""}
    first, fps = data.sequences[0], None if data.fps is None else float(data.fps)
    event = tuple(map(int, first.shape[1:]))
    return Layout(names_of(first), units.pop() if len(units) == 1 else "", fps, event, *data.called, group_names(data))


def plain_name(name: str) -> str:
    """A name without what people write differently: left_ear, leftEar and Left ear are one."""
    return re.sub(r"[ _.\-:]+", "", name).casefold()


def renamed(data: Recordings, names: Mapping[str, str]) -> Recordings:
    """Recordings whose points or columns have other names: {"snout": "nose"} calls the snout nose.

    Args:
        data: Recordings.
        names: What is called so now, and what it is to be called.

    Returns:
        `Recordings`.
    """
    own = names_of(data.sequences[0])
    for name in names:
        if name not in own:
            raise DataError(f"The data have no point or column {name!r}; they have {listed(own, 40) or 'no names'}.")
    new = [tuple(names.get(name, name) for name in names_of(y)) for y in data.sequences]
    for found in new:
        if len(set(found)) < len(found):
            raise DataError(f"Two points or columns would have one name: {listed(found, 40)}; match each once.")
    views = [Picked(y, range(y.shape[1]), n) if n else y for y, n in zip(data.sequences, new, strict=True)]
    return data._replace(sequences=tuple(views))


def matched(data: Recordings, layout: Layout) -> Matched:
    """Recordings by the names of a model's points or columns; DataError with the names where some are missing.

    What they carry beside y is matched by name, too.

    Args:
        data: Recordings.
        layout: That of a model.

    Returns:
        `Matched`: the recordings in the order of the model, and what was done to them in sentences.
    """
    data = labels_matched(inputs_matched(data, layout.inputs), layout.labels)
    notes = _unit_and_rate(data, layout)
    own = names_of(data.sequences[0])
    if not layout.names or not own:
        _require_as_many(data, layout)
        return Matched(data, [*_by_position(own, layout), *notes])
    sequences = tuple(_in_order(y, layout.names) for y in data.sequences)
    there = {plain_name(name) for name in layout.names}
    spare = [name for name in own if plain_name(name) not in there]
    said = [f"The model has no {listed(spare)}, left aside."] if spare else []
    rest = [plain_name(name) for name in own if name not in spare]
    if rest != [plain_name(name) for name in layout.names]:
        said.append("Points or columns are put into the order of the model, by name.")
    return Matched(data._replace(sequences=sequences), [*said, *notes])


def _in_order(y, names):
    places = _places(names_of(y), names)
    return y if places == list(range(y.shape[1])) else Picked(y, places, tuple(names))


def _require_as_many(data, layout):
    """Raise for points without names of which the model has another number: some would be taken for others."""
    event = tuple(data.sequences[0].shape[1:])
    points = len(event) == 2 == len(layout.event) and event[1] == layout.event[1] in (2, 3)
    if points and event[0] != layout.event[0]:
        raise DataError(
            f"The model is for {layout.event[0]} points, the data have {event[0]} without names; name them, or give "
            "those of the model in its order."
        )


def _places(own: Sequence[str], wanted: Sequence[str]) -> list[int]:
    """Where each name of the model is among those of the data; names as they are before names as people vary them."""
    exact, plain = {name: i for i, name in enumerate(own)}, {plain_name(name): i for i, name in enumerate(own)}
    found = [exact.get(name, plain.get(plain_name(name))) for name in wanted]
    lost = [name for name, i in zip(wanted, found, strict=True) if i is None]
    if lost or len(set(found)) < len(found):
        spare = [name for i, name in enumerate(own) if i not in found]
        other = f"the data have {listed(spare, 40)} besides" if spare else "the data have no others"
        example = f"--match {lost[0]}={spare[0]}" if lost and spare else "--match MODEL=DATA"
        raise DataError(
            f"The data lack {listed(lost, 40)} of the model; {other}. Where names differ say which is which: {example}."
        )
    return found


def _by_position(own, layout):
    if own and not layout.names:
        return [
            f"The model has no names of points or columns; those of the data ({listed(own)}) are matched by position."
        ]
    if layout.names and not own:
        return [f"The data have no names; points or columns are taken to be {listed(layout.names)}, in this order."]
    return []


def _unit_and_rate(data, layout):
    unit, found = layout_of(data).unit, []
    if unit and layout.unit and unit != layout.unit:
        found.append(f"The data are in {unit} but the model was fitted in {layout.unit}; bring them to {layout.unit}.")
    if data.fps and layout.fps and abs(data.fps / layout.fps - 1) > SAME:
        found.append(
            f"The data have {data.fps:.4g} frames per second but the model was fitted at {layout.fps:.4g}; states last "
            f"{data.fps / layout.fps:.2g} times as many frames. Bring them to {layout.fps:.4g}."
        )
    return found
