"""Independent answers for chains of bouts: the enumeration of all segmentations."""

import numpy as np

from svae.messages.hsmm.chain import HSMMChain


def hsmm_chain(rng, T, K, longest, real=None, impossible=False):
    """A random semi-Markov chain in float64 that a bout may have begun before, no state following itself."""
    log_trans = rng.normal(size=(K, K))
    if K > 1:
        np.fill_diagonal(log_trans, -np.inf)
    log_start, log_durations = rng.normal(size=(2, K, longest))
    node = 2 * rng.normal(size=(T, K)) + 20
    if impossible:
        log_durations[0, 0] = log_start[0, 1] = log_trans[1, 0] = node[T // 2, 1] = -np.inf
        log_durations[1, longest // 2 :] = -np.inf
    return HSMMChain(log_start, log_trans, log_durations, node, np.arange(T) < (T if real is None else real))


def enumerate_segmentations(chain):
    """log Z, the statistics, and the best states with the frames had of their bouts, over all segmentations."""
    node = chain.node[chain.mask]
    T, (K, longest) = len(node), chain.log_start.shape
    log_trans = np.broadcast_to(chain.log_trans, (len(chain.node) - 1, K, K))
    found = []

    def extend(bouts, score):
        """Bouts (state, begin, end); a bout that the last frame cuts sums over what it may still last."""
        t = bouts[-1][2] if bouts else 0
        for k in range(K):
            table = chain.log_durations if bouts else chain.log_start
            into = log_trans[t - 1, bouts[-1][0], k] if bouts else 0.0
            for r in range(1, min(longest, T - t) + 1):
                seen = score + into + node[t : t + r, k].sum()
                bout = (k, t, t + r)
                if t + r < T:
                    extend([*bouts, bout], seen + table[k, r - 1])
                else:
                    found.append(([*bouts, bout], seen + np.logaddexp.reduce(table[k, r - 1 :])))

    extend([], 0.0)
    scores = np.array([score for _, score in found])
    log_z = np.logaddexp.reduce(scores)
    states, start, durations = np.zeros((T, K)), np.zeros((K, longest)), np.zeros((K, longest))
    switches = np.zeros((len(chain.node) - 1, K, K))
    for bouts, score in found:
        weight = np.exp(score - log_z)
        for n, (k, begin, end) in enumerate(bouts):
            states[begin:end, k] += weight
            table, counts = (chain.log_durations, durations) if n else (chain.log_start, start)
            seen = end - begin - 1
            if end < T:
                counts[k, seen] += weight
            elif weight:
                counts[k, seen:] += weight * np.exp(table[k, seen:] - np.logaddexp.reduce(table[k, seen:]))
            if n:
                switches[begin - 1, bouts[n - 1][0], k] += weight
    best = found[np.argmax(scores)][0]
    z = np.concatenate([np.full(end - begin, k) for k, begin, end in best])
    spent = np.concatenate([np.arange(1, end - begin + 1) for _, begin, end in best])
    return log_z, (states, start, switches, durations), (z, spent)
