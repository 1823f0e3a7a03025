"""EM of hidden Markov models of conditional Gaussians, many runs side by side in numpy.

A run pays for every switch, and the cost moves after each sweep to where bouts last as long as they should. It never
falls below LOW_COST: bouts may last longer than was asked for, but states that flicker are not made by a target. A run
begins with more states than are asked for, which are merged; or with labels of some frames, which keep their states.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from svae.starting import conditionals
from svae.starting.actions import action_features, bounded, kmeans, window_frames
from svae.starting.chains import forward_backward
from svae.starting.effort import EACH, FIRST, LAST, MERGERS, MORE
from svae.starting.labelled import begun, windowed
from svae.starting.number import worth

UNUSED = 0.1  # of the largest sd: a latent that varies less is empty, and at unit variance it would be noise
GAIN = 2.0  # nats of switch cost for an e-fold of duration, at each sweep
MOST_COST = 60.0
LOW_COST = 5.0  # nats at least; at a start that may switch often, and where no duration is asked for
HALVINGS = 6  # of the range of costs, for the first sweep
SURE = 1e4  # nats by which a label prefers its state
KNOWN_PLACE = 1.0  # weight of where x is if some states are known
PIECE_FRAMES = 500  # longest piece of a sequence


class View(NamedTuple):
    """One description of every frame: rows (regressors, x), padded."""

    pairs: np.ndarray  # (B, T, U + D)
    counted: np.ndarray  # (B, T) frames whose regressors exist
    D: int


class Search(NamedTuple):
    """What R runs of EM share, the weight of each run's second view, and the mean bout that it asks for."""

    real: np.ndarray  # (B, T) frames
    views: tuple[View, ...]
    place: np.ndarray  # (R,)
    durations: np.ndarray  # (R,) frames; NaN asks for nothing
    hurries: Callable[[], bool]  # asked before each sweep: no more of them than must be
    labels: np.ndarray | None = None  # (B, T) states that are known; negative where they are not


class Swept(NamedTuple):
    """R runs, while EM goes on."""

    weights: np.ndarray  # (B, T, R, K)
    log_likelihood: np.ndarray  # (R,)
    cost: np.ndarray  # (R,)
    switches: np.ndarray  # (R,)


class Runs(NamedTuple):
    """Runs that have ended, and how to cut what they say into sequences again."""

    search: Search
    swept: Swept
    ends: np.ndarray

    def only(self, runs: np.ndarray) -> "Runs":
        """Some of them, by their numbers."""
        weights, *rest = self.swept
        swept = Swept(weights[:, :, runs], *(values[runs] for values in rest))
        search = self.search._replace(place=self.search.place[runs], durations=self.search.durations[runs])
        return Runs(search, swept, self.ends)

    def labels(self, runs) -> list[np.ndarray]:
        return [self.swept.weights[:, :, r][self.search.real].argmax(-1) for r in runs]

    def worth(self) -> np.ndarray:
        """What the states of each run (R,) are worth."""
        view = self.search.views[0]
        rows = view.pairs[view.counted]
        labels = self.swept.weights[view.counted].argmax(-1)
        return np.array([worth(rows, view.D, one) for one in labels.T])

    def worth_of_one(self) -> float:
        """What one state for all frames is worth."""
        view = self.search.views[0]
        return worth(view.pairs[view.counted], view.D, np.zeros(view.counted.sum(), int))

    def of(self, r: int, K: int) -> tuple:
        """Weights (T_i, K) of run r by sequence, zero for states that it has not, and what else it found."""
        weights = self.swept.weights[:, :, r][self.search.real]
        parts = np.split(np.pad(weights, ((0, 0), (0, K - weights.shape[1]))), self.ends)
        return parts, *(float(values[r]) for values in self.swept[1:])


def em(data, K: int, place: np.ndarray, asked: list[float | None], dynamic: bool, seed: int, hurries):
    """EM of a run for each entry of `place` (R,), yielding by sweep.

    Every weight of the place has the same starts; each of them asks for a duration, or for none.
    """
    latents, places = ([np.asarray(x, float) for x in kind] for kind in zip(*data, strict=True))
    ends = np.cumsum([len(x) for x in latents])[:-1]
    seen = np.split(bounded(_used(np.concatenate(latents))), ends)
    real, views = _mask(seen), [_view(seen, dynamic)]
    if place.any():
        held = np.concatenate(places).std(0) > 0
        views.append(_view([there[:, held] for there in places], False))
    rng, R = np.random.default_rng(seed), len(place)
    features = {d: action_features(seen, window_frames(d)) if dynamic else np.concatenate(seen) for d in set(asked)}
    labels = [kmeans(features[duration], MORE * K, rng) for duration in asked]
    search = Search(real, tuple(views), place, np.resize(_numbers(asked), R), hurries)
    free = np.arange(R) % len(asked) % 2 == 0
    swept = yield from _from_starts(search, [labels[r % len(asked)] for r in range(R)], K, free)
    return Runs(search, swept, ends)


def _numbers(durations: list[float | None]) -> np.ndarray:
    return np.array([np.nan if duration is None else duration for duration in durations])


def from_labels(latents, places, labels, K: int, dynamic: bool, duration: float | None, seed: int, hurries):
    """EM from what a discriminant makes of the labels; yields after each sweep."""
    known, ends = np.concatenate(labels), np.cumsum([len(x) for x in latents])[:-1]
    seen = np.split(bounded(_used(np.concatenate(latents).astype(float))), ends)
    real, views = _mask(seen), [_view(seen, dynamic)]
    if places is not None:
        held = np.concatenate(places).std(0) > 0
        views.append(_view([np.asarray(there, float)[:, held] for there in places], False))
    pieces = np.full(real.shape, -1)
    pieces[real] = known
    search = Search(real, tuple(views), np.array([KNOWN_PLACE]), _numbers([duration]), hurries, pieces)
    weights = np.zeros((*real.shape, 1, K))
    weights[real] = np.eye(K)[begun(windowed(seen), known, K, np.random.default_rng(seed))][:, None]
    cost = np.full(1, LOW_COST) if duration is None else _first_cost(search, weights)
    swept = yield from ascend(search, weights, cost, LAST)
    return Runs(search, swept, ends)


def _used(x: np.ndarray) -> np.ndarray:
    """The columns of latents (N, D) that hold something: of fewer channels than D, PCA leaves the rest empty."""
    sd = x.std(0)
    return x[:, sd >= UNUSED * sd.max()]


def _pieces(x: np.ndarray) -> list[np.ndarray]:
    """A sequence in pieces that run side by side: messages go from frame to frame in Python."""
    return [x[first : first + PIECE_FRAMES] for first in range(0, len(x), PIECE_FRAMES)]


def _mask(latents: list[np.ndarray]) -> np.ndarray:
    lengths = np.array([len(piece) for x in latents for piece in _pieces(x)])
    return np.arange(lengths.max())[None] < lengths[:, None]


def _view(latents: list[np.ndarray], dynamic: bool) -> View:
    real, D = _mask(latents), latents[0].shape[1]
    x = np.zeros((*real.shape, D))
    x[real] = np.concatenate(latents)
    ones = np.ones((*real.shape, 1))
    if not dynamic:
        return View(np.concatenate([ones, x], -1), real, D)
    before = np.concatenate([np.zeros_like(x[:, :1]), x[:, :-1]], 1)
    counted = real & (np.arange(real.shape[1]) > 0)[None]
    return View(np.concatenate([before, ones, x], -1), counted, D)


def _from_starts(search: Search, labels: list[np.ndarray], K: int, free: np.ndarray):
    """EM from labels of more than K states, which are merged until K are left; `free` runs begin with a low cost."""
    many = np.zeros((*search.real.shape, len(labels), MORE * K))
    many[search.real] = np.stack([np.eye(MORE * K)[z] for z in labels], 1)
    cost, asks = np.full(len(labels), LOW_COST), np.isfinite(search.durations)
    if asks.any():
        cost = np.where(free | ~asks, cost, _first_cost(search, many))
    found = yield from ascend(search, many, cost, FIRST)
    while found.weights.shape[-1] > K:
        found = yield from ascend(search, merged(search, found.weights, K), found.cost, EACH)
    return (yield from ascend(search, found.weights, found.cost, LAST))


def merged(search: Search, weights: np.ndarray, K: int) -> np.ndarray:
    """Weights (B, T, R, fewer): some pairs of states, those that lose least likelihood by it, become one each."""
    number = min(weights.shape[-1] - K, weights.shape[-1] // 2 if search.hurries() else -(-K // MERGERS))
    pairs = [conditionals.cheapest(lost, number) for lost in _losses(search, weights)]
    return np.stack([_joined(weights[:, :, r], np.array(found).T) for r, found in enumerate(pairs)], 2)


def _joined(weights: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    i, j = pairs
    return np.concatenate([np.delete(weights, [*i, *j], -1), weights[..., i] + weights[..., j]], -1)


def _losses(search: Search, weights: np.ndarray) -> list[np.ndarray]:
    """What every pair of states of every run loses as one (K, K)."""
    R, K = weights.shape[2:]
    lost = [np.zeros((K, K)) for _ in range(R)]
    for view, by_run in zip(search.views, _shares(search), strict=True):
        G = conditionals.moments(view.pairs[view.counted], weights[view.counted].reshape(-1, R * K))
        for r, (share, own) in enumerate(zip(by_run, np.split(G, R), strict=True)):
            lost[r] = lost[r] + share * conditionals.losses(own, view.D) if share else lost[r]
    return lost


def _shares(search: Search) -> tuple[np.ndarray, ...]:
    """The weight of each view in each run."""
    return (np.ones(len(search.place)), search.place)[: len(search.views)]


def ascend(search: Search, weights: np.ndarray, cost: np.ndarray, number: int):
    """EM, and after each sweep the cost moves towards what the duration asks for; yields after each."""
    for done in range(number):
        if done and search.hurries():
            break
        chains = forward_backward(_node(search, weights), search.real, cost)
        weights = chains.weights
        away = np.nan_to_num(np.log(search.durations / _lasted(search, chains.switches)))  # 0 where nothing is asked
        cost = np.clip(cost + GAIN * away, LOW_COST, MOST_COST)
        yield
    return Swept(weights, chains.log_z, cost, chains.switches)


def _node(search: Search, weights: np.ndarray) -> np.ndarray:
    """log p (B, T, R, K) of every frame under the states that were fitted with these weights."""
    R, K = weights.shape[2:]
    node = np.zeros_like(weights)
    for view, share in zip(search.views, _shares(search), strict=True):
        here = view.counted
        found = conditionals.log_prob(view.pairs[here], weights[here].reshape(-1, R * K), view.D)
        node[here] += share[:, None] * found.reshape(-1, R, K)
    if search.labels is not None:
        known = search.labels >= 0
        node[known] += SURE * (np.eye(K)[search.labels[known]] - 1)[:, None]
    return node


def _lasted(search: Search, switches: np.ndarray) -> np.ndarray:
    """Mean frames of a bout (R,)."""
    return search.real.sum() / (switches + len(search.real))


def _first_cost(search: Search, weights: np.ndarray) -> np.ndarray:
    """The cost (R,) that the first sweep needs: while bouts are too short, states part by phase."""
    node = _node(search, weights)
    low, high = np.full(len(search.place), LOW_COST), np.full(len(search.place), MOST_COST)
    for _ in range(HALVINGS):
        cost = (low + high) / 2
        short = _lasted(search, forward_backward(node, search.real, cost).switches) < search.durations
        low, high = np.where(short, cost, low), np.where(short, high, cost)
    return (low + high) / 2
