"""How many states the frames pay for: the integrated classification likelihood (Biernacki, Celeux, Govaert, 2000).

States that are more than there are actions split one action in two. That always raises the likelihood. It is worth it
only where what is gained exceeds half the log of the number of frames for each parameter of a further state. Labels are
taken as they are, not their probabilities, so that states that share their frames gain nothing. Only how x moves has a
say: where it lies is the same frames described once more.
"""

import numpy as np

from svae.starting import conditionals


def worth(v: np.ndarray, D: int, labels: np.ndarray) -> float:
    """log p(x, z) of frames in rows v = (u, x) with labels (N,), less what the parameters of their states cost."""
    N, used = len(v), np.unique(labels, return_inverse=True)[1]
    K = int(used.max()) + 1
    G = conditionals.moments(v, np.eye(K)[used])
    switches = int(np.sum(used[1:] != used[:-1]))
    stay = (N - switches) * np.log1p(-switches / N) if switches < N else 0.0
    leave = switches * np.log(switches / (N * max(K - 1, 1))) if switches else 0.0
    return float(conditionals.explained(G, D).sum() + stay + leave - K * _parameters(v.shape[1] - D, D) * np.log(N) / 2)


def _parameters(U: int, D: int) -> int:
    """The number of parameters of one conditional Gaussian: its map and its covariance."""
    return U * D + D * (D + 1) // 2
