"""The model: a latent graphical model, q(theta), a recognition network and an observation network."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, PRNGKeyArray

from svae import _reprs
from svae._compiling import briefly
from svae._networks import check_networks, network_of
from svae.config import NETWORKS, OWN, Config, ConfigError
from svae.data import Beside, Layout, Preprocess, Standardize
from svae.data.beside import NOTHING
from svae.expfam import MNIW, NIW, Dirichlet, map_families
from svae.named import DEFAULT_STATES, Sizes
from svae.nets import (
    OBSERVATION_NETWORKS,
    AbstractLikelihood,
    GaussianWeights,
    Places,
    SeenFrame,
    SeenLatent,
    as_it_is,
    make_observation,
    make_recognition,
    no_places,
)
from svae.pgm import Graph, Posterior, from_tables, named, to_tables

OF_NETWORKS = ("network", "hidden", "precision", "likelihood", "variance", "weights")  # options
SURE = 1e4  # nats by which a label prefers its state


class SVAE(eqx.Module):
    """p(theta) p(x | theta) p(gamma) p(y | x, gamma), with q(theta), q(gamma) and the recognition network r(y; phi)."""

    pgm: Graph
    q: Any  # q(theta): a tree of conjugate priors shaped like pgm.prior
    recognize: Any  # r(y; phi), called as recognize(y, mask)
    observe: Any  # p(y | x, gamma), with q(gamma)
    scaling: Standardize  # the networks see (y - mean) / scale
    config: Config = eqx.field(static=True)
    shape: tuple[int, ...] = eqx.field(static=True)  # of a frame, after preprocess
    preprocess: Preprocess = eqx.field(static=True, default=Preprocess())  # what every raw frame goes through first
    layout: Layout = eqx.field(static=True, default=Layout())  # names, unit and frame rate of what it was fitted to
    places: Places | None = None  # what the place of a frame says of its state; None without states that have dynamics
    driven: Standardize | None = None  # inputs enter as (u - mean) / scale; None for a latent model that takes none

    def posterior(
        self, moments: Any, y: Array, mask: Bool[Array, " T"], start: Any = None, beside: Beside = NOTHING
    ) -> Posterior:
        """q*(x, z) of one sequence y (T, *event) in model units, given E_q t(theta) and what it carries beside y.

        Mean field begins at `start`.
        """
        inputs, group = beside.inputs if self.pgm.inputs else None, beside.group if self.pgm.by else None
        psi, said = self.recognize(y, mask), self._said(y, beside.labels)
        return self.pgm.infer(moments, psi, mask, start, said, inputs, group)

    def tightest(self, moments: Any, y: Array, mask: Array, start: Any = None, beside: Beside = NOTHING) -> Any:
        """q*(x, z) for bounds of log p(y): `posterior` without what places say of states, where mean field only begins.

        That keeps states where people see them. It is no part of p(y), and a bound is, as a rule, tighter without.
        """
        if self.places is None or self.pgm.shown is None:
            return self.posterior(moments, y, mask, start, beside)
        start = {self.pgm.shown: self.places(y)} if start is None else start
        return dataclasses.replace(self, places=None).posterior(moments, y, mask, start, beside)

    def _said(self, y: Array, labels: Array | None) -> dict[str, Array] | None:
        """Potentials on the states that are shown: of the place of each frame, and of its label."""
        if self.pgm.shown is None or (self.places is None and labels is None):
            return None
        found = [] if self.places is None else [self.places(y)]
        found += [] if labels is None else [of_labels(labels, self.pgm.states)]
        return {self.pgm.shown: sum(found[1:], found[0])}

    def __repr__(self) -> str:
        return _reprs.model_text(self)

    def _repr_html_(self) -> str:
        return _reprs.model_html(self)


def make(
    shape,
    config: Config | None = None,
    *,
    pgm: Graph | None = None,
    recognize: Any = None,
    observe: Any = None,
    key: PRNGKeyArray | None = None,
    preprocess: Preprocess | None = None,
    layout: Layout | None = None,
    **options,
) -> SVAE:
    """An SVAE for frames of `shape`, from a Config or from its options as keywords.

    Args:
        shape: The shape of one frame after `preprocess`: `(P,)` for P columns, `(H, W)` for images.
        config: Every option; instead of it, options by name. `help(svae.Config)` has them all.
        pgm: A latent graph of one's own, in place of one with a name.
        recognize: A recognition network of one's own, a `svae.nets.RecognizeProtocol`; None for the usual one.
        observe: An observation network of one's own, a `svae.nets.ObserveProtocol`, or a likelihood for the usual
            network, which derives from `svae.nets.AbstractLikelihood`.
        key: The random key of the first weights; without one, `config.seed` gives it.
        preprocess: What every raw frame goes through first, found by `svae.data.find_preprocess`; None for nothing.
        layout: Names of what a raw frame is made of (`svae.data.layout_of`); a fit finds it where it is not given.
        options: Options of `Config` by name.

    Returns:
        A model to be fitted: its networks are random and it has no units of data yet.

    Examples:
        >>> import svae
        >>> model = svae.make((3,), model="hmm", states=4, latent_dim=2)
        >>> model.config.states
        4
    """
    if config is not None and options:
        raise ConfigError("give make either a config or options by name, not both")
    options = options if pgm is None else _sizes(pgm, options)
    config = _with_observation(Config.make(options) if config is None else config, observe, options)
    shape = tuple(int(n) for n in np.atleast_1d(np.asarray(shape, int))) if np.size(shape) else ()
    key = jax.random.key(config.seed) if key is None else key
    key_q, key_recognize, key_observe = jax.random.split(key, 3)
    pgm = pgm_of(config) if pgm is None else _agreeing(pgm, config)
    own = recognize is not None or observe is not None
    if pgm.observed:
        config = _without_networks(config, shape, own)
        recognize, observe = _observed(shape, config.latent_dim)
    if recognize is None and observe is None and config.network in NETWORKS:
        recognize, observe = _networks(shape, _of_networks(config), key_recognize, key_observe)
    recognize = _recognition(shape, config, key_recognize) if recognize is None else recognize
    if observe is None or isinstance(observe, AbstractLikelihood):
        observe = _observation(shape, config, observe, key_observe)
    elif own and config.weights == "gaussian":
        raise ConfigError("weights='gaussian' is of our own observation networks: give yours a q(γ) by draw and kl")
    if own:
        check_networks(recognize, observe, shape, config.latent_dim)
    before = Preprocess() if preprocess is None else preprocess
    places = _places(pgm, shape, config)
    known = _groups_of(pgm, Layout() if layout is None else layout)
    pgm = pgm.for_groups(len(known.groups)) if known.groups else pgm
    driven = _plain_units((pgm.inputs,)) if pgm.inputs else None
    q = _spread(pgm.prior, key_q)
    model = SVAE(pgm, q, recognize, observe, _plain_units(shape), config, shape, before, known, places, driven)
    return jax.tree.map(_strong, model)


def _groups_of(pgm: Graph, layout: Layout) -> Layout:
    """The layout, without names of groups where the graph has nothing of their own."""
    return layout if pgm.by else dataclasses.replace(layout, groups=())


def with_groups_of(model: SVAE, layout: Layout) -> SVAE:
    """The model for recordings of this layout, with tables for its groups: at their prior where it had none."""
    layout = _groups_of(model.pgm, layout)
    pgm = model.pgm
    if layout.groups and pgm.groups != len(layout.groups):
        pgm = pgm.for_groups(len(layout.groups))
        model = dataclasses.replace(model, pgm=pgm, q=pgm.believed)
    return with_layout(model, layout)


def _plain_units(shape: tuple[int, ...]) -> Standardize:
    return jax.tree.map(jnp.asarray, Standardize(np.zeros(shape), np.ones(shape), np.zeros(shape)))


def _places(pgm: Graph, shape: tuple[int, ...], config: Config) -> Places | None:
    """For states that differ in how x moves; where they differ in its place, the latent model has it already."""
    if not (pgm.chained and pgm.dynamic) or pgm.states == 1 or pgm.observed:
        return None
    return no_places(int(np.prod(shape)), config.latent_dim, pgm.states, missing=config.missing)


def _sizes(pgm: Graph, options: dict) -> dict:
    """Options of a model with a graph of one's own, which has its sizes and prior counts itself.

    Where its blocks are ours the configuration keeps them, and with it a folder holds the whole model.
    """
    for name in ("model", "states", "latent_dim", "stickiness", "concentration", "inputs", "latent"):
        if name in options:
            raise ConfigError(f"{name} is said by the graph in pgm=; leave it out")
    if options.get("target_duration") is not None and not pgm.paced:
        raise ConfigError(
            "target_duration is followed by a chain without parents, which the graph does not show: leave it out"
        )
    return options | {"model": OWN, "latent_dim": pgm.dimensions, "latent": to_tables(pgm) or {}}


def _agreeing(pgm: Graph, config: Config) -> Graph:
    if config.model != OWN or config.latent_dim != pgm.dimensions:
        wanted = f'model = "{OWN}" and latent_dim = {pgm.dimensions}'
        raise ConfigError(f"a graph in pgm= needs a config with {wanted}; or give options by name in place of a config")
    return pgm


def pgm_of(config: Config) -> Graph:
    """The latent graph that a configuration names, or has in its tables."""
    if config.latent:
        return from_tables(config.tables())
    if config.model == OWN:
        raise ConfigError("a graph of one's own is not in its configuration: give it to make as pgm=")
    states = config.states or DEFAULT_STATES
    counts = config.concentration, config.stickiness
    pgm = named(config.model, Sizes(states, config.latent_dim, *counts, config.target_duration, config.inputs))
    if config.inputs and pgm.inputs != config.inputs:
        raise ConfigError(f"{config.model} has no dynamics that inputs could drive: take a model that has, such as lds")
    return pgm


def of_labels(labels: Array, K: int) -> Array:
    """Potentials (T, K) that hold each labelled frame in its state; 0 where there is no label."""
    return jnp.where((labels >= 0)[:, None], SURE * (jax.nn.one_hot(labels, K) - 1), 0)


def with_layout(model: SVAE, layout: Layout) -> SVAE:
    """The same model for recordings of this layout."""
    return dataclasses.replace(model, layout=layout)


def _strong(leaf):
    """An array whose type is its own: a weakly typed one would compile every step twice."""
    return jnp.asarray(leaf, leaf.dtype) if eqx.is_array(leaf) else leaf


def _recognition(shape, config: Config, key):
    return make_recognition(
        shape,
        config.latent_dim,
        network=network_of(config.network),
        hidden=config.hidden,
        precision=config.precision,
        missing=config.missing,
        key=key,
    )


@briefly
def _networks(shape: tuple[int, ...], config: Config, key_recognize: PRNGKeyArray, key_observe: PRNGKeyArray) -> tuple:
    """Both networks of ours: one program, where every draw of a shape would be one."""
    return _recognition(shape, config, key_recognize), _observation(shape, config, None, key_observe)


def _of_networks(config: Config) -> Config:
    """The options that networks are made from, all others at their defaults: whatever those are, the program is one."""
    return Config(latent_dim=config.latent_dim, missing=config.missing, **{n: getattr(config, n) for n in OF_NETWORKS})


def _without_networks(config: Config, shape: tuple[int, ...], own: bool) -> Config:
    """The configuration of a latent that is the frame itself; ConfigError where it asks for networks."""
    P = int(np.prod(shape))
    if own:
        raise ConfigError("the latent is observed, the frame itself: leave recognize= and observe= out")
    for name in OF_NETWORKS:
        if getattr(config, name) != getattr(Config, name):
            raise ConfigError(f"{name} is of networks, and the latent is observed, the frame itself: leave {name} out")
    if config.latent_dim > P:
        raise ConfigError(f"the latent is observed, and a frame has {P} numbers: latent_dim can be {P} at most")
    return dataclasses.replace(config, warmup_steps=0)


def _observed(shape: tuple[int, ...], D: int) -> tuple[SeenLatent, SeenFrame]:
    plane = as_it_is(int(np.prod(shape)), D)
    return SeenLatent(plane), SeenFrame(plane, shape)


def _with_observation(config: Config, observe: Any, options: dict) -> Config:
    """The configuration says that the likelihood is of one's own where it is."""
    if observe is None and config.likelihood == OWN:
        raise ConfigError("a likelihood of one's own is not in its configuration: give it to make as observe=")
    if observe is not None and options.get("likelihood", OWN) != OWN:
        raise ConfigError("likelihood is said by observe=; leave it out")
    return config if observe is None else dataclasses.replace(config, likelihood=OWN)


def _observation(shape, config: Config, likelihood: AbstractLikelihood | None, key):
    """Recognition that sees time has no counterpart in p(y_t | x_t), which looks at one latent: there it is residual.

    So it is beside a network of an installed package.
    """
    observation = make_observation(
        shape,
        config.latent_dim,
        network=config.network if config.network in OBSERVATION_NETWORKS else "residual",
        hidden=config.hidden,
        likelihood=config.likelihood if likelihood is None else likelihood,
        variance=config.variance,
        key=key,
    )
    return GaussianWeights(observation) if config.weights == "gaussian" else observation


@briefly
def _spread(prior, key):
    """q(theta) at the start: the prior, its means spread so that states differ, sure enough of them to be used."""
    keys = iter(jax.random.split(key, 8))

    def start(family):
        if isinstance(family, Dirichlet):
            return type(family)(family.counts + 1.0)
        if isinstance(family, NIW):
            noise = jax.random.normal(next(keys), family.m.shape, family.m.dtype)
            return NIW(family.m + noise, family.S * 4, family.n + 1, family.nu * 4)
        noise = jax.random.normal(next(keys), family.M.shape, family.M.dtype)
        return MNIW(family.M + 0.05 * noise, family.S * 4, family.K * 4, family.nu * 4)

    return map_families(start, prior)
