"""Groups that recordings carry beside y: given by a person, and matched with those of a model by name."""

from typing import Any

from .beside import NOTHING
from .carried import by_recording
from .readers.pieces import listed
from .recordings import DataError, Recordings


def with_groups(data: Recordings, groups: Any) -> Recordings:
    """Recordings that say which animal, cage or treatment each is of.

    Args:
        data: Recordings, such as `load` returns.
        groups: The name of the group of each recording, in order or by name of the recording.

    Returns:
        The recordings with their groups.

    Raises:
        DataError: The groups do not fit; the sentence says where.

    Examples:
        >>> import numpy as np
        >>> import svae
        >>> walks = svae.load({"monday": np.zeros((4, 2)), "tuesday": np.zeros((4, 2))})
        >>> found = svae.data.with_groups(walks, {"monday": "m12", "tuesday": "m7"})
        >>> [one.group for one in found.beside]
        ['m12', 'm7']
    """
    given = (
        groups if isinstance(groups, dict) else [[name] for name in ([groups] if isinstance(groups, str) else groups)]
    )
    every = by_recording(data, given, "groups")
    names = ["" if one is None else str(one if isinstance(groups, dict) else one[0]).strip() for one in every]
    lost = [name for name, group in zip(data.names, names, strict=True) if not group]
    if lost:
        raise DataError(f"There is no group of {listed(lost)}; give every recording one.")
    carried = data.beside or (NOTHING,) * len(names)
    beside = tuple(one._replace(group=group) for one, group in zip(carried, names, strict=True))
    return data._replace(beside=beside)


def group_names(data: Recordings) -> tuple[str, ...]:
    """The names of all groups, in alphabetical order."""
    return tuple(sorted({str(one.group) for one in data.beside if one.group is not None}))


def numbered(data: Recordings, by: str, groups: tuple[str, ...]) -> Recordings:
    """Recordings as a model takes them: its own number for each group, and one beyond all for others.

    `by` is "" for a model that has nothing of groups.
    """
    if not by:
        return data._replace(beside=tuple(one._replace(group=None) for one in data.beside))
    number = {name: g for g, name in enumerate(groups)}
    carried = data.beside or (NOTHING,) * len(data.names)
    beside = tuple(one._replace(group=number.get(str(one.group), len(groups))) for one in carried)
    return data._replace(beside=beside)


def require_groups(data: Recordings, by: str) -> None:
    """Raise unless every recording that a model with tables of groups learns from says its group."""
    carried = data.beside or (NOTHING,) * len(data.names)
    lost = [name for name, one in zip(data.names, carried, strict=True) if one.group is None]
    if by and lost:
        raise DataError(
            f"The model has habits for each {by}, and the data do not say whose {listed(lost)} is; give a table of "
            "recordings and groups, with --group."
        )


def said_of_groups(train: Recordings, held: Recordings | None, by: str) -> list[str]:
    """Sentences on groups that a model has nothing of, and on those that it cannot learn from."""
    known, others = group_names(train), () if held is None else group_names(held)
    if known and not by:
        return ["The groups are kept with the run; the model has the same habits for all of them (by= in a graph)."]
    if not by:
        return []
    unseen = [name for name in others if name not in known]
    found = (
        [f"All recordings of {listed(unseen)} are held out, so nothing is learned of its own habits."] if unseen else []
    )
    alone = f"There is one {by} only, so its habits and those that all share cannot be told apart."
    return found + ([alone] if len(known) == 1 else [])


def said_of_new(data: Recordings, by: str, groups: tuple[str, ...]) -> list[str]:
    """Sentences on recordings of a group that the model has not seen, or of whom nobody knows."""
    if not by:
        return []
    new = [name for name in group_names(data) if name not in groups]
    carried = data.beside or (NOTHING,) * len(data.names)
    lost = [name for name, one in zip(data.names, carried, strict=True) if one.group is None]
    found = [f"The model has not seen {listed(new)}: it has the habits that each {by} is drawn around."] if new else []
    if lost:
        found.append(f"Nobody says which {by} {listed(lost)} is of: taken for one that the model has not seen.")
    return found
