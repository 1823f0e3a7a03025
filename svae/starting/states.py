"""States of warm latents: hidden Markov models of conditional Gaussians, by EM in numpy, with a target duration.

Two things make a state: how x moves (each frame regressed on the one before) and where it is (a Gaussian of the frame
itself). How much the second counts differs between recordings: syllables and postures are places, gaits are not. No
likelihood tells, because the two are densities of different things. Stability does: for each of a few weights EM runs
from several starts, and the weight is taken at which these runs agree best with each other.

Likelihood alone also splits a fast action by its phase, because no latent space makes every action exactly linear. What
people know is how long an action lasts. So the cost of a switch, in nats, is solved for while EM runs: it settles where
bouts last as long as they should. A sticky Dirichlet then carries that cost into the latent model.
"""

import itertools
from collections.abc import Callable, Generator
from typing import Any, NamedTuple

import numpy as np

from svae.data.scores import adjusted_rand_index
from svae.starting import conditionals
from svae.starting.actions import action_features, bounded, kmeans, window_frames
from svae.starting.chains import forward_backward
from svae.starting.effort import (
    COMPARED_FRAMES,
    EACH,
    FEWEST,
    FIRST,
    LAST,
    MERGERS,
    MORE,
    PATIENCE,
    PLACES,
    SETTLE,
    STARTS,
    counted,
    sweeps,
)
from svae.starting.labelled import begun, windowed
from svae.starting.number import worth

AS_STABLE = 0.03  # of agreement, that is no difference between two weights
UNUSED = 0.1  # of the largest sd: a latent that varies less is empty, and at unit variance it would be noise
GAIN = 2.0  # nats of switch cost for an e-fold of duration, at each sweep
MOST_COST = 60.0
LOW_COST = 5.0  # nats at a start that may switch often, and where no duration is asked for
HALVED = 3  # times at most that a duration is halved
HALVINGS = 6  # of the range of costs, for the first sweep
SURE = 1e4  # nats by which a label prefers its state
KNOWN_PLACE = 1.0  # weight of where x is if some states are known
PIECE_FRAMES = 500  # longest piece of a sequence


class States(NamedTuple):
    """What the likeliest run found."""

    weights: list[np.ndarray]  # E z of each sequence (T_i, K)
    log_likelihood: float
    switch_cost: float  # nats
    switches: float  # expected number
    place: float  # the weight of where x is
    stability: float  # mean agreement (ARI) of the runs with this weight; nan for one run
    duration: float | None  # mean frames of a bout that were asked for in the end
    number: int  # of the K states, that the frames pay for; the others have none


class _View(NamedTuple):
    """One description of every frame: rows (regressors, x), padded."""

    pairs: np.ndarray  # (B, T, U + D)
    counted: np.ndarray  # (B, T) frames whose regressors exist
    D: int


class _Search(NamedTuple):
    """What R runs of EM share, and the weight of each run's second view."""

    real: np.ndarray  # (B, T) frames
    views: tuple[_View, ...]
    place: np.ndarray  # (R,)
    duration: float | None
    hurries: Callable[[], bool]  # asked before each sweep: no more of them than must be
    labels: np.ndarray | None = None  # (B, T) states that are known; negative where they are not


class _Swept(NamedTuple):
    """R runs, while EM goes on."""

    weights: np.ndarray  # (B, T, R, K)
    log_likelihood: np.ndarray  # (R,)
    cost: np.ndarray  # (R,)
    switches: np.ndarray  # (R,)


def never() -> bool:
    """Nobody is in a hurry."""
    return False


def find_states(
    latents: list[np.ndarray],
    K: int,
    *,
    dynamic: bool,
    duration: float | None,
    seed: int,
    places: list[np.ndarray] | None = None,
    starts: int = STARTS,
) -> States:
    """What `search` finds."""
    return result(search(latents, K, dynamic=dynamic, duration=duration, seed=seed, places=places, starts=starts))


def result(search: Generator[float, None, Any]) -> Any:
    """What a search gives in the end."""
    while True:
        try:
            next(search)
        except StopIteration as ended:
            return ended.value


def search(
    latents: list[np.ndarray],
    K: int,
    *,
    dynamic: bool,
    duration: float | None,
    seed: int,
    places: list[np.ndarray] | None = None,
    labels: list[np.ndarray] | None = None,
    starts: int = STARTS,
    hurries: Callable[[], bool] = never,
) -> Generator[float, None, States]:
    """The likeliest of several starts, yielding the share done; `dynamic` regresses each frame on the one before.

    `places` (T_i, D') say where x is, in bounded standard deviations; without them only `latents` count.
    Every other start pays from its first sweep for a switch what the duration asks for. Where actions have phases the
    rest part them by phase; where bouts differ much in length these lose the short ones.

    K states are the most: those that the frames do not pay for (`number`) are merged with others, and have no frames.

    A duration that gives most frames to one state is too long for these data: half of it is asked for. Once `hurries`
    says so, what is left is done with one sweep where many are usual. Frames whose `labels` (T_i,) are not negative are
    in these states; then there is one start, and no need to find out which of several is right.
    """
    if labels is not None and max(int(known.max(initial=-1)) for known in labels) >= 0:
        run = _from_labels(latents, places, labels, K, dynamic, duration, seed, hurries)
        return (yield from counted(run, [1] * LAST, first=True))
    data = list(zip(latents, latents if places is None else places, strict=True))
    shares = (0.0,) if places is None else PLACES
    found, frames = None, sum(map(len, latents))
    for number, asked in enumerate([None] if duration is None else [duration / 2**i for i in range(HALVED + 1)]):
        run = _best(data, K, shares, starts, dynamic, asked, seed, hurries)
        states = yield from counted(run, sweeps(frames, K, len(shares), starts), first=number == 0)
        found = states if found is None else found
        if _largest(states) <= 0.5 + 1 / states.number or hurries():
            return states
    return found


def _best(data: list[tuple], K: int, shares: tuple[float, ...], starts: int, dynamic, duration, seed, hurries):
    """The likeliest run with the weight of the place at which runs agree best; yields after each sweep of EM.

    Of weights at which they agree about as well it is the smallest: a few starts say no more.
    """
    part = data if len(shares) == 1 else _some(data, COMPARED_FRAMES)
    runs = yield from _em(part, K, np.repeat(shares, starts), dynamic, duration, seed, hurries)
    stability = np.array([_agreement(runs.labels(range(i * starts, (i + 1) * starts))) for i in range(len(shares))])
    chosen = int(np.flatnonzero(stability >= np.max(stability) - AS_STABLE)[0]) if len(shares) > 1 else 0
    first = chosen * starts
    if part is not data:
        runs = yield from _em(data, K, np.repeat(shares[chosen], starts), dynamic, duration, seed, hurries)
        first = 0
    runs = yield from _paid_for(runs.only(slice(first, first + starts)))
    best, number = int(np.argmax(runs.swept.log_likelihood)), runs.swept.weights.shape[-1]
    return States(*runs.of(best, K), shares[chosen], float(stability[chosen]), duration, number)


def _paid_for(runs: "_Runs"):
    """Runs with as many states as the frames pay for: mergers go on until PATIENCE rounds in a row were too many."""
    best, now, most, waited = runs, runs, runs.worth(), 0
    while now.swept.weights.shape[-1] > FEWEST and waited < PATIENCE and not runs.search.hurries():
        K = now.swept.weights.shape[-1]
        fewer = _merged(runs.search, now.swept.weights, max(FEWEST, K - -(-K // MERGERS)))
        now = now._replace(swept=(yield from _sweeps(runs.search, fewer, now.swept.cost, SETTLE)))
        value, waited = now.worth(), waited + 1
        if value > most:
            best, most, waited = now, value, 0
    return best


def _largest(states: States) -> float:
    """The share of frames of the state that has most."""
    usage = np.concatenate(states.weights).sum(0)
    return float(usage.max() / usage.sum())


def place_of_states(places: list[np.ndarray], weights: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Mean (K, D) and covariance (K, D, D) of the place of every state; a column that holds nothing says nothing.

    A state without frames is anywhere: it has the mean and covariance of all of them.
    """
    rows, D, K = np.concatenate(places), places[0].shape[1], weights[0].shape[1]
    held = rows.std(0) > 0
    v = np.concatenate([np.ones((len(rows), 1)), rows[:, held]], 1)
    G = conditionals.moments(v, np.concatenate(weights))
    frames = G[:, 0, 0, None, None]
    M, S = conditionals.fitted(np.where(frames >= 1, G, G.sum(0)), int(held.sum()))
    mean, covariance = np.zeros((K, D)), np.tile(np.eye(D), (K, 1, 1))
    mean[:, held], covariance[np.ix_(np.arange(K), held, held)] = M[:, 0], S
    return mean, covariance


class _Runs(NamedTuple):
    """Runs that have ended, and how to cut what they say into sequences again."""

    search: _Search
    swept: _Swept
    ends: np.ndarray

    def only(self, runs: slice) -> "_Runs":
        """Some of them."""
        weights, *rest = self.swept
        swept = _Swept(weights[:, :, runs], *(values[runs] for values in rest))
        return _Runs(self.search._replace(place=self.search.place[runs]), swept, self.ends)

    def labels(self, runs) -> list[np.ndarray]:
        return [self.swept.weights[:, :, r][self.search.real].argmax(-1) for r in runs]

    def worth(self) -> float:
        """Of the run whose states are worth most."""
        view = self.search.views[0]
        rows = view.pairs[view.counted]
        labels = self.swept.weights[view.counted].argmax(-1)
        return max(worth(rows, view.D, labels[:, r]) for r in range(labels.shape[1]))

    def of(self, r: int, K: int) -> tuple:
        """Weights (T_i, K) of run r by sequence, zero for states that it has not, and what else it found."""
        weights = self.swept.weights[:, :, r][self.search.real]
        parts = np.split(np.pad(weights, ((0, 0), (0, K - weights.shape[1]))), self.ends)
        return parts, *(float(values[r]) for values in self.swept[1:])


def _agreement(labels: list[np.ndarray]) -> float:
    """Mean adjusted Rand index of all pairs; a run that put every frame into one state agrees with none."""
    pairs = [
        adjusted_rand_index(a, b) if len(np.unique(a)) > 1 and len(np.unique(b)) > 1 else 0.0
        for a, b in itertools.combinations(labels, 2)
    ]
    return float(np.mean(pairs)) if pairs else float("nan")


def _some(data: list[tuple], frames: int) -> list[tuple]:
    """The first part of every sequence, `frames` in all about; everything where there are no more than that."""
    total = sum(len(x) for x, _ in data)
    if total <= frames:
        return data
    return [(x[:n], p[:n]) for x, p in data for n in [max(2, round(len(x) * frames / total))]]


def _em(data, K: int, place: np.ndarray, dynamic: bool, duration: float | None, seed: int, hurries):
    """EM from one start for each entry of `place` (R,); the starts are the same for every weight. Yields by sweep."""
    latents, places = ([np.asarray(x, float) for x in kind] for kind in zip(*data, strict=True))
    ends = np.cumsum([len(x) for x in latents])[:-1]
    seen = np.split(bounded(_used(np.concatenate(latents))), ends)
    real, views = _mask(seen), [_view(seen, dynamic)]
    if place.any():
        held = np.concatenate(places).std(0) > 0
        views.append(_view([there[:, held] for there in places], False))
    search = _Search(real, tuple(views), place, duration, hurries)
    features = action_features(seen, window_frames(duration)) if dynamic else np.concatenate(seen)
    different = len(place) // len(np.unique(place))
    rng = np.random.default_rng(seed)
    labels = [kmeans(features, MORE * K, rng) for _ in range(different)]
    free = np.arange(len(place)) % different % 2 == 0
    swept = yield from _from_starts(search, [labels[r % different] for r in range(len(place))], K, free)
    return _Runs(search, swept, ends)


def _from_labels(latents, places, labels, K: int, dynamic: bool, duration: float | None, seed: int, hurries):
    """EM from what a discriminant makes of the labels; yields after each sweep."""
    known, ends = np.concatenate(labels), np.cumsum([len(x) for x in latents])[:-1]
    seen = np.split(bounded(_used(np.concatenate(latents).astype(float))), ends)
    real, views = _mask(seen), [_view(seen, dynamic)]
    if places is not None:
        held = np.concatenate(places).std(0) > 0
        views.append(_view([np.asarray(there, float)[:, held] for there in places], False))
    pieces = np.full(real.shape, -1)
    pieces[real] = known
    search = _Search(real, tuple(views), np.array([KNOWN_PLACE]), duration, hurries, pieces)
    weights = np.zeros((*real.shape, 1, K))
    weights[real] = np.eye(K)[begun(windowed(seen), known, K, np.random.default_rng(seed))][:, None]
    cost = np.full(1, LOW_COST) if duration is None else _first_cost(search, weights)
    swept = yield from _sweeps(search, weights, cost, LAST)
    return States(*_Runs(search, swept, ends).of(0, K), KNOWN_PLACE, float("nan"), duration, K)


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


def _view(latents: list[np.ndarray], dynamic: bool) -> _View:
    real, D = _mask(latents), latents[0].shape[1]
    x = np.zeros((*real.shape, D))
    x[real] = np.concatenate(latents)
    ones = np.ones((*real.shape, 1))
    if not dynamic:
        return _View(np.concatenate([ones, x], -1), real, D)
    before = np.concatenate([np.zeros_like(x[:, :1]), x[:, :-1]], 1)
    counted = real & (np.arange(real.shape[1]) > 0)[None]
    return _View(np.concatenate([before, ones, x], -1), counted, D)


def _from_starts(search: _Search, labels: list[np.ndarray], K: int, free: np.ndarray):
    """EM from labels of more than K states, which are merged until K are left; `free` runs begin with a low cost."""
    many = np.zeros((*search.real.shape, len(labels), MORE * K))
    many[search.real] = np.stack([np.eye(MORE * K)[z] for z in labels], 1)
    cost = np.full(len(labels), LOW_COST)
    if search.duration is not None:
        cost = np.where(free, cost, _first_cost(search, many))
    found = yield from _sweeps(search, many, cost, FIRST)
    while found.weights.shape[-1] > K:
        found = yield from _sweeps(search, _merged(search, found.weights, K), found.cost, EACH)
    return (yield from _sweeps(search, found.weights, found.cost, LAST))


def _merged(search: _Search, weights: np.ndarray, K: int) -> np.ndarray:
    """Weights (B, T, R, fewer): some pairs of states, those that lose least likelihood by it, become one each."""
    number = min(weights.shape[-1] - K, weights.shape[-1] // 2 if search.hurries() else -(-K // MERGERS))
    pairs = [conditionals.cheapest(lost, number) for lost in _losses(search, weights)]
    return np.stack([_joined(weights[:, :, r], np.array(found).T) for r, found in enumerate(pairs)], 2)


def _joined(weights: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    i, j = pairs
    return np.concatenate([np.delete(weights, [*i, *j], -1), weights[..., i] + weights[..., j]], -1)


def _losses(search: _Search, weights: np.ndarray) -> list[np.ndarray]:
    """What every pair of states of every run loses as one (K, K)."""
    R, K = weights.shape[2:]
    lost = [np.zeros((K, K)) for _ in range(R)]
    for view, by_run in zip(search.views, _shares(search), strict=True):
        G = conditionals.moments(view.pairs[view.counted], weights[view.counted].reshape(-1, R * K))
        for r, (share, own) in enumerate(zip(by_run, np.split(G, R), strict=True)):
            lost[r] = lost[r] + share * conditionals.losses(own, view.D) if share else lost[r]
    return lost


def _shares(search: _Search) -> tuple[np.ndarray, ...]:
    """The weight of each view in each run."""
    return (np.ones(len(search.place)), search.place)[: len(search.views)]


def _sweeps(search: _Search, weights: np.ndarray, cost: np.ndarray, number: int):
    """EM, and after each sweep the cost moves towards what the duration asks for; yields after each."""
    for done in range(number):
        if done and search.hurries():
            break
        chains = forward_backward(_node(search, weights), search.real, cost)
        weights = chains.weights
        if search.duration is not None:
            away = np.log(search.duration / _lasted(search, chains.switches))
            cost = np.clip(cost + GAIN * away, 0.0, MOST_COST)
        yield
    return _Swept(weights, chains.log_z, cost, chains.switches)


def _node(search: _Search, weights: np.ndarray) -> np.ndarray:
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


def _lasted(search: _Search, switches: np.ndarray) -> np.ndarray:
    """Mean frames of a bout (R,)."""
    return search.real.sum() / (switches + len(search.real))


def _first_cost(search: _Search, weights: np.ndarray) -> np.ndarray:
    """The cost (R,) that the first sweep needs: while bouts are too short, states part by phase."""
    node = _node(search, weights)
    low, high = np.zeros(len(search.place)), np.full(len(search.place), MOST_COST)
    for _ in range(HALVINGS):
        cost = (low + high) / 2
        short = _lasted(search, forward_backward(node, search.real, cost).switches) < search.duration
        low, high = np.where(short, cost, low), np.where(short, high, cost)
    return (low + high) / 2
