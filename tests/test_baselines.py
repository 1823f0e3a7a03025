"""The density of the baselines against dense Gaussians, and their numbers where the truth is known."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.linalg import null_space
from scipy.stats import multivariate_normal

from svae.baselines import KINDS, baselines
from svae.baselines._dynamics import fit, log_prob
from svae.baselines._filter import log_prob as filtered
from svae.baselines._filter import predicted, smoothed, switching
from svae.baselines._frames import Projection, Stretches, project, scores
from svae.baselines._gaps import completed, seen_scores
from svae.config import Config
from svae.expfam import LinearGaussian
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
    theta = fit(graph(x=Dynamics(D)), [walk(D=D)], 6.0, 0)
    z = np.random.default_rng(1).normal(size=(4, P))
    truth = multivariate_normal(*dense(found, theta, 4)).logpdf(z.reshape(-1))
    assert log_prob(theta, of_frames(found, z)).sum() == pytest.approx(truth, rel=1e-4)


GAPS = np.array(  # frames that miss more entries than there are components, fewer, all but one, and all
    [[1, 1, 1, 1, 1], [1, 0, 1, 1, 1], [0, 1, 0, 0, 1], [0, 0, 0, 1, 0], [0, 0, 0, 0, 0], [1, 1, 0, 1, 0]], bool
)


def test_frames_with_gaps_have_the_density_of_what_is_seen():
    """PCA + VAR(1) is a dense Gaussian of all frames; without the missing entries it is the one that is left."""
    found = projection(5, 2)
    theta = fit(graph(x=Dynamics(2)), [walk()], 6.0, 0)
    z = np.random.default_rng(1).normal(size=(6, 5))
    mean, cov = dense(found, theta, 6)
    o, seen = GAPS.reshape(-1), seen_scores(*found, np.where(GAPS, z, np.nan))
    away = z.reshape(-1)[o] - mean[o]
    assert filtered(switching(theta), seen).sum() == pytest.approx(
        multivariate_normal(np.zeros(o.sum()), cov[np.ix_(o, o)]).logpdf(away)
    )
    whole = (mean + cov[:, o] @ np.linalg.solve(cov[np.ix_(o, o)], away)).reshape(z.shape)
    np.testing.assert_allclose(smoothed(switching(theta), seen), (whole - found.centre) @ found.V / found.sd, atol=1e-8)


def test_a_hidden_chain_with_gaps_sums_over_its_states():
    """Every path of a Gaussian HMM is one dense Gaussian."""
    found, D = projection(4, 2), 2
    theta = fit(KINDS["PCA + Gaussian HMM"](D, Markov(2)), [walk()], 6.0, 0)
    z, o = np.random.default_rng(1).normal(size=(3, 4)), GAPS[[1, 3, 5], :4]
    chain, U = switching(theta), null_space(found.V.T)
    rest, lift = U @ (U.T @ np.diag(found.noise) @ U) @ U.T, found.V * found.sd
    total, first = 0.0, z[0]
    for path in np.ndindex(2, 2, 2):
        p = chain.init[path[0]] * chain.rows[path[0], path[1]] * chain.rows[path[1], path[2]]
        for k, frame, seen in zip(path, z, o, strict=True):
            cov = (lift @ chain.first[k] @ lift.T if frame is first else lift @ chain.Q[k] @ lift.T) + rest
            mean = found.centre + lift @ chain.mean[k]
            p *= multivariate_normal(mean[seen], cov[np.ix_(seen, seen)]).pdf(frame[seen])
        total += p
    told = filtered(chain, seen_scores(*found, np.where(o, z, np.nan))).sum()
    assert told == pytest.approx(np.log(total))


@pytest.mark.parametrize("name", list(KINDS))
def test_whole_frames_have_the_same_density_with_and_without_the_filter(name):
    found = projection(5, 2)
    theta = fit(KINDS[name](2, Markov(3)), [walk(), walk(seed=1)], 6.0, 0)
    z = np.random.default_rng(1).normal(size=(30, 5))
    both = log_prob(theta, of_frames(found, z)), filtered(switching(theta), seen_scores(*found, z))
    np.testing.assert_allclose(*both, atol=1e-8)


def test_a_filter_of_switching_dynamics_with_gaps_is_a_density():
    """Each frame is predicted from those before it, so the last of two, seen or not, integrates to one."""
    found = projection(2, 2)
    theta = fit(KINDS["PCA + AR-HMM"](2, Markov(2)), [walk()], 6.0, 0)
    side = np.linspace(-12, 12, 1201)
    frames = [np.array([[0.3, np.nan], [v, np.nan], [np.nan, 0.2]]) for v in side]
    p = [np.exp(filtered(switching(theta), seen_scores(*found, z))[1]) for z in frames]
    assert np.sum(p) * (side[1] - side[0]) == pytest.approx(1, abs=1e-4)


def test_em_with_missing_entries_climbs_to_the_gaussian_that_drew_them():
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(6, 2))
    frames = rng.normal(size=(4000, 2)) @ truth.T + 0.3 * rng.normal(size=(4000, 6)) + 2.0
    gaps = np.where(rng.random(frames.shape) < 0.3, np.nan, frames)
    found = completed(gaps, 2, LEAST_SD)
    assert np.all(np.diff(found.log_likelihood) > 0)
    np.testing.assert_allclose(found.covariance, truth @ truth.T + 0.09 * np.eye(6), atol=0.2)
    np.testing.assert_allclose(project(gaps, 2).noise.mean(), 0.09, rtol=0.1)
    np.testing.assert_allclose(
        project(gaps, 2).sd, np.sqrt(np.linalg.eigvalsh(truth @ truth.T)[:-3:-1] + 0.09), rtol=0.05
    )


@pytest.mark.parametrize("name", ["PCA + AR-HMM", "PCA + Gaussian"])
def test_the_density_of_a_frame_integrates_to_one(name):
    found = projection(2, 1)
    theta = fit(KINDS[name](1, Markov(2)), [walk(D=1)], 6.0, 0)
    side = np.linspace(-12, 12, 241)
    grid = np.stack(np.meshgrid(side, side), -1).reshape(-1, 2) + found.centre
    x, rest = scores(found, grid)
    p = np.exp(predicted(switching(theta), x[:, None])[:, 0] + rest)
    assert p.sum() * (side[1] - side[0]) ** 2 == pytest.approx(1, abs=1e-3)


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
    y[:, ::5, 0] = np.nan
    gaps = baselines(with_units(make((3,), **OPTIONS | {"states": 1}), y), list(y))
    assert list(gaps.held_out) == ["PCA + VAR(1)", "PCA + Gaussian"] and "filled in" in gaps.note
    assert gaps.held_out["PCA + VAR(1)"] == pytest.approx(seen_of_a_var(y), abs=0.1)


def seen_of_a_var(y):
    """Nats per frame of what is seen of the held-out recordings, under the VAR(1) that drew them: dense Gaussians."""
    model, prepared, _ = prepare(make((3,), **OPTIONS), list(y))
    W = np.block([A, np.zeros((3, 1))])
    start, step = np.zeros((3, 1)), LinearGaussian(W, 0.3 * np.eye(3))
    theta = SimpleNamespace(x=SimpleNamespace(first=LinearGaussian(start, 0.3 * np.eye(3)), dynamics=step))
    told = 0.0
    for z in prepared.held.sequences:
        truth = np.asarray(model.scaling.invert(z), float)[:200] / UNIT
        o = np.isfinite(truth).reshape(-1)
        mean, cov = dense(Projection(np.eye(3), np.zeros(3), np.ones(3), np.ones(3)), theta, len(truth))
        told += multivariate_normal(mean[o], cov[np.ix_(o, o)]).logpdf(truth.reshape(-1)[o]) / len(truth)
    return told / len(prepared.held.sequences) - np.log(UNIT).sum() + 0.2 * np.log(UNIT[0])


def test_where_there_is_no_comparison_it_says_why(model):
    y = recorded()[0]
    assert baselines(make((3,), **OPTIONS, likelihood="poisson"), list(y)).note.endswith("compare with a Poisson model")
    assert baselines(make((3,), **OPTIONS | {"held_out": 0.0}), list(y)).note == "nothing was held out"


@pytest.mark.parametrize("gaps", [False, True])
def test_plain_models_depend_on_the_data_alone(gaps):
    """Whatever model, network or seed they are compared with, their scores are the same to the last digit."""
    y = [UNIT * walk(T=25, D=3, seed=seed) for seed in range(4)]
    if gaps:
        y[0][5:9, 1] = y[3][::3, 2] = np.nan
    sizes = {"latent_dim": 2, "states": 2, "held_out": 0.4, "target_duration": None}
    one = make((3,), **sizes, model="lds", network="affine")
    other = make((3,), **sizes, model="slds", network="mlp", hidden=(4,), seed=7, stickiness=3.0, missing=gaps)
    assert baselines(with_units(one, y), y) == baselines(with_units(other, y), y)
