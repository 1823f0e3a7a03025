"""A run as xarray's tree of data sets, with the groups of ArviZ and the names of movement."""

import warnings
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import jax
import numpy as np

from svae import expfam
from svae._sealed import own_version
from svae.adapters._layout import Table, frames_of, side_by_side
from svae.data import DataError, Recordings, recordings
from svae.data.readers.optional import need
from svae.queries.batches import at_least_one
from svae.runs import Posterior, Run, RunError
from svae.runs._provenance import require_same


def to_datatree(run: Any, data: Any = None, *, draws: int = 200, seed: int = 0) -> Any:
    """A run as an `xarray.DataTree` with ArviZ's groups; poses are named as the package movement names them.

    `posterior` has draws of the parameters θ ~ q(θ) with the dimensions chain and draw. `observed_data` has the
    recordings as they lie in their files: for keypoints `position` (time, space, keypoints, individuals) and
    `confidence`. `posterior_summary`, a group of our own, has for each frame the most probable state, the
    probabilities of all states, and mean and standard deviation of the latents. A recording is an individual; shorter
    ones are filled up with NaN, their states with -1, and `frames` says how long each is.

    Args:
        run: A finished run: what `svae.runs.Run(folder)` gives, or the path of its folder.
        data: The recordings of the run, where they can no longer be read from where they were.
        draws: The number of draws of the parameters.
        seed: The seed of the draws.

    Returns:
        An `xarray.DataTree`; it needs the package xarray, of the extra `io`.

    Examples:
        >>> import tempfile
        >>> import numpy as np
        >>> import svae
        >>> y = svae.load({"mouse": np.random.default_rng(0).normal(size=(40, 3))})
        >>> options = svae.Config(model="gaussian", latent_dim=2, hidden=(), steps=1, warmup_steps=0)
        >>> folder = tempfile.TemporaryDirectory()
        >>> run = svae.runs.start(folder.name + "/run", y, options)
        >>> _ = svae.runs.train(run, y)
        >>> tree = svae.to_datatree(run, y, draws=5)
        >>> tree["posterior/x_normal_covariance"].dims
        ('chain', 'draw', 'latent', 'latent_2')
        >>> folder.cleanup()
    """
    xarray, source = need("xarray", "A DataTree"), run if isinstance(run, Run) else Run(run)
    raw, why = _recordings(source, data)
    model = source.model()
    parameters = _parameters(model, at_least_one("draws", draws), seed)
    groups = {"posterior": parameters, "posterior_summary": _summary(source, bool(model.pgm.discrete))}
    if raw is None:
        warnings.warn(f"The tree has no observed_data: {why}", stacklevel=2)
    else:
        groups["observed_data"] = frames_of(raw)
    return xarray.DataTree.from_dict({name: _dataset(xarray, table, source) for name, table in groups.items()})


def _recordings(run: Run, data: Any) -> tuple[Recordings | None, str]:
    """The recordings that the run was started with, or why they cannot be had."""
    if data is None:
        try:
            return run.load_data(), ""
        except (RunError, DataError, OSError) as error:
            return None, str(error)
    given = recordings(data)
    require_same(run.provenance()["data"], given, run.path)
    return given, ""


def _dataset(xarray, table: Table, run: Run) -> Any:
    """The data set of a group, with the attributes that ArviZ asks for."""
    attributes = {
        "created_at": datetime.now(UTC).isoformat(),
        "creation_library": "svae",
        "creation_library_version": own_version(),
        "inference_library": "svae",
        "inference_library_version": str(run.provenance().get("versions", {}).get("svae", "unknown")),
        "run": str(run.path),
    }
    return xarray.Dataset(table.variables, table.coordinates, attributes | table.attributes)


def _parameters(model: Any, draws: int, seed: int) -> Table:
    """θ ~ q(θ), one chain of independent draws."""
    keys = jax.random.split(jax.random.key(seed), draws)
    drawn = jax.vmap(lambda key: expfam.sample(model.q, key=key))(keys)
    family_of = {_name(path): family for path, family in _families(model.q)}
    leaves = jax.tree_util.tree_leaves_with_path(drawn)
    found = {_name(path): np.asarray(leaf)[None] for path, leaf in leaves}
    tilted = (expfam.Dirichlet, expfam.TiltedDirichlet)
    variables = {}
    for name, values in found.items():
        if isinstance(family_of.get(name), tilted):  # these draw logarithms
            variables[name] = _states(name, np.exp(values), model)
        elif name.endswith("_sqrt"):
            covariance = values @ values.swapaxes(-1, -2)
            variables[f"{name.removesuffix('_sqrt')}_covariance"] = _latents(name, covariance, model, "latent_2")
        elif name.endswith("_W"):
            variables[f"{name.removesuffix('_W')}_weights"] = _latents(name, values, model, f"{name[:-2]}_regressor")
        else:
            variables[name] = (("chain", "draw", *_plain(name, values.ndim - 2)), values)
    coordinates = {"chain": [0], "draw": np.arange(draws)}
    return Table(variables, coordinates, {"sampling": "independent draws from q(theta), which is variational"})


def _families(q):
    return jax.tree_util.tree_leaves_with_path(q, is_leaf=lambda node: hasattr(node, "natural"))


def _name(path) -> str:
    return jax.tree_util.keystr(path, simple=True, separator="_")


def _plain(name, number):
    return tuple(f"{name}_dim_{i}" for i in range(number))


def _states(name, values, model):
    """Probabilities: of states, or of the next state in each; other axes have names of their own."""
    K, shape = model.pgm.states, values.shape[2:]
    one = len(model.pgm.discrete) == 1
    axes = {(K,): ("state_index",), (K, K): ("state_index", "next_state_index")} if one else {}
    return ("chain", "draw", *axes.get(shape, _plain(name, len(shape)))), values


def _latents(name, values, model, last):
    """Weights or a covariance of the latents, of each state where there is one discrete block."""
    before = values.shape[2:-2]
    states = ("state_index",) if before == (model.pgm.states,) and model.pgm.discrete else _plain(name, len(before))
    return ("chain", "draw", *states, "latent", last), values


def _summary(run: Run, discrete: bool) -> Table:
    """What the run says of each frame, recordings side by side; the names are those of its netCDF files."""
    answers = [run.posterior(name) for name in run.recordings()]
    rate, counted = run.provenance().get("fps"), any(bout.unit == "frames" for bout in run.bouts())
    table, stacked = side_by_side(run.recordings(), [one.time for one in answers], rate, not counted)
    table.variables.update(
        latent_mean=(("time", "latent", "individuals"), stacked([one.mean for one in answers], np.nan)),
        latent_sd=(("time", "latent", "individuals"), stacked([one.sd for one in answers], np.nan)),
        reconstruction_error=(("time", "individuals"), stacked([one.error for one in answers], np.nan)),
    )
    for i, part in enumerate(run.each() if discrete else []):
        found = [part.posterior(name) for name in run.recordings()]
        table = _with_states(table, found, part.names, stacked, f"_{part.block}" if i else "")
    return table


def _with_states(table: Table, answers: list[Posterior], names: dict[int, str], stacked: Callable, end: str) -> Table:
    """The same, and the states of a block with their names; those of all blocks but the shown one end with its name."""
    K = answers[0].probability.shape[1]
    probabilities = stacked([one.probability for one in answers], np.nan)
    index, called = f"state_index{end}", [names.get(k, f"state {k}") for k in range(K)]
    table.variables[f"state{end}"] = (("time", "individuals"), stacked([one.state for one in answers], -1))
    table.variables[f"state_probability{end}"] = (("time", index, "individuals"), probabilities)
    table.coordinates.update({index: np.arange(K), f"state_name{end}": (index, called)})
    return table
