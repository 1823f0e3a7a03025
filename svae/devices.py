"""Many devices and many processes: who holds which rows of a batch, and how values get there and back.

A batch is shared out by rows over a mesh with one axis; models, optimiser states and keys are on every device of it. On
one device nothing here does anything. Processes take the same steps; what is chosen outside of a step is chosen by the
first of them, and the others take its values bit for bit, whatever machine they are on.
"""

import contextlib
import functools
import io
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

AXIS = "rows"
A_DAY = 86_400_000  # milliseconds
LOST = ("gloo", "nccl", "coordination", "connection", "heartbeat", "barrier")  # what errors of lost processes speak of


class ProcessError(RuntimeError):
    """Processes that cannot work together, or of which one is gone, and what to do, in one sentence."""


# --- devices ------------------------------------------------------------------------------------------------------


def mesh(rows: int) -> Mesh | None:
    """The devices that can share `rows` rows evenly, as many in each process; None where that is one device."""
    processes = jax.process_count()
    if rows % processes:
        raise ProcessError(
            f"a batch of {rows} sequences cannot be shared by {processes} processes; use a multiple for batch_size"
        )
    by_process = [[d for d in jax.devices() if d.process_index == p] for p in range(processes)]
    each = max(n for n in range(1, min(map(len, by_process)) + 1) if rows % (n * processes) == 0)
    devices = tuple(d for own in by_process for d in own[:each])
    return _mesh(devices) if len(devices) > 1 else None


@functools.cache
def _mesh(devices: tuple) -> Mesh:
    mesh = Mesh(np.array(devices), (AXIS,), axis_types=(AxisType.Auto,))
    if jax.process_count() > 1:  # devices that reach each other for the first time give up after 30 s
        _meet(f"devices {len(devices)}")
        with others_alive(), over(mesh):
            ones = spread(np.ones(len(mesh.local_devices), np.float32), mesh)
            jax.block_until_ready(jax.jit(jax.numpy.sum)(ones))
    return mesh


def over(mesh: Mesh | None) -> contextlib.AbstractContextManager:
    """Programs that are called inside share their rows over the mesh."""
    return contextlib.nullcontext() if mesh is None else jax.set_mesh(mesh)


def replicated(tree: Any, mesh: Mesh | None) -> Any:
    """The arrays of a tree on every device."""
    if mesh is None:
        return tree

    def copies(x):
        here = [jax.device_put(x, device) for device in mesh.local_devices]
        return jax.make_array_from_single_device_arrays(x.shape, NamedSharding(mesh, P()), here)

    return jax.tree.map(lambda x: copies(x) if _is_array(x) else x, tree)


def _is_array(x):
    return isinstance(x, jax.Array | np.ndarray)


def local(tree: Any) -> Any:
    """What `replicated` gave, or a program made of it, on one device of this process; nothing is copied."""
    several = lambda x: isinstance(x, jax.Array) and len(x.sharding.device_set) > 1  # noqa: E731
    return jax.tree.map(lambda x: x.addressable_data(0) if several(x) else x, tree)


def own(rows: np.ndarray) -> np.ndarray:
    """The rows of a batch that this process reads."""
    each = len(rows) // jax.process_count()
    return rows[jax.process_index() * each :][:each]


def spread(tree: Any, mesh: Mesh | None) -> Any:
    """Arrays with this process's rows of a batch as arrays of the whole batch, each row on its device."""
    if mesh is None:
        return tree
    put = lambda x: jax.make_array_from_process_local_data(NamedSharding(mesh, P(AXIS)), x)  # noqa: E731
    return jax.tree.map(put, tree)


# --- inside a program ---------------------------------------------------------------------------------------------


def is_shared() -> bool:
    """Whether the program that is being traced shares its rows over a mesh."""
    return AXIS in jax.sharding.get_abstract_mesh().axis_names


def by_rows(function: Callable, everywhere: Any, rows: Any) -> Any:
    """function(everywhere, rows) of each device's own rows; what it gives has a new leading axis, one entry a device.

    The compiler cannot see into kernels, and would bring all rows to every device. Derivatives add up over the devices.
    """
    one = lambda everywhere, rows: jax.tree.map(lambda x: x[None], function(everywhere, rows))  # noqa: E731
    return jax.shard_map(one, in_specs=(P(), P(AXIS)), out_specs=P(AXIS), check_vma=False)(everywhere, rows)


def everywhere(tree: Any) -> Any:
    """The arrays of a tree with their whole value on every device."""
    if not is_shared():
        return tree
    arrays, static = eqx.partition(tree, eqx.is_array)
    return eqx.combine(jax.lax.with_sharding_constraint(arrays, P()), static)


# --- processes ----------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def others_alive() -> Iterator[None]:
    """What devices say when another process is gone, as one sentence."""
    try:
        yield
    except jax.errors.JaxRuntimeError as error:
        if jax.process_count() == 1 or not any(word in str(error).lower() for word in LOST):
            raise
        raise ProcessError(gone(jax.process_index(), jax.process_count())) from error


def gone(process: int, processes: int) -> str:
    """What is known when the processes cannot reach each other any more, and what to do."""
    which = f"process {1 - process}" if processes == 2 else "another process"
    return f"{which} of the {processes} of this run is gone; start all of them again with --resume"


def agreed(tree: Any) -> Any:
    """The first process's values of a tree of arrays, in every process and bit for bit."""
    if jax.process_count() == 1:
        return tree
    arrays, static = eqx.partition(tree, _is_array)
    leaves, form = jax.tree.flatten(arrays)
    data = io.BytesIO(_of_first(b"".join(np.asarray(leaf).tobytes() for leaf in leaves)))
    return eqx.combine(jax.tree.unflatten(form, [_read(data, leaf) for leaf in leaves]), static)


def _read(data, like):
    """The next array, of the kind, shape and type of `like`."""
    found = np.frombuffer(data.read(like.nbytes), like.dtype).reshape(like.shape)
    return jax.numpy.asarray(found) if isinstance(like, jax.Array) else found


def text_of_first(text: str) -> str:
    """The first process's text, in every process."""
    if jax.process_count() == 1:
        return text
    data = text.encode()
    size = int(largest([len(data) if jax.process_index() == 0 else 0])[0])
    return _of_first(data[:size].ljust(size)).decode()


@functools.cache
def _meet(where: str) -> None:
    """Wait for the other processes, once for each place, however long they take to get there."""
    from jax._src.distributed import global_state  # the one barrier that is no computation; jax shows it nowhere else

    with others_alive():
        global_state.client.wait_at_barrier(f"svae {where}", A_DAY)


def _of_first(data: bytes) -> bytes:
    """The first process's bytes; all have as many. They travel as integers: sums of floats would lose signs of zero."""
    from jax.experimental.multihost_utils import broadcast_one_to_all

    _meet("values")
    words = np.frombuffer(data.ljust(-(-len(data) // 4) * 4, b"\0"), np.int32)
    with others_alive():
        return np.asarray(broadcast_one_to_all(words)).tobytes()[: len(data)]


def largest(numbers: Sequence[int]) -> np.ndarray:
    """The largest over all processes, number by number."""
    from jax.experimental.multihost_utils import process_allgather

    own = np.asarray(numbers, np.int32)
    if jax.process_count() == 1:
        return own
    _meet("values")
    with others_alive():
        return np.asarray(process_allgather(own)).max(0)


def part() -> None:
    """The processes have no more steps to take together; each may go on by itself, or end."""
    if jax.process_count() > 1 and jax.distributed.is_initialized():
        with others_alive():
            jax.distributed.shutdown()
