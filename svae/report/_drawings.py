"""Which figures a run gets, in the order of the page, and what is said below each."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from svae.report._bouts import durations
from svae.report._diagram import diagram
from svae.report._dynamics import Conditionals, conditionals, has_dynamics, in_words, plane, spectrum
from svae.report._ethogram import ethogram
from svae.report._forecast import LEVELS, coverage, errors, forecasts, foretell
from svae.report._latents import latents
from svae.report._look import Look, find_look
from svae.report._material import MARKOV, SWITCHING, TEMPORAL, Material
from svae.report._states import dynamics_figure, state_figure
from svae.report._structure import dendrogram, similarity, transitions, usage_bars
from svae.report._training import has_sequences, sequences, training
from svae.report._trust import bars, compared, restart_table, restarts


class Drawing(NamedTuple):
    """A figure with its place on the page."""

    name: str  # of its files
    section: str
    words: str
    figure: Any
    state: int | None = None  # that it is about


def drawings(material: Material) -> Iterator[Drawing]:
    """All that applies to this model and to what is left of its data."""
    found = conditionals(material.model)
    look = None if material.seen is None else find_look(material)
    if material.run.metrics():
        words = "Higher is better. The bound of single batches is the faint line."
        yield Drawing("training", "training", words, training(material))
    yield from _of_trust(material)
    if material.config.model in SWITCHING:
        yield from _of_states(material, look, found)
    yield from _of_latents(material, found)
    if look is not None and material.config.model in TEMPORAL and (ahead := foretell(material)) is not None:
        yield Drawing("forecast", "forecast", _accuracy(material, ahead), forecasts(material, ahead, look))
    words = "What is grey is observed; θ and γ are parameters, each with a posterior or an estimate of its own."
    yield Drawing("model", "model", words, diagram(material))


def _of_trust(material: Material) -> Iterator[Drawing]:
    """How the states settled, whether restarts agree, and what plain models reach."""
    if has_sequences(material):
        several = " Where another restart becomes the best, all colours change." if material.config.restarts > 1 else ""
        words = (
            f"The likeliest states of one held-out stretch, measurement by measurement, the last at the foot.{several}"
        )
        yield Drawing("sequence", "training", words, sequences(material))
    if (table := restart_table(material)) is not None:
        words = "The adjusted Rand index of two segmentations: 1 for the same, 0 for chance."
        yield Drawing("restarts", "trust", words, restarts(material, table))
    if found := compared(material):
        words = (
            "Plain models of the same recordings on the same split. The number of the run is a bound, so it is rather "
            "better than it looks; the others are exact."
        )
        yield Drawing("baselines", "trust", words, bars(found))


def _of_states(material: Material, look: Look | None, found: Conditionals) -> Iterator[Drawing]:
    yield Drawing("ethogram", "ethogram", "The most probable state of every frame.", ethogram(material))
    words = "Share of all frames. The dashed line is an equal share."
    yield Drawing("usage", "states", words, usage_bars(material))
    leading = plane(material)
    for k in material.states:
        made = state_figure(material, look, found, leading, k)
        yield Drawing(f"state-{k:02d}", "states", _about(material, found, k), made, k)
    order = sorted(material.states)
    if len(material.states) > 1:
        alike = similarity(material, found)
        order = alike.order
    if len(material.states) > 1 and material.config.model in MARKOV:
        words = "Of the bouts of a state (row), the share that each other state follows; rare arrows are left out."
        yield Drawing("transitions", "transitions", words, transitions(material, order))
    if len(material.states) > 2:
        words = "States that join low down do nearly the same to the latent; high up, a frame tells them apart at once."
        yield Drawing("similarity", "similarity", words, dendrogram(material, alike))


def _of_latents(material: Material, found: Conditionals | None) -> Iterator[Drawing]:
    leading = plane(material)
    how = "its most probable state" if material.config.model in SWITCHING else "its time"
    words = f"Every frame at the posterior mean of its latent, coloured by {how}."
    yield Drawing("latents", "latents", words, latents(material, leading))
    if material.config.model == "lds":
        words = f"The fitted dynamics: {in_words(spectrum(found, 0), material.fps)}."
        yield Drawing("dynamics", "latents", words, dynamics_figure(material, found, leading))


def _about(material: Material, found: Conditionals, k: int) -> str:
    """Usage, bouts, how it turns, and what was merged into it."""
    lengths = durations(material.stretches, k)
    middle = material.duration(np.median(lengths))
    bouts = f"{len(lengths)} bouts, median {middle:.2g} {material.unit}" if len(lengths) > 1 else "one bout"
    turns = f" · {in_words(spectrum(found, k), material.fps)}" if has_dynamics(found) else ""
    return f"{100 * material.usage[k]:.1f} % of frames · {bouts}{turns}{_merged(material, found, k)}"


def _merged(material: Material, found: Conditionals, k: int) -> str:
    """Which states count as this one; only frames can be counted together, dynamics cannot."""
    if not (members := material.members(k)):
        return ""
    alone = f"; eigenvalues and flow are those of state {k} alone" if has_dynamics(found) else ""
    return f" · counts {' and '.join(f'state {m}' for m in members)} too{alone}"


def _accuracy(material: Material, ahead: Any) -> str:
    """The figure in a sentence or two."""
    ours, repeated = errors(ahead)
    inside = 100 * coverage(ahead)[-1]
    gain = 100 * (1 - float(np.sqrt(np.nanmean(ours**2) / max(np.nanmean(repeated**2), 1e-30))))
    better = f"{gain:.0f} % below" if gain >= 0 else f"{-gain:.0f} % above"
    kind = "held-out recording" if ahead.held_out else "recording"
    many = f"{ahead.recordings} {kind}s" if ahead.recordings > 1 else f"one {kind}"
    known = "" if ahead.held_out else " The fit has seen most of these frames."
    return (
        f"{len(ahead.names)} stretches of {material.duration(len(ours)):.2g} {material.unit} in {many}, foretold from "
        f"what went before: the error is {better} that of repeating the last frame, and {inside:.0f} % of the truth "
        f"lies in the {100 * LEVELS[-1]:.0f} % interval.{known}"
    )
