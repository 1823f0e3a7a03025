"""Plain models on the same frames: k-means, a Gaussian HMM and a sticky AR(1)-HMM, the HMMs on top of hmmlearn."""

import numpy as np

COMPONENTS = 10  # principal components, where there are at least twice as many columns
STARTS, ITERATIONS = 3, 60
ENOUGH = 1e-4  # nats a frame; EM that gains less in an iteration has ended


def components(sequences: list[np.ndarray]) -> list[np.ndarray]:
    """10 principal components of the standardised columns; all columns where there are fewer than 20."""
    flat = [np.nan_to_num(np.asarray(y, float).reshape(len(y), -1)) for y in sequences]
    rows = np.concatenate(flat)
    sd = rows.std(0)
    flat = [(y - rows.mean(0)) / np.where(sd > 1e-6 * sd.max(), sd, np.inf) for y in flat]
    if rows.shape[1] < 2 * COMPONENTS:
        return flat
    rows = np.concatenate(flat)
    axes = np.linalg.eigh(rows.T @ rows)[1][:, : -COMPONENTS - 1 : -1]
    return [y @ axes for y in flat]


def kmeans(x, states, seed):
    from sklearn.cluster import KMeans

    return KMeans(states, n_init=10, random_state=seed).fit_predict(np.concatenate(x))


def gaussian_hmm(x, states, seed):
    from hmmlearn.hmm import GaussianHMM

    return _likeliest(lambda start: GaussianHMM(states, "full", n_iter=ITERATIONS, random_state=start), x, seed)


def ar_hmm(x, states, seed):
    from benchmarks.segmentation.ar_hmm import AutoregressiveHMM

    before = [y[np.r_[0, : len(y) - 1]] for y in x]  # no frame is predicted across recordings: a first one by itself
    pairs = [np.concatenate(both, 1) for both in zip(x, before, strict=True)]
    return _likeliest(lambda start: AutoregressiveHMM(states, start, ITERATIONS), pairs, seed)


def _likeliest(model, x, seed):
    """States by the likeliest of 3 fits; a fit in which a state lost its variance is none, and all three must not."""
    rows, lengths, found = np.concatenate(x), [len(y) for y in x], []
    for start in range(STARTS * seed, STARTS * (seed + 1)):
        try:
            fit = model(start).set_params(tol=ENOUGH * len(rows)).fit(rows, lengths)
            found.append((fit.score(rows, lengths), fit))
        except ValueError as error:
            failed = error
    if not found:
        raise failed
    return max(found, key=lambda pair: pair[0])[1].predict(rows, lengths)


PEERS = {"kmeans": kmeans, "gaussian_hmm": gaussian_hmm, "ar_hmm": ar_hmm}


def segmented(method: str, sequences: list[np.ndarray], states: int, seed: int) -> list[np.ndarray]:
    """States (T_i,) of each sequence by one of the plain models."""
    x = components(sequences)
    found = np.asarray(PEERS[method](x, states, seed))
    return np.split(found, np.cumsum([len(y) for y in x])[:-1])
