"""Which figures a run gets, in the order of the page, and what is said below each."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from svae.fitting.scree import in_words as of_scree
from svae.report._again import found_again
from svae.report._bodies import Bodies, in_words
from svae.report._bouts import durations
from svae.report._diagram import diagram
from svae.report._durations import durations_figure
from svae.report._dynamics import Conditionals, conditionals, has_dynamics, plane, spectrum
from svae.report._dynamics import in_words as turns
from svae.report._ethogram import ethogram
from svae.report._forecast import LEVELS, coverage, errors, forecasts, predict
from svae.report._latents import latents
from svae.report._look import find_look
from svae.report._material import Material
from svae.report._null import null
from svae.report._pose import Place, body_figure, pose_figure
from svae.report._scree import scree_figure, usual
from svae.report._states import dynamics_figure, state_figure
from svae.report._structure import dendrogram, similarity, transitions, usage_bars
from svae.report._training import has_sequences, sequences, training
from svae.report._trust import bars, restart_table, restarts
from svae.report._video import Video
from svae.report._wild import in_words as of_wild
from svae.report._wild import wild, wild_figure
from svae.runs._null import in_words as null_in_words
from svae.runs._ranking import ranking, verdict
from svae.runs._stability import Stability, number
from svae.runs._stability import in_words as of_stability


class Mark(NamedTuple):
    """A place in a figure whose name is shown to who points at it."""

    name: str
    left: float  # share of the width
    top: float  # share of the height


class Drawing(NamedTuple):
    """A figure with its place on the page."""

    name: str  # of its files
    section: str
    words: str
    figure: Any
    state: int | None = None  # that it is about
    folded: str = ""  # behind these words, which open it
    marks: tuple[Mark, ...] = ()
    block: Material | None = None  # whose states it is about, where there are several discrete blocks


def drawings(material: Material, body: Bodies | None = None, video: Video | None = None) -> Iterator[Drawing]:
    """All that applies to this model and to what is left of its data."""
    found = conditionals(material)
    look = None if material.seen is None else find_look(material)
    if material.run.metrics():
        words = "Higher is better. The bound of single batches is the faint line."
        yield Drawing("training", "training", words, training(material))
    yield from _of_trust(material, body)
    if material.pgm.discrete:
        words = "The most probable state of every frame."
        yield Drawing("ethogram", "ethogram", words, ethogram(material))
    for part in material.each if material.pgm.discrete else ():
        for drawing in _of_states(part, look, conditionals(part), body, video):
            yield drawing._replace(name=_name(part, drawing.name), block=part if part.block else None)
    yield from _of_latents(material, found)
    yield from _of_components(material)
    if look is not None and not material.pgm.independent and (ahead := predict(material)) is not None:
        yield Drawing("forecast", "forecast", _accuracy(material, ahead), forecasts(material, ahead, look))
    words = "What is grey is observed; θ and γ are parameters, each with a posterior or an estimate of its own."
    yield Drawing("model", "model", words, diagram(material))


def _of_trust(material: Material, body: Bodies | None = None) -> Iterator[Drawing]:
    """How the states settled, whether restarts agree, and what plain models reach."""
    of = material.each[0].of
    if has_sequences(material):
        words = f"The most probable states{of} of one held-out stretch at every measurement, the last one below."
        words += " Where another restart becomes the best, all colours change." if material.config.restarts > 1 else ""
        yield Drawing("sequence", "training", words, sequences(material))
    if (table := restart_table(material)) is not None:
        by = f" by states{of}" if of else ""
        words = f"The adjusted Rand index of two segmentations{by}: 1 for the same, 0 for chance."
        yield Drawing("restarts", "trust", words, restarts(material, table))
    if material.pgm.discrete and isinstance(known := material.stability, Stability):
        words = f"States{of}. {of_stability(known)}" if of else of_stability(known)
        yield Drawing("found-again", "trust", words, found_again(material, known))
    if (beside := material.run.null()).gain or beside.dynamics:
        yield Drawing("null", "trust", " ".join(null_in_words(beside)), null(beside))
    if body is not None and (strayed := wild(material.model.preprocess, body)) and strayed.frames:
        made = wild_figure(body, strayed, list(material.posteriors), material.fps)
        yield Drawing("wild-points", "trust", of_wild(strayed), made)
    if places := ranking(material.run):
        words = (
            "Plain models of the same recordings on the same split, the best on top; in brackets how much higher than "
            "this run each is, ± its standard error over parts of the held-out frames. The number of this run is a "
            f"lower bound of its log likelihood; those of the others are exact. {verdict(places)}"
        )
        yield Drawing("baselines", "trust", words.strip(), bars(places))


def _name(material: Material, name: str) -> str:
    """usage-w and state-w-03 of a further block w."""
    kind, _, rest = name.partition("-")
    return f"{material.called(kind)}{'-' if rest else ''}{rest}"


def _of_states(material, look, found: Conditionals | None, body: Bodies | None, video: Video | None):
    words = "Share of all frames. The dashed line is an equal share."
    yield Drawing("usage", "states", words, usage_bars(material))
    if (lasting := material.pgm.durations(material.model.q)) is not None:
        words = (
            "How long a bout of each state lasts: the line is what the model has learned, the mean of its distribution "
            "of durations; the bars are the bouts that it found, without those that a recording cuts off."
        )
        yield Drawing("durations", "states", words, durations_figure(material, np.asarray(lasting, float)))
    if body is not None and not material.before:
        made, places = body_figure(material, body)
        yield Drawing("body", "states", _key(body), made, marks=_marks(made, places))
    leading = plane(material)
    for k in material.states:
        yield _of_state(material, look, found, body, video, k)
        if has_dynamics(found):
            words = f"Dynamics of the latent in this state{_turning(material, found, k)}"
            made = dynamics_figure(material, found, leading, k)
            yield Drawing(f"dynamics-{k:02d}", "states", "", made, k, words)
    order = sorted(material.states)
    if len(material.states) > 1 and found is not None:
        alike = similarity(material, found)
        order = alike.order
    if len(material.states) > 1 and material.pgm.chained:
        words = "Of the bouts of a state (row), the share that each other state follows; rare arrows are left out."
        yield Drawing("transitions", "transitions", words, transitions(material, order))
    if len(material.states) > 2 and found is not None:
        words = "States that join at a small distance are similar; those that join at a large one differ in each frame."
        yield Drawing("similarity", "similarity", words, dendrogram(material, alike))


def _of_state(material, look, found, body: Bodies | None, video: Video | None, k: int) -> Drawing:
    words = _about(material, found, k)
    if body is None:
        return Drawing(f"state-{k:02d}", "states", words, state_figure(material, look, k), k)
    made, places = pose_figure(material, body, k, video)
    words = f"{words} · {in_words(material, body, k)}"
    return Drawing(f"state-{k:02d}", "states", words, made, k, marks=_marks(made, places))


def _marks(figure, places: list[Place]) -> tuple[Mark, ...]:
    """Places of points in shares of a figure, once its layout is known."""
    figure.draw_without_rendering()
    width, height = figure.bbox.size
    found = []
    for place in places:
        x, y = place.axes.transData.transform(place.xy)
        inside = place.axes.bbox.contains(x, y)
        found += [Mark(place.name, float(x / width), float(1 - y / height))] if inside else []
    return tuple(found)


def _key(body: Bodies) -> str:
    """What the picture of the body means."""
    sided = " Left points are light, right ones dark." if any(body.skeleton.sides) else ""
    return (
        f"The body and its points: a ring is the nose ({body.skeleton.names[body.skeleton.nose]}), a square the tail "
        f"({body.skeleton.names[body.skeleton.tail]}).{sided} Its lines are {body.skeleton.source}. One body length, "
        f"from nose to tail, is {body.unit:.3g} in the units of the file. Point at a dot to see its name."
    )


def _turning(material, found, k) -> str:
    return f": {turns(spectrum(found, k), material.fps)}, eigenvalues and flow"


def _of_latents(material: Material, found: Conditionals | None) -> Iterator[Drawing]:
    leading = plane(material)
    several = [part for part in material.each if material.pgm.discrete and len(part.states) > 1]
    for part in several or material.each[:1]:
        how = f"its most probable state{part.of}" if several else "its time"
        words = f"Every frame at the posterior mean of its latent, coloured by {how}."
        yield Drawing(part.called("latents"), "latents", words, latents(part, leading))
    if material.pgm.dynamic and not material.pgm.discrete:
        where = "" if found.beyond is None else ", near the centre of the latents"
        words = f"The fitted dynamics{where}: {turns(spectrum(found, 0), material.fps)}."
        yield Drawing("dynamics", "latents", words, dynamics_figure(material, found, leading, 0))


def _of_components(material: Material) -> Iterator[Drawing]:
    """How much of the variance the latent dimensions hold, where the fit began at principal components."""
    if not (found := material.run.scree()).why:
        D, own = material.config.latent_dim, usual(material)
        yield Drawing("scree", "latents", of_scree(found, D, usual=own), scree_figure(found, D, own))


def _about(material: Material, found: Conditionals | None, k: int) -> str:
    """Usage, bouts, how it turns, and what was merged into it."""
    lengths = durations(material.stretches, k)
    middle = material.duration(np.median(lengths))
    bouts = f"{len(lengths)} bouts, median {middle:.2g} {material.unit}" if len(lengths) > 1 else "one bout"
    known = f"{_observed(material, k)}{_again(material, k)}{_merged(material, found, k)}"
    return f"{100 * material.usage[k]:.1f} % of frames · {bouts}{known}"


def _observed(material: Material, k: int) -> str:
    """How much is missing of its frames, and how sure the tracker was."""
    if material.quality is None or not material.quality.frames[k]:
        return ""
    gaps = f" · {100 * material.quality.share_incomplete[k]:.0f} % of its frames lack a point or number"
    trust = material.quality.mean_confidence[k]
    return gaps + (f" · confidence {trust:.2f}" if np.isfinite(trust) else "")


def _again(material: Material, k: int) -> str:
    """How well it is found again."""
    value = number(material.stability, k)
    return "" if value is None else f" · found again {value:.2f}"


def _merged(material: Material, found: Conditionals | None, k: int) -> str:
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
        f"{len(ahead.names)} stretches of {material.duration(len(ours)):.2g} {material.unit} in {many}, predicted from "
        f"what went before: the error (root mean square) is {better} that of repeating the last frame, and "
        f"{inside:.0f} % of the truth lies in the {100 * LEVELS[-1]:.0f} % interval.{known}"
    )
