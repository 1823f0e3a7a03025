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

from svae.data.scores import adjusted_rand_index, found_again
from svae.starting import conditionals
from svae.starting.effort import (
    COMPARED_FRAMES,
    FEWEST,
    LAST,
    MERGERS,
    PAIR,
    PATIENCE,
    PLACES,
    SETTLE,
    STARTS,
    compared_starts,
    counted,
    goes_on,
    sweeps,
)
from svae.starting.em import KNOWN_PLACE, Runs, ascend, em, from_labels, merged

LARGEST = 0.9  # of the frames, that one of two states may have where a duration is asked for
AS_STABLE = 0.03  # of agreement, that is no difference between two weights
EXPLAINED = 0.3  # of the nats that states explain without a duration and by motion alone, which others must explain too


class Starts(NamedTuple):
    """How far the starts of a search agree, and the duration that it asked for in the end."""

    number: int  # of the starts; nothing can be compared with one
    found_again: tuple[float, ...]  # of each state, by the other starts (`scores.found_again`); NaN where not known
    duration: float | None  # mean frames of a bout


class States(NamedTuple):
    """What the likeliest run found."""

    weights: list[np.ndarray]  # E z of each sequence (T_i, K)
    log_likelihood: float
    switch_cost: float  # nats
    switches: float  # expected number
    place: float  # the weight of where x is
    stability: float  # mean agreement (ARI) of the likelier half of the runs with this weight; nan for one run
    starts: Starts
    number: int  # of the K states, that the frames pay for; the others have none


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

    The duration is a wish. States that it destroys (`_chosen`), or that give most frames to one, are found without it.
    Once `hurries` says so, what is left is done with one sweep where many are usual. Frames whose `labels` (T_i,) are
    not negative are in these states; then there is one start, and no need to find out which of several is right.
    """
    if labels is not None and max(int(known.max(initial=-1)) for known in labels) >= 0:
        runs = yield from counted(from_labels(latents, places, labels, K, dynamic, duration, seed, hurries), [1] * LAST)
        return States(*runs.of(0, K), KNOWN_PLACE, float("nan"), Starts(1, (float("nan"),) * K, duration), K)
    data = list(zip(latents, latents if places is None else places, strict=True))
    work = sweeps(sum(map(len, latents)), K, places is not None, starts)
    shares = (0.0,) if places is None else PLACES
    return (yield from counted(_found(data, K, shares, starts, dynamic, duration, seed, hurries), work))


def _found(data: list[tuple], K: int, shares: tuple[float, ...], starts: int, dynamic, duration, seed, hurries):
    """The likeliest run with the weight and the duration that are chosen on some of the frames; yields by sweep."""
    choice, compared, frames = Choice(shares[0], float("nan"), duration), None, sum(len(x) for x, _ in data)
    each = compared_starts(frames, K, len(shares) > 1, starts)
    if each:
        some, asked = _some(data, COMPARED_FRAMES), [duration] * (each // 2) + [None] * (each - each // 2)
        compared = yield from em(some, K, np.repeat(shares, each), asked, dynamic, seed, hurries)
        choice = _chosen(compared, shares, each, duration)

    def best(choice: Choice):
        if goes_on(frames, each, starts):
            return _best(_likeliest(compared, choice, starts), choice, K)
        return _from_new(data, K, choice, starts, dynamic, seed, hurries)

    found = yield from best(choice)
    if choice.duration is None or _largest(found) <= min(0.5 + 1 / found.number, LARGEST) or hurries():
        return found
    again = yield from best(choice._replace(duration=None))
    return again if _largest(again) < _largest(found) else found


class Choice(NamedTuple):
    """What the last runs of a search have in common."""

    share: float  # the weight of the place
    stability: float  # of the runs with this weight, as far as they explain enough
    duration: float | None


def _chosen(runs: Runs, shares: tuple[float, ...], starts: int, duration: float | None) -> Choice:
    """The weight at which starts that ask for the duration, and starts that do not, agree best with each other.

    Of weights at which they agree about as well it is the smallest: a few starts say no more. What explains little of
    the motion, by the number of nats beyond one state for all frames, has no say; a duration that does so is dropped,
    and a weight is not taken at which starts without a duration do so: what is left would agree with itself.
    Of many starts the likelier half has a say: EM ends in many places, and those that are unlikely are not the answer.
    """
    asks = np.arange(starts) < (starts // 2 if duration is not None else 0)
    sides = [
        [_likelier(runs, i * starts + np.flatnonzero(asks == with_it)) for with_it in (True, False)]
        for i in range(len(shares))
    ]
    gain = runs.worth() - runs.worth_of_one()
    enough = EXPLAINED * gain[sides[0][1]].max()
    holds = lambda side: len(side) > 0 and (enough <= 0 or gain[side].max() >= enough)  # noqa: E731
    kept = [[run for side in both if holds(side) for run in side] if holds(both[1]) else [] for both in sides]
    stability = np.array([_agreement(runs.labels(numbers)) for numbers in kept])
    known = np.nan_to_num(stability, nan=-1.0)
    best = int(np.flatnonzero(known >= known.max() - AS_STABLE)[0])
    return Choice(shares[best], float(stability[best]), duration if holds(sides[best][0]) else None)


def _likelier(runs: Runs, numbers: np.ndarray) -> np.ndarray:
    """The likelier half of the runs with these numbers, and at least two of them."""
    order = np.argsort(-runs.swept.log_likelihood[numbers], kind="stable")
    return numbers[np.sort(order[: max(PAIR, len(numbers) // 2)])]


def _likeliest(runs: Runs, choice: Choice, starts: int) -> Runs:
    """So many of the runs that have the weight and the duration of the choice."""
    asks = np.isfinite(runs.search.durations)
    same = (runs.search.place == choice.share) & (asks == (choice.duration is not None))
    numbers = np.flatnonzero(same)
    return runs.only(numbers[np.argsort(-runs.swept.log_likelihood[numbers], kind="stable")[:starts]])


def _from_new(data: list[tuple], K: int, choice: Choice, starts: int, dynamic, seed, hurries):
    """The best of new starts on all frames; yields after each sweep of EM."""
    runs = yield from em(data, K, np.repeat(choice.share, starts), [choice.duration] * starts, dynamic, seed, hurries)
    return (yield from _best(runs, choice, K))


def _best(runs: Runs, choice: Choice, K: int):
    """The likeliest of some runs, with as many of K states as are paid for; yields after each sweep of EM."""
    runs = yield from _paid_for(runs)
    starts = len(runs.swept.log_likelihood)
    best, number = int(np.argmax(runs.swept.log_likelihood)), runs.swept.weights.shape[-1]
    own, *others = (runs.labels([r])[0] for r in sorted(range(starts), key=lambda r: r != best))
    compared = Starts(starts, tuple(map(float, found_again(own, others, K))), choice.duration)
    return States(*runs.of(best, K), choice.share, choice.stability, compared, number)


def _paid_for(runs: Runs):
    """Runs with as many states as the frames pay for: mergers go on until PATIENCE rounds in a row were too many."""
    best, now, most, waited = runs, runs, runs.worth().max(), 0
    while now.swept.weights.shape[-1] > FEWEST and waited < PATIENCE and not runs.search.hurries():
        K = now.swept.weights.shape[-1]
        fewer = merged(runs.search, now.swept.weights, max(FEWEST, K - -(-K // MERGERS)))
        now = now._replace(swept=(yield from ascend(runs.search, fewer, now.swept.cost, SETTLE)))
        value, waited = now.worth().max(), waited + 1
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
