"""The density of the baselines against dense Gaussians, and their numbers where the truth is known."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import null_space
from scipy.stats import multivariate_normal

from svae.baselines import KINDS, baselines
from svae.baselines._dynamics import fit, log_likelihood
from svae.baselines._frames import Projection, Stretches, project, scores
from svae.config import Config
from svae.fitting.prepare import prepare
from svae.model import make
from svae.nets import LEAST_SD
from svae.pgm import Dynamics, Markov, graph

CONFIG = Config(states=2, target_duration=6.0)
A = np.array([[0.9, -0.3, 0.0], [0.3, 0.9, 0.1], [0.0, 0.0, 0.5]])
UNIT = np.array([1.0, 10.0, 300.0])


def of_frames(found, z):
    x, rest = scores(found, z)
    return Stretches([x], [rest], 1.0, 1.0, 0.0)


def projection(P, D):
    rng = np.random.default_rng(0)
    V = np.linalg.qr(rng.normal(size=(P, D)))[0]
    return Projection(V, rng.normal(size=P), rng.uniform(0.5, 2, D), rng.uniform(0.1, 1, P))


def walk(T=300, D=2, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(T, D))
    for t in range(1, T):
        x[t] = 0.8 * x[t - 1] + 0.6 * x[t]
    return x


def dense(found, theta, T):
    """Mean (T P,) and covariance (T P, T P) of T frames whose scores follow x_t = A x_{t-1} + b + noise."""
    V, D, theta = found.V, len(found.sd), theta.x
    W, Q = np.asarray(theta.dynamics.W, float), np.asarray(theta.dynamics.sqrt, float)
    first = np.asarray(theta.first.W, float)[:, 0], np.asarray(theta.first.sqrt, float)
    mean, cov = np.zeros((T, D)), np.zeros((T, T, D, D))
    mean[0], cov[0, 0] = first[0], first[1] @ first[1].T
    for t in range(1, T):
        mean[t] = W[:, :D] @ mean[t - 1] + W[:, D]
        cov[t, t] = W[:, :D] @ cov[t - 1, t - 1] @ W[:, :D].T + Q @ Q.T
        for s in range(t):
            cov[t, s] = W[:, :D] @ cov[t - 1, s]
            cov[s, t] = cov[t, s].T
    lift, U = V * found.sd, null_space(V.T)
    rest = U @ (U.T @ np.diag(found.noise) @ U) @ U.T
    joint = lift @ cov @ lift.T + np.eye(T)[:, :, None, None] * rest
    P = len(V)
    return (found.centre + mean @ lift.T).reshape(-1), joint.transpose(0, 2, 1, 3).reshape(T * P, T * P)


@pytest.mark.parametrize(("P", "D"), [(5, 2), (2, 2)])
def test_pca_and_var_are_one_dense_gaussian(P, D):
    found = projection(P, D)
    pgm, theta = fit(graph(x=Dynamics(D)), [walk(D=D)], 6.0, 0)
    z = np.random.default_rng(1).normal(size=(4, P))
    truth = multivariate_normal(*dense(found, theta, 4)).logpdf(z.reshape(-1))
    assert 4 * log_likelihood(pgm, theta, of_frames(found, z)) == pytest.approx(truth, rel=1e-4)


@pytest.mark.parametrize("name", ["PCA + AR-HMM", "PCA + Gaussian"])
def test_the_density_of_a_frame_integrates_to_one(name):
    found = projection(2, 1)
    pgm, theta = fit(KINDS[name](1, Markov(2)), [walk(D=1)], 6.0, 0)
    side = np.linspace(-12, 12, 241)
    grid = np.stack(np.meshgrid(side, side), -1).reshape(-1, 2) + found.centre
    x, rest = scores(found, grid)
    frames = jnp.asarray(x[:, None], jnp.float32)
    p = np.exp([float(v) for v in _single(pgm, theta, frames)] + rest)
    assert p.sum() * (side[1] - side[0]) ** 2 == pytest.approx(1, abs=1e-3)


def _single(pgm, theta, frames):
    """log p of recordings of one frame."""
    from svae.baselines._dynamics import _log_prob

    return np.asarray(_log_prob(pgm, theta, frames, jnp.ones(frames.shape[:2], bool))).sum(1)


def test_noise_of_the_rest_is_that_of_the_frames():
    """Isotropic noise in many directions is found again, whatever the share that the components take."""
    rng = np.random.default_rng(0)
    frames = rng.normal(size=(4000, 2)) @ (3 * rng.normal(size=(2, 6))) + 0.4 * rng.normal(size=(4000, 6))
    frames = np.c_[frames, np.full(4000, 7.0)]  # an entry that never moves has the noise of the model
    found = project(frames, 2)
    U = null_space(np.c_[found.V, np.eye(7)[:, 6]].T)
    assert np.trace(U.T @ np.diag(found.noise) @ U) / 4 == pytest.approx(0.16, rel=0.05)
    assert found.noise[6] == pytest.approx(LEAST_SD**2)


# ---- a whole comparison


def recorded(seed=0):
    """Five recordings of a known VAR(1), in units far apart, and the log density of each frame but the first."""
    rng = np.random.default_rng(seed)
    x, noise = np.zeros((5, 500, 3)), 0.3 * rng.normal(size=(5, 500, 3))
    for t in range(1, 500):
        x[:, t] = x[:, t - 1] @ A.T + noise[:, t]
    exact = -np.sum((noise / 0.3) ** 2, -1) / 2 - 3 * np.log(0.3 * np.sqrt(2 * np.pi)) - np.log(UNIT).sum()
    return UNIT * x, exact[:, 1:]


OPTIONS = {"model": "lds", "network": "affine", "latent_dim": 3, "states": 2, "held_out": 0.4}


@pytest.fixture(scope="module")
def model():
    return make((3,), **OPTIONS)


def with_units(made, y):
    """The model with the units that a fit would give it."""
    return prepare(made, list(y))[0]


def test_a_var_is_found_to_be_one_in_the_unit_of_the_data(model):
    y, exact = recorded()
    found = baselines(with_units(model, y), list(y))
    assert list(found.held_out) == list(KINDS) and found.note == "" and found.frames == 1000
    assert found.held_out["PCA + VAR(1)"] == pytest.approx(exact.mean(), abs=0.1)
    assert found.held_out["PCA + VAR(1)"] > found.held_out["PCA + Gaussian HMM"] > found.held_out["PCA + Gaussian"]
    y[:, 100:110, 0] = np.nan
    gaps = baselines(with_units(make((3,), **OPTIONS | {"states": 1}), y), list(y))
    assert list(gaps.held_out) == ["PCA + VAR(1)", "PCA + Gaussian"] and "left out" in gaps.note
    assert gaps.held_out["PCA + VAR(1)"] == pytest.approx(exact.mean(), abs=0.15)


def test_where_there_is_no_comparison_it_says_why(model):
    y = recorded()[0]
    assert baselines(make((3,), **OPTIONS, likelihood="poisson"), list(y)).note.endswith("compare with a poisson model")
    assert baselines(make((3,), **OPTIONS | {"held_out": 0.0}), list(y)).note == "nothing was held out"
    y[:, ::5, 1] = np.nan
    found = baselines(with_units(model, y), list(y))
    assert found.held_out == {} and found.note.startswith("20 % of the frames have missing entries")
