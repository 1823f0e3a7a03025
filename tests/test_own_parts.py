"""Networks, likelihoods, blocks and optimisers of one's own, as a user would write them outside of the package."""

import dataclasses
import math
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.scipy.special import gammaln, i0e

import svae
from svae import ConfigError, nets
from svae.expfam import Gaussian
from svae.pgm import Markov, Normal, graph
from svae.report import report
from svae.store import StoreError
from svae.view import _answers
from svae.view._session import Session

OPTIONS = {"hidden": (4,), "steps": 2, "warmup_steps": 1, "batch_size": 2, "network": "affine", "held_out": 0.0}


class Gru(eqx.Module):
    """A recognition network of one's own: a GRU over the frames, and two maps to the potential."""

    cell: eqx.nn.GRUCell
    guess: eqx.nn.Linear
    sure: eqx.nn.Linear

    def __init__(self, P: int, D: int, *, key):
        keys = jax.random.split(key, 3)
        self.cell = eqx.nn.GRUCell(P, 6, key=keys[0])
        self.guess, self.sure = eqx.nn.Linear(6, D, key=keys[1]), eqx.nn.Linear(6, D, key=keys[2])

    def __call__(self, y, mask):
        seen = mask & ~jnp.any(jnp.isnan(y), -1)
        shown = jnp.where(jnp.isnan(y), 0, y)

        def step(h, y_t):
            h = self.cell(y_t, h)
            return h, h

        h = jax.lax.scan(step, jnp.zeros(6, y.dtype), shown)[1]
        J = jnp.where(seen[:, None], jax.nn.softplus(jax.vmap(self.sure)(h)), 0)
        return Gaussian(jax.vmap(jnp.diag)(J), J * jax.vmap(self.guess)(h))


class VonMises(nets.AbstractLikelihood):
    """Angles: exp(κ cos(y - location)) / 2π I₀(κ), with one learned κ."""

    log_kappa: jax.Array

    title: ClassVar[str] = "von Mises"
    low: ClassVar[float] = -math.pi
    high: ClassVar[float] = math.pi
    standardized: ClassVar[bool] = False

    def log_prob(self, y, location, features):
        seen, kappa = ~jnp.isnan(y), jnp.exp(self.log_kappa)
        constant = jnp.log(2 * jnp.pi * i0e(kappa))
        each = kappa * (jnp.cos(jnp.where(seen, y, 0) - location) - 1) - constant
        return jnp.sum(jnp.where(seen, each, 0))

    def mean(self, location):
        return (location + jnp.pi) % (2 * jnp.pi) - jnp.pi

    def sample(self, location, features, *, key):
        """By its density on a grid."""
        grid = jnp.linspace(-jnp.pi, jnp.pi, 721)[:-1]
        drawn = grid[jax.random.categorical(key, jnp.exp(self.log_kappa) * jnp.cos(grid), shape=location.shape)]
        return self.mean(location + drawn)


class NegativeBinomial(nets.AbstractLikelihood):
    """Counts with mean softplus(location) and variance mean + mean² / r."""

    log_r: jax.Array

    title: ClassVar[str] = "negative binomial"
    low: ClassVar[float] = 0.0
    discrete: ClassVar[bool] = True
    standardized: ClassVar[bool] = False

    def log_prob(self, y, location, features):
        seen, r, mean = ~jnp.isnan(y), jnp.exp(self.log_r), self.mean(location)
        y = jnp.where(seen, y, 0)
        ways = gammaln(y + r) - gammaln(r) - gammaln(y + 1)
        each = ways + r * jnp.log(r / (r + mean)) + y * jnp.log(mean / (r + mean))
        return jnp.sum(jnp.where(seen, each, 0))

    def mean(self, location):
        return jax.nn.softplus(location)

    def sample(self, location, features, *, key):
        key_rate, key_count = jax.random.split(key)
        r = jnp.exp(self.log_r)
        rate = jax.random.gamma(key_rate, r, location.shape) * self.mean(location) / r
        return jax.random.poisson(key_count, rate).astype(location.dtype)


@dataclasses.dataclass(frozen=True)
class Ring(Markov):
    """A hidden chain on a ring: a state is followed by itself or by one of its neighbours, before it has seen data."""

    def prior(self, sizes):
        found = super().prior(sizes)
        K = self.size
        near = np.eye(K) + np.roll(np.eye(K), 1, 1) + np.roll(np.eye(K), -1, 1)
        rows = type(found.transitions)(found.transitions.counts * jnp.asarray(np.where(near > 0, 1.0, 1e-2)))
        return found._replace(transitions=rows)


def ring():
    return graph(z=Ring(4), x=Normal(2, given="z"))


class Case(NamedTuple):
    parts: dict  # of `make`
    data: list
    own: str  # what the folder says


def cases():
    rng = np.random.default_rng(0)
    walks = [np.cumsum(rng.normal(size=(30, 3)), 0) for _ in range(2)]
    angles = [(y + np.pi) % (2 * np.pi) - np.pi for y in walks]
    gru = Gru(3, 2, key=jax.random.key(1))
    return {
        "recognition": Case({"recognize": gru, "model": "hmm", "states": 3}, walks, "a recognition network"),
        "likelihood": Case({"observe": VonMises(jnp.zeros(())), "model": "lds"}, angles, "an observation network"),
        "block": Case({"pgm": ring()}, walks, "a graph"),
    }


def made(case, **more):
    sizes = {} if "pgm" in case.parts else {"latent_dim": 2}
    return svae.make((3,), **case.parts, **sizes, **OPTIONS | more)


@pytest.mark.parametrize("likelihood", [VonMises(jnp.zeros(()) + 1), NegativeBinomial(jnp.zeros(()))])
def test_likelihoods_pass_the_check(likelihood):
    svae.testing.check_likelihood(likelihood)


def test_our_likelihoods_pass_the_check():
    for known in (nets.Bernoulli(), nets.Poisson(), nets.GaussianNoise(nets.FixedScale(0.7))):
        svae.testing.check_likelihood(known)


def test_a_wrong_likelihood_is_named():
    class Shifted(nets.Poisson):
        def sample(self, location, features, *, key):
            return 1 + super().sample(location, features, key=key)

    with pytest.raises(AssertionError, match="the mean of draws"):
        svae.testing.check_likelihood(Shifted())


def test_a_block_passes_the_check():
    svae.testing.check_block(Ring(3))


@pytest.mark.parametrize("name", ["recognition", "likelihood", "block"])
def test_it_is_fitted_saved_loaded_forecast_reported_and_viewed(name, tmp_path):
    case = cases()[name]
    model, data = made(case), svae.load(dict(zip("ab", case.data, strict=True)), fps=10.0)
    svae.runs.start(tmp_path / "run", data, model.config)
    run = svae.runs.Run(tmp_path / "run", like=model)
    svae.runs.train(run, data)
    with pytest.raises(StoreError, match=rf"{case.own}.* of its own: load it with like=make"):
        svae.load_model(tmp_path / "run" / "model")
    fitted = svae.load_model(tmp_path / "run" / "model", like=made(case))
    assert type(fitted.recognize) is type(model.recognize) and type(fitted.observe) is type(model.observe)
    ahead = svae.forecast(fitted, data, horizon=3, samples=2, key=jax.random.key(0))
    assert np.isfinite(ahead.samples[0]).all()
    if name != "likelihood":  # one report and one viewer for the parts that reach them by other ways
        return
    assert np.abs(ahead.samples[0]).max() <= np.pi + 1e-6
    assert report(run).page.stat().st_size > 10_000
    session = Session(run)
    assert _answers.run(session, {})["latents"] == 2 and _answers.recording(session, {"recording": "0"})["lanes"]
    assert len(_answers.decode(session, {"x": "0,1"}))


def test_own_networks_begin_as_they_are_and_say_so():
    case = cases()["recognition"]
    first = next(iter(svae.fit(made(case), case.data)))
    assert "The recognition network is your own" in first.note
    assert "Gru of your own" in repr(first.model)


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"recognize": lambda y, mask: None}, "recognize= must be an equinox module"),
        (
            {"recognize": Gru(2, 2, key=jax.random.key(0))},
            r"recognize.y, mask. fails for arguments of",
        ),
        ({"recognize": Gru(3, 5, key=jax.random.key(0))}, r"\.J has the shape \(3, 5, 5\), but must have \(3, 2, 2\)"),
        ({"observe": eqx.nn.Identity()}, "log_prob, mean, simulate, draw and kl, or a likelihood"),
        ({"observe": nets.Poisson(), "likelihood": "poisson"}, "likelihood is said by observe="),
        ({"likelihood": "own"}, "give it to make as observe="),
    ],
)
def test_what_does_not_follow_its_protocol_is_one_sentence(parts, words):
    with pytest.raises(ConfigError, match=words) as caught:
        svae.make((3,), model="vae", latent_dim=2, **parts)
    assert "\n" not in str(caught.value)


def test_data_outside_the_range_of_a_likelihood_are_refused():
    case = cases()["likelihood"]
    with pytest.raises(svae.DataError, match="likelihood=von Mises"):
        next(iter(svae.fit(made(case), [100 * y for y in case.data])))


def test_the_optimiser_is_any_optax_chain():
    """One that does nothing leaves the recognition network as PCA made it; its certainty would follow learned noise."""
    y = np.random.default_rng(0).normal(size=(40, 3))
    model = svae.make((3,), model="vae", latent_dim=2, variance="fixed", **OPTIONS)
    steps = list(svae.fit(model, y, optimizer=optax.set_to_zero()))
    first, last = (jax.tree.leaves(eqx.filter(s.model.recognize, eqx.is_array)) for s in (steps[0], steps[-1]))
    assert all(np.array_equal(a, b) for a, b in zip(first, last, strict=True))
