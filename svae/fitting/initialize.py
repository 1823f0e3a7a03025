"""Where a fit begins: networks at PCA, then q(theta) from states found on warm latents. It decides if an SLDS works."""

import dataclasses
from collections.abc import Callable, Generator
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from svae import expfam
from svae._compiling import briefly
from svae.data import Beside
from svae.data.beside import FREE, NOTHING
from svae.expfam import Gaussian
from svae.fitting.scree import ENOUGH_IN_WORDS, Scree, cumulated, enough_of, percent, scree_of, unknown
from svae.model import SVAE, of_labels
from svae.nets import (
    START_SD,
    GaussianWeights,
    Observation,
    Recognition,
    bends,
    likelihood_of,
    plane_at,
    with_linear_map,
    with_noise,
    with_precision,
)
from svae.starting import (
    SEARCHED,
    UNUSED,
    Starts,
    States,
    begun,
    kmeans,
    never,
    place_of_states,
    result,
    search,
    search_each,
)

SMALLEST = 1e-12
SWEEPS = 25  # of mean field on the warm latents
FILLINGS = 10  # rounds in which missing entries are filled in before PCA
PINNED = 1e4  # precision that holds x at a warm latent
PLACE_IN_A_FIT = 4.0  # times its weight in the search
LEAST_NOISE = (0.03, 0.1)  # of the sd of the data: where nothing is left to noise, and elsewhere


class PCA(NamedTuple):
    W: np.ndarray  # (P, D): y = W x + b with x of unit variance
    b: np.ndarray  # (P,)
    sd: np.ndarray  # (P,) of what is left over
    spread: float  # root mean square sd of the columns that vary
    shares: np.ndarray  # of the variance, that the first 1, 2, ... components hold


def pca(frames: np.ndarray, D: int) -> PCA:
    """Principal components of frames (N, P); columns beyond the rank are zero.

    A missing entry begins at its mean and goes to what the components say of it.
    """
    seen = np.isfinite(frames)
    b = np.where(seen, frames, 0).sum(0) / np.maximum(seen.sum(0), 1)  # 0 for a column that is never seen
    centred = np.where(seen, frames - b, 0)
    for _ in range(1 if seen.all() else FILLINGS):
        _, s, Vt = np.linalg.svd(centred, full_matrices=False)
        rank = min(D, len(s))
        centred = np.where(seen, centred, centred @ Vt[:rank].T @ Vt[:rank])
    W = np.zeros((frames.shape[1], D))
    W[:, :rank] = Vt[:rank].T * s[:rank] / np.sqrt(len(frames))
    left = np.where(seen, centred - centred @ Vt[:rank].T @ Vt[:rank], 0)
    spread = _rms(_sd(np.where(seen, centred, 0), seen)) or 1.0  # 1: nothing varies
    return PCA(W, b, _sd(left, seen), spread, cumulated(s**2))


def dimensions_note(found: PCA, D: int) -> str:
    """How much of the frames D latent dimensions hold, in a sentence; nothing where it is 90 % or nothing varies."""
    enough = enough_of(found.shares)
    if enough <= D:
        return ""
    held = percent(float(found.shares[D - 1]))
    return f"{D} latent dimensions hold {held} of the variance of the frames, {enough} would hold {ENOUGH_IN_WORDS}."


def scree(model: SVAE, found: PCA) -> Scree:
    """What the components hold that the networks begin at; none, and why, where they begin elsewhere."""
    why = elsewhere(model)
    return unknown(why) if why else scree_of(found.shares, model.config.latent_dim)


def _sd(away: np.ndarray, seen: np.ndarray) -> np.ndarray:
    return np.sqrt((away**2).sum(0) / np.maximum(seen.sum(0), 1))


def _rms(sd: np.ndarray) -> float:
    """The root of the mean square of those that are not zero."""
    return float(np.sqrt(np.mean(sd[sd > 0] ** 2))) if np.any(sd > 0) else 0.0


def pca_for(model: SVAE, frames: np.ndarray) -> PCA:
    """Principal components of frames (N, *event), as many as the model has latent dimensions."""
    return pca(frames.reshape(len(frames), -1), model.config.latent_dim)


def at_pca(model: SVAE, found: PCA) -> SVAE:
    """The networks with their linear maps set to these components; others are left as they are."""
    if model.pgm.observed:
        plane = plane_at(found.W, found.b, found.sd)
        return eqx.tree_at(lambda m: (m.recognize.plane, m.observe.plane), model, (plane, plane))
    model = _with_components(model, found)
    if elsewhere(model):
        return model
    W, b, sd = (jnp.asarray(a, jnp.result_type(float)) for a in (found.W, found.b, _noise(model, found)))
    networks = _at_components(model.recognize, model.observe, W, b, sd.reshape(model.shape))
    model = eqx.tree_at(lambda m: (m.recognize, m.observe), model, networks)
    return _straight(model) if model.config.linear else model


@briefly
def _at_components(recognize: Any, observe: Any, W: Array, b: Array, sd: Array) -> tuple:
    """Both networks at y = W x + b + noise, as sure of x as that noise allows: one program, not one an operation."""
    recognize = with_precision(with_linear_map(recognize, W, b), (W / sd.reshape(-1, 1) ** 2).T @ W)
    return recognize, with_noise(with_linear_map(observe, W, b), sd)


def _straight(model: SVAE) -> SVAE:
    """The networks with nothing beside their linear maps: where PCA leaves little, even small corrections cost much."""
    last = lambda m: [leaf for network in (m.recognize, m.observe) for leaf in bends(network)[0]]  # noqa: E731
    return eqx.tree_at(last, model, [jnp.zeros_like(leaf) for leaf in last(model)]) if last(model) else model


def cold(model: SVAE) -> str:
    """Why networks do not begin at PCA, in a sentence, where a person would not expect it; else ""."""
    said = _own(model)
    return f"{said[0].upper()}{said[1:]}." if said else ""


def elsewhere(model: SVAE) -> str:
    """Why networks do not begin at PCA, in a clause; "" where they do."""
    if model.pgm.observed:
        return ""
    if said := _own(model):
        return said
    if getattr(model.recognize, "linear", None) is None:
        return f"the network {model.config.network} has no linear map that could begin at PCA"
    kind = likelihood_of(model.observe)  # PCA has the units of the data only where noise is added to a location
    return "" if kind.additive else f"with the likelihood {kind.title} the networks do not begin at PCA"


def _own(model: SVAE) -> str:
    """Which network is not one of ours, and what follows."""
    if model.pgm.observed:
        return ""
    ours = {
        "recognition": isinstance(model.recognize, Recognition),
        "observation": isinstance(model.observe, Observation | GaussianWeights),
    }
    which = [name for name, known in ours.items() if not known]
    said = "network is your own, so the networks begin as they are and not at PCA"
    return f"the {which[0]} {said}" if which else ""


def _with_components(model: SVAE, found: PCA) -> SVAE:
    """The model with places among these components; what hardly varies beside the rest has none."""
    if model.places is None:
        return model
    size, noise = np.sqrt((found.W**2).sum(0)), max(float(np.mean(found.sd**2)), SMALLEST)
    shrunk = size**2 / (size**2 + noise)  # the sd of a posterior mean whose x has unit variance
    scale = np.where(size >= UNUSED * max(size.max(), SMALLEST), 1 / np.maximum(np.sqrt(shrunk), SMALLEST), 0)
    values = [jnp.asarray(a, jnp.result_type(float)) for a in (found.W, found.b, noise, scale)]
    return eqx.tree_at(lambda m: (m.places.W, m.places.b, m.places.noise, m.places.scale), model, values)


def _noise(model: SVAE, found: PCA) -> np.ndarray:
    """sd (P,) of the observations at the start: where it is learned, what PCA leaves over, whatever the latent model.

    States of a chain differ in how x moves. A vague x moves as all of them at once: mean field then begins with one.
    """
    learned = model.config.variance == "learned"
    return np.maximum(found.sd, _least_noise(found)) if learned else np.full(len(found.sd), START_SD)


def _least_noise(found: PCA) -> float:
    """What is left of the entries on average, between two shares of how far they move.

    Points of a body share one unit, and move by a fifth of it: a share of the unit would hide them.
    """
    return float(np.clip(_rms(found.sd), *(share * found.spread for share in LEAST_NOISE)))


class Searched(NamedTuple):
    """A model with the states that a search has found, and how far its starts agree; None where there was one way."""

    model: SVAE
    starts: Starts | None = None


def at_latents(model: SVAE, latents: list[np.ndarray], places: list[np.ndarray] | None, *, seed: int) -> SVAE:
    """The model that `search_latents` finds."""
    return result(search_latents(model, latents, places, seed=seed)).model


def search_latents(
    model: SVAE,
    latents: list[np.ndarray],
    places: list[np.ndarray] | None,
    beside: Beside = NOTHING,
    *,
    seed: int,
    hurries: Callable[[], bool] = never,
) -> Generator[float, None, Searched]:
    """The model with q(theta) from warm latents (T_i, D), and with the stickiness that the target duration asks for.

    With `places` (T_i, D) the states know where they are, too. `beside` has lists as latents are: with labels (T_i,)
    the first states are those that people know. Yields the share of the search that is done.
    """
    K, labels = model.pgm.states, beside.labels
    inputs = beside.inputs if model.pgm.inputs else None
    if not model.pgm.chained or K == 1:
        return Searched(dataclasses.replace(model, q=mixture_q(model, latents, K, beside, seed=seed)))
    dynamic, duration = model.pgm.dynamic, model.config.target_duration if model.pgm.paced else None
    asked = {"duration": duration, "seed": seed, "hurries": hurries}
    if len(model.pgm.discrete) > 1 and labels is None:
        found, states = yield from search_each(model.pgm, latents, places, asked)
    else:
        leading = [x[:, :SEARCHED] for x in latents]  # those of PCA come in the order of their variance
        found = yield from search(leading, K, dynamic=dynamic, places=places, labels=labels, **asked)
        states = found.weights
    sticky = duration is not None and model.pgm.sticky is not None
    pgm = with_stickiness(model.pgm, stickiness(found)) if sticky else model.pgm
    q = pgm.initialize(latents, states, inputs, beside.group)
    pgm = pgm if pgm.conjugate else pgm.start(q, latents, states, inputs)
    q = pgm.initialize(latents, states, inputs, beside.group) if pgm.by else q  # around what all groups share
    q = refined(pgm, q, latents, beside) if len(pgm.discrete) > 1 and labels is not None else q
    model = model if places is None else _with_places(model, found, places)
    return Searched(eqx.tree_at(lambda m: (m.pgm, m.q), model, (pgm, q)), found.starts)


def _with_places(model: SVAE, found: States, places: list[np.ndarray]) -> SVAE:
    """The model whose states have the places that they were found with.

    The fit is surer of x than the search was, so that motion says more of the states, and place has to as well.
    """
    mean, covariance = place_of_states(places, found.weights)
    root = np.linalg.inv(np.linalg.cholesky(covariance))
    values = [jnp.asarray(a, jnp.result_type(float)) for a in (mean, root, PLACE_IN_A_FIT * found.place)]
    return eqx.tree_at(lambda m: (m.places.mean, m.places.root, m.places.share), model, values)


def stickiness(found: States) -> float:
    """Counts on the diagonal that make a switch cost what it should: log(counts / switches out of a state) nats."""
    return float(np.exp(found.switch_cost) * max(found.switches, 1.0) / found.number)


def with_stickiness(pgm, counts: float):
    """The same latent model with `counts` more on the diagonal of its transition prior than a uniform row has."""
    rows_of = lambda pgm: getattr(pgm.prior, pgm.sticky).transitions  # noqa: E731
    prior = rows_of(pgm).counts
    K = len(prior)
    rows = expfam.Dirichlet(jnp.asarray(prior - jnp.diag(jnp.diag(prior)) + (prior[0, -1] + counts) * jnp.eye(K)))
    return eqx.tree_at(rows_of, pgm, rows)


def mixture_q(model: SVAE, latents: list[np.ndarray], K: int, beside: Beside = NOTHING, *, seed: int) -> Any:
    """q(theta) of a model whose states do not follow each other: k-means, then mean field, x held at the latents."""
    x, rng = np.concatenate(latents).astype(float), np.random.default_rng(seed)
    labels = beside.labels if model.pgm.discrete else None
    found = kmeans(x, K, rng) if labels is None else begun(x, np.concatenate(labels), K, rng)
    inputs = beside.inputs if model.pgm.inputs else None
    q = model.pgm.initialize(latents, one_hot(found, K, latents), inputs, beside.group)
    return q if K == 1 else refined(model.pgm, q, latents, beside)


def refined(pgm: Any, q: Any, latents: list[np.ndarray], beside: Beside = NOTHING) -> Any:
    """q(theta) and all discrete blocks in turn, with x held at the latents and labelled frames in their states."""
    (x, mask), inputs = padded(latents), beside.inputs if pgm.inputs else None
    labels = None if beside.labels is None else padded_labels(beside.labels)
    groups = np.asarray(beside.group) if pgm.by and beside.group is not None else None
    known = Beside(None if inputs is None else padded(inputs)[0], labels, groups)
    for _ in range(SWEEPS):
        found = jax.tree.map(np.asarray, _pinned_states(pgm, q, x, mask, known))
        rows = [{name: w[i, : len(z)] for name, w in found.items()} for i, z in enumerate(latents)]
        q = pgm.initialize(latents, rows, inputs, beside.group)
    return q


@briefly
def _pinned_states(pgm, q, x, mask, beside):
    """E z of every discrete block and sequence (B, T, K) with the latents all but known."""
    D = x.shape[-1]
    J = jnp.broadcast_to(PINNED * jnp.eye(D, dtype=x.dtype), (*x.shape, D)) * mask[..., None, None]
    potentials = Gaussian(J, PINNED * x * mask[..., None])
    said = None if beside.labels is None else {pgm.shown: jax.vmap(of_labels, (0, None))(beside.labels, pgm.states)}
    infer = jax.vmap(pgm.infer, (None, 0, 0, None, 0, 0, 0))
    found = infer(expfam.moments(q), potentials, mask, None, said, beside.inputs, beside.group)
    return {name: factor.states for name, factor in found.discrete.items()}


def padded(latents: list[np.ndarray]) -> tuple[Array, Array]:
    """Sequences (T_i, D) as one array (B, T, D) and its mask."""
    T = max(map(len, latents))
    x = np.zeros((len(latents), T, latents[0].shape[1]))
    for row, sequence in zip(x, latents, strict=True):
        row[: len(sequence)] = sequence
    mask = np.arange(T)[None] < np.array([len(z) for z in latents])[:, None]
    return jnp.asarray(x, jnp.result_type(float)), jnp.asarray(mask)


def padded_labels(labels: list[np.ndarray]) -> Array:
    """Labels (T_i,) as one array (B, T), FREE at padding."""
    found = np.full((len(labels), max(map(len, labels))), FREE, np.int32)
    for row, known in zip(found, labels, strict=True):
        row[: len(known)] = known
    return jnp.asarray(found)


def one_hot(labels: np.ndarray, K: int, latents: list) -> list[np.ndarray]:
    ends = np.cumsum([len(x) for x in latents])[:-1]
    return np.split(np.eye(K)[labels], ends)
