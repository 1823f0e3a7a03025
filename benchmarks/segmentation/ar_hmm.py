"""A sticky AR(1)-HMM: recursions of hmmlearn, emissions of its own through the methods that hmmlearn has for this."""

import numpy as np
from hmmlearn.base import BaseHMM
from sklearn.cluster import KMeans

STAY, MOVE = 20.0, 0.1  # counts that are added to transitions: to staying, and to every move
LEAST = 1e-4  # added to the noise, of columns that have a variance of about one


class AutoregressiveHMM(BaseHMM):
    """x_t ~ N(W_k [x_{t-1}, 1], Q_k) by EM from the centres of k-means; a row of data is [x_t, x_{t-1}]."""

    def __init__(self, n_components=1, random_state=None, n_iter=10, tol=1e-2):
        prior = 1 + MOVE + STAY * np.eye(n_components)
        super().__init__(
            n_components, transmat_prior=prior, random_state=random_state, n_iter=n_iter, tol=tol, params="st"
        )

    def _init(self, X, lengths=None):
        K, D = self.n_components, X.shape[1] // 2
        means = KMeans(K, n_init=1, random_state=self.random_state).fit(X[:, :D]).cluster_centers_
        self.startprob_ = np.full(K, 1 / K)
        self.transmat_ = self.transmat_prior / self.transmat_prior.sum(1, keepdims=True)
        self.W_ = np.concatenate([np.zeros((K, D, D)), means[:, :, None]], 2)
        self.Q_ = np.tile(np.eye(D), (K, 1, 1))

    def _check(self):
        """Nothing that a user could have set wrong."""

    def _compute_log_likelihood(self, X):
        present, past = _present_and_past(X)
        logs = np.empty((len(X), self.n_components))
        for k, (W, Q) in enumerate(zip(self.W_, self.Q_, strict=True)):
            L = np.linalg.cholesky(Q)
            white = (present - past @ W.T) @ np.linalg.inv(L).T
            logs[:, k] = -0.5 * np.sum(white**2, 1) - np.log(np.diag(L)).sum()
        return logs - 0.5 * present.shape[1] * np.log(2 * np.pi)

    def _initialize_sufficient_statistics(self):
        return super()._initialize_sufficient_statistics() | {"moments": 0.0, "weights": 0.0}

    def _accumulate_sufficient_statistics(self, stats, X, lattice, posteriors, fwdlattice, bwdlattice):
        super()._accumulate_sufficient_statistics(stats, X, lattice, posteriors, fwdlattice, bwdlattice)
        rows = np.concatenate(_present_and_past(X), 1)
        stats["moments"] = stats["moments"] + np.stack([rows.T @ (weight[:, None] * rows) for weight in posteriors.T])
        stats["weights"] = stats["weights"] + posteriors.sum(0)

    def _do_mstep(self, stats):
        super()._do_mstep(stats)
        D = self.Q_.shape[1]
        for k, (moment, weight) in enumerate(zip(stats["moments"], stats["weights"], strict=True)):
            cross, past = moment[:D, D:], moment[D:, D:] + LEAST * np.eye(D + 1)
            self.W_[k] = np.linalg.solve(past, cross.T).T
            left = moment[:D, :D] - self.W_[k] @ cross.T
            self.Q_[k] = (left + left.T) / 2 / max(weight, 1.0) + LEAST * np.eye(D)


def _present_and_past(X):
    """x_t, and [x_{t-1}, 1]."""
    D = X.shape[1] // 2
    return X[:, :D], np.concatenate([X[:, D:], np.ones((len(X), 1))], 1)
