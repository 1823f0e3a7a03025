"""Independent answers: dense matrices, enumeration, statsmodels and a float64 Rauch-Tung-Striebel smoother in numpy."""

import itertools
import warnings

import numpy as np

from svae.messages import GaussianChain, HMMChain


def gaussian_chain(rng, T, D, missing=0.0):
    """A random stable chain in float64 numpy; a share `missing` of its steps has no potential."""

    def root(*shape):
        X = rng.normal(size=(*shape, D, D))
        return np.linalg.cholesky(X @ np.swapaxes(X, -1, -2) / D + 0.1 * np.eye(D))

    X, seen = rng.normal(size=(T, D, D)), rng.random(T) >= missing
    X = X @ np.swapaxes(X, -1, -2) / D + 0.1 * np.eye(D)
    J, h = X * seen[:, None, None], rng.normal(size=(T, D)) * seen[:, None]
    A, b = 0.9 * rng.normal(size=(T - 1, D, D)) / np.sqrt(D), rng.normal(size=(T - 1, D))
    return GaussianChain(rng.normal(size=D), root(), A, b, root(T - 1), J, h)


def _gram(X):
    return X @ np.swapaxes(X, -1, -2)


def dense(chain):
    """Mean (T, D), covariance (T D, T D) and log Z of the joint Gaussian, by inverting its whole precision."""
    T, D = chain.h.shape
    J, h = np.zeros((T * D, T * D)), np.zeros(T * D)
    P0 = np.linalg.inv(_gram(chain.sqrt0))
    J[:D, :D] += P0
    h[:D] += P0 @ chain.mean0
    log_z = (np.linalg.slogdet(P0)[1] - chain.mean0 @ P0 @ chain.mean0) / 2
    for t, (A, b, root) in enumerate(zip(chain.A, chain.b, chain.Q_sqrt, strict=False)):
        pair, E, Q = slice(t * D, (t + 2) * D), np.hstack([-A, np.eye(D)]), np.linalg.inv(_gram(root))
        J[pair, pair] += E.T @ Q @ E
        h[pair] += E.T @ Q @ b
        log_z += (np.linalg.slogdet(Q)[1] - b @ Q @ b) / 2
    for t in range(T):
        J[t * D : (t + 1) * D, t * D : (t + 1) * D] += chain.J[t]
        h[t * D : (t + 1) * D] += chain.h[t]
    S = np.linalg.inv(J)
    m = S @ h
    return m.reshape(T, D), S, log_z + (h @ m + np.linalg.slogdet(S)[1]) / 2


def rts(chain):
    """Means and covariances by the textbook covariance filter and smoother, in float64."""
    m, P, filtered, predicted = chain.mean0, _gram(chain.sqrt0), [], []
    Q, I = _gram(chain.Q_sqrt), np.eye(len(m))
    for t in range(len(chain.h)):
        predicted.append((m, P))
        P_new = np.linalg.solve(I + P @ chain.J[t], P)
        P_new = (P_new + P_new.T) / 2
        m = m + P_new @ (chain.h[t] - chain.J[t] @ m)
        P = P_new
        filtered.append((m, P))
        if t < len(Q):
            m, P = chain.A[t] @ m + chain.b[t], chain.A[t] @ P @ chain.A[t].T + Q[t]
    means, covariances = [m], [P]
    for t in range(len(Q) - 1, -1, -1):
        (mf, Pf), (mp, Pp) = filtered[t], predicted[t + 1]
        G = np.linalg.solve(Pp, chain.A[t] @ Pf).T
        m, P = mf + G @ (m - mp), Pf + G @ (P - Pp) @ G.T
        means.append(m)
        covariances.append(P)
    return np.stack(means[::-1]), np.stack(covariances[::-1])


def statsmodels(chain):
    """Means, covariances and log Z: a potential is an observation y = F^-1 h of F' x with unit noise, J = F F'."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from statsmodels.tsa.statespace.kalman_smoother import KalmanSmoother

    _T, D = chain.h.shape
    seen = np.array([np.any(J) for J in chain.J])
    F = np.linalg.cholesky(np.where(seen[:, None, None], chain.J, np.eye(D)))
    y = np.linalg.solve(F, chain.h[..., None])[..., 0]
    ks = KalmanSmoother(k_endog=D, k_states=D, tolerance=0)  # a new object for each data set; no steady-state shortcut
    ks.bind(np.where(seen[:, None], y, np.nan))

    def last(X):
        return np.moveaxis(np.concatenate([X, np.zeros((1, *X.shape[1:]))]), 0, -1)

    ks["design"], ks["obs_cov"] = np.moveaxis(np.swapaxes(F, -1, -2), 0, -1), np.eye(D)
    ks["transition"], ks["state_intercept"] = last(chain.A), last(chain.b)
    ks["selection"], ks["state_cov"] = np.eye(D), last(_gram(chain.Q_sqrt))
    ks.initialize_known(chain.mean0, _gram(chain.sqrt0))
    result = ks.smooth()
    density = -0.5 * np.sum(y[seen] ** 2) - 0.5 * D * seen.sum() * np.log(2 * np.pi)  # of y at x = 0
    return result.smoothed_state.T, np.moveaxis(result.smoothed_state_cov, -1, 0), result.llf_obs.sum() - density


def hmm_chain(rng, T, K, real=None, impossible=False):
    """A random chain in float64, `real` frames and then padding, some -inf if `impossible`."""
    log_init, log_trans, node = rng.normal(size=K), rng.normal(size=(K, K)), 3 * rng.normal(size=(T, K)) + 20
    if impossible:
        log_init[0] = log_trans[1, 0] = log_trans[2, 2] = node[T // 2, 1] = -np.inf
    return HMMChain(log_init, log_trans, node, np.arange(T) < (T if real is None else real))


def enumerate_pairs(chain):
    """log Z, marginals, those of every pair and the best path, over all K^T paths of the real frames."""
    T, K = int(chain.mask.sum()), len(chain.log_init)
    log_trans = np.broadcast_to(chain.log_trans, (len(chain.node) - 1, K, K))
    paths = np.array(list(itertools.product(range(K), repeat=T)))
    scores = chain.log_init[paths[:, 0]] + chain.node[np.arange(T), paths].sum(1)
    scores = scores + log_trans[np.arange(T - 1), paths[:, :-1], paths[:, 1:]].sum(1)
    log_z = np.logaddexp.reduce(scores)
    hot = np.eye(K)[paths]
    weights = np.exp(scores - log_z)
    pairs = np.einsum("n,nti,ntj->tij", weights, hot[:, :-1], hot[:, 1:])
    return log_z, np.einsum("n,ntk->tk", weights, hot), pairs, paths[np.argmax(scores)]


def enumerate_paths(chain):
    """As `enumerate_pairs`, with pair counts of all steps."""
    log_z, states, pairs, best = enumerate_pairs(chain)
    return log_z, states, pairs.sum(0), best
