"""Groups from a file: which animal a recording is of, and what else is known of it in words."""

import os
from pathlib import Path

from .beside import NOTHING
from .readers.pieces import listed
from .readers.sheets import owners, sheet_of
from .recordings import DataError, Recordings

FIRST = ("animal", "group", "subject", "mouse", "individual")


def load_groups(data: Recordings, source: str | os.PathLike) -> Recordings:
    """Recordings with the group of each, from a table with a column `recording` and one line for each.

    Args:
        data: Recordings, such as `load` returns.
        source: A csv file. The group is its column `animal`, else `group`, else the only other column.

    Returns:
        The recordings with their groups.

    Raises:
        DataError: The groups do not fit; the sentence says where.

    Examples:
        >>> import numpy as np, pathlib, tempfile
        >>> import svae
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "animals.csv"
        >>> _ = file.write_text("recording,animal\\nmonday,m12\\ntuesday,m12\\n")
        >>> walks = svae.load({"monday": np.zeros((4, 2)), "tuesday": np.zeros((4, 2))})
        >>> [one.group for one in svae.data.load_groups(walks, file).beside]
        ['m12', 'm12']
    """
    sheet = sheet_of(Path(os.path.expanduser(os.fspath(source))))
    rows = owners(sheet, data.names, single=False)
    column = sheet.place(FIRST)
    column = 1 if column is None and len(sheet.names) == 2 else column
    if column is None:
        raise DataError(f"{sheet.what} has no column called animal or group; it has {listed(sheet.header, 12)}.")
    found = dict(zip(rows, sheet.cells(column), strict=True))
    if len(found) < len(rows):
        raise DataError(f"{sheet.what} has several lines for one recording; give one for each.")
    lost = [name for i, name in enumerate(data.names) if not found.get(i)]
    if lost:
        raise DataError(f"{sheet.what} has no group of {listed(lost)}; give every recording one.")
    carried = data.beside or (NOTHING,) * len(data.names)
    return data._replace(beside=tuple(one._replace(group=found[i]) for i, one in enumerate(carried)))
