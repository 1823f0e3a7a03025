"""Parquet tables through pyarrow."""

from pathlib import Path

from ..recordings import DataError
from .optional import need
from .pieces import Contents, require_in_memory
from .tables import Table, table_contents

MOST_CELLS = 2**27


def read_parquet(path: Path, dataset: str | None) -> Contents:
    """The columns of a table, as those of a csv file."""
    need("pyarrow", f"{path.name} is parquet, which")
    import pyarrow.parquet

    with pyarrow.parquet.ParquetFile(path) as file:
        rows, columns = file.metadata.num_rows, file.metadata.num_columns
        packed = sum(file.metadata.row_group(i).total_byte_size for i in range(file.metadata.num_row_groups))
        require_in_memory(path.name, packed)
        if rows * columns > MOST_CELLS:
            raise DataError(f"{path.name} has {rows} rows of {columns} columns, too many to hold; save it as .npy.")
        table = file.read()
    kept = [name for name in table.column_names if not name.startswith("__index") or _is_time(table, name)]
    cells = [["" if v is None else str(v) for v in table.column(name).to_pylist()] for name in kept]
    names = ["time" if name.startswith("__index") else name for name in kept]
    return table_contents(Table(names, [list(row) for row in zip(*cells, strict=True)], path.name), dataset)


def _is_time(table, name):
    return str(table.schema.field(name).type).startswith(("timestamp", "date"))
