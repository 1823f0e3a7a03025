"""The model: a latent graphical model, q(theta), a recognition network and an observation network."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from svae.config import Config, ConfigError
from svae.data import Preprocess, Standardize
from svae.expfam import MNIW, NIW, Dirichlet, map_families
from svae.nets import GaussianWeights, make_observation, make_recognition
from svae.pgm import PGMS, AbstractPGM

DEFAULT_STATES = 10


class SVAE(eqx.Module):
    """p(theta) p(x | theta) p(gamma) p(y | x, gamma), with q(theta), q(gamma) and the recognition network r(y; phi)."""

    pgm: AbstractPGM
    q: Any  # q(theta): a tree of conjugate priors shaped like pgm.prior
    recognize: eqx.Module  # r(y; phi)
    observe: eqx.Module  # p(y | x, gamma), with q(gamma)
    scaling: Standardize  # the networks see (y - mean) / scale
    config: Config = eqx.field(static=True)
    shape: tuple[int, ...] = eqx.field(static=True)  # of a frame, after preprocess
    preprocess: Preprocess = eqx.field(static=True, default=Preprocess())  # what every raw frame goes through first


def make(
    shape,
    config: Config | None = None,
    *,
    key: PRNGKeyArray | None = None,
    preprocess: Preprocess | None = None,
    **options,
) -> SVAE:
    """An SVAE for frames of `shape`, from a Config or from its options as keywords: make((30, 30), model="slds").

    `shape` is that of a frame after `preprocess`; `svae.data.find_preprocess` finds one for recordings. None = none.
    """
    if config is not None and options:
        raise ConfigError("give make either a config or options by name, not both")
    config = Config.make(options) if config is None else config
    shape = tuple(int(n) for n in np.atleast_1d(np.asarray(shape, int))) if np.size(shape) else ()
    key = jax.random.key(config.seed) if key is None else key
    key_q, key_recognize, key_observe = jax.random.split(key, 3)
    pgm = PGMS[config.model](
        config.latent_dim,
        config.states or DEFAULT_STATES,
        concentration=config.concentration,
        stickiness=config.stickiness,
    )
    scaling = Standardize(jnp.zeros(shape), jnp.ones(shape), jnp.zeros(shape))
    recognize = _recognition(shape, config, key_recognize)
    observe = _observation(shape, config, key_observe)
    before = Preprocess() if preprocess is None else preprocess
    model = SVAE(pgm, _spread(pgm.prior, key_q), recognize, observe, scaling, config, shape, before)
    return jax.tree.map(_strong, model)


def _strong(leaf):
    """An array whose type is its own: a weakly typed one would compile every step twice."""
    return jnp.asarray(leaf, leaf.dtype) if eqx.is_array(leaf) else leaf


def _recognition(shape, config: Config, key):
    return make_recognition(
        shape,
        config.latent_dim,
        network=config.network,
        hidden=config.hidden,
        precision=config.precision,
        missing=config.missing,
        key=key,
    )


def _observation(shape, config: Config, key):
    """Temporal recognition has no counterpart in p(y_t | x_t), which looks at one latent: there it is residual."""
    observation = make_observation(
        shape,
        config.latent_dim,
        network={"temporal": "residual", "recurrent": "residual"}.get(config.network, config.network),
        hidden=config.hidden,
        likelihood=config.likelihood,
        variance=config.variance,
        key=key,
    )
    return GaussianWeights(observation) if config.weights == "gaussian" else observation


def _spread(prior, key):
    """q(theta) at the start: the prior, its means spread so that states differ, sure enough of them to be used."""
    keys = iter(jax.random.split(key, 8))

    def start(family):
        if isinstance(family, Dirichlet):
            return Dirichlet(family.counts + 1.0)
        if isinstance(family, NIW):
            noise = jax.random.normal(next(keys), family.m.shape, family.m.dtype)
            return NIW(family.m + noise, family.S * 4, family.n + 1, family.nu * 4)
        noise = jax.random.normal(next(keys), family.M.shape, family.M.dtype)
        return MNIW(family.M + 0.05 * noise, family.S * 4, family.K * 4, family.nu * 4)

    return map_families(start, prior)
