"""MATLAB files up to version 7, and netCDF-3, both through scipy, which jax brings along."""

import os
from pathlib import Path

import numpy as np

from ..recordings import DataError
from .arrays import DEFLATE_RATIO
from .choose import Candidate, choose
from .pieces import Contents, numbers_in, require_in_memory, require_size

TYPES = {"double": "f8", "single": "f4", "int8": "i1", "uint8": "u1", "int16": "i2", "uint16": "u2", "int32": "i4",
         "uint32": "u4", "int64": "i8", "uint64": "u8", "logical": "?"}  # fmt: skip


def read_matlab(path: Path, dataset: str | None) -> Contents:
    """Numeric variables of a MATLAB file; sizes are compared with the file before any is read."""
    from scipy.io import whosmat

    return choose([_variable(path, *entry) for entry in whosmat(path)], dataset, path.name)


def _variable(path, name, shape, kind):
    dtype = np.dtype(TYPES.get(kind, "O"))
    if dtype.kind == "O":
        return Candidate(name, tuple(shape), dtype, lambda: None)
    require_size(f"{name} of {path.name}", shape, 1, DEFLATE_RATIO * os.path.getsize(path))
    squeezed = (max(shape),) if len(shape) == 2 and min(shape) == 1 else tuple(shape)

    def opened():
        from scipy.io import loadmat

        require_in_memory(f"{name} of {path.name}", numbers_in(shape) * dtype.itemsize)
        found = loadmat(path, variable_names=[name])[name]
        if found.dtype.kind not in "biuf":
            raise DataError(f"{name} of {path.name} holds {found.dtype} values, not numbers; give another variable.")
        return np.ascontiguousarray(found).reshape(squeezed)

    return Candidate(name, squeezed, dtype, opened)


def read_netcdf(path: Path, dataset: str | None) -> Contents:
    """Variables of a netCDF-3 file."""
    from scipy.io import netcdf_file

    require_in_memory(path.name, os.path.getsize(path))
    with netcdf_file(path, "r", mmap=False) as file:
        held = {name: np.array(variable.data) for name, variable in file.variables.items()}
    return choose([Candidate(n, a.shape, a.dtype, lambda a=a: a) for n, a in held.items()], dataset, path.name)
