"""A run in words: what was fitted and found, and warnings."""

import math

import numpy as np

from svae.report._again import hardly
from svae.report._material import Material
from svae.report._palette import label
from svae.report._trust import beaten, compared, disagreement, nats
from svae.runs._null import doubts
from svae.runs._quality import suspects, warning
from svae.runs._stability import overruled
from svae.runs._warnings import all_used, more_states

FAR = 2.0  # times the target duration, or a fraction of it, that is worth a word
FEW = 3  # recordings, below which nothing is held out whole
FALL = 0.05  # of its rise that a held-out bound may lose after its best
RUSHED = 0.25  # share of states in bouts of one frame or two


def summary(material: Material) -> list[str]:
    """Sentences for the card at the top of the page."""
    states = [f"{p.block}: {_states(p)}" if p.block else _states(p) for p in material.each]
    return [s for s in (_data(material), _fit(material), *states, _bound(material)) if s]


def _data(material):
    found, config = material.posteriors, material.config
    frames = sum(len(p.state) for p in found.values())
    clock = f", {_span(frames / material.fps)} at {material.fps:g} frames a second" if material.fps else ""
    latent = f"a latent of {config.latent_dim} dimensions"
    within = f"at most {len(material.usage)} states and {latent}" if material.pgm.discrete else latent
    within = "" if material.blocks else f" with {within}"  # a graph of several blocks has its sizes in its title
    many = f"{len(found)} recordings" if len(found) > 1 else "one recording"
    title = material.pgm.title
    return f"{title[0].upper()}{title[1:]}{within}, fitted to {many} of {frames:,} frames{clock}."


def _fit(material):
    lines, provenance = material.run.metrics(), material.run.provenance()
    if not lines:
        return ""
    fitted, warm = (sum(line["phase"] == phase for line in lines) for phase in ("fit", "warm-up"))
    took = f" in {_span(lines[-1]['seconds'])}" if lines[-1].get("seconds") else ""
    return f"The fit took {fitted} steps after a warm-up of {warm}{took}. {_ended(provenance['status'])}"


ENDS = {"finished": "It is finished.", "time over": "It ended when its --max-time was reached."}


def _ended(status):
    return ENDS.get(status, f"The run is {status}.")


def _states(material):
    if not material.pgm.discrete:
        return ""
    used = material.states
    most = (
        f"{label(used[0], material.names)} is the commonest, with {100 * material.usage[used[0]]:.0f} % of the frames"
    )
    merged = f"{len(material.merged)} more count as another one. " if material.merged else ""
    return f"{_count(len(used), 'state is', 'states are')} in use; {most}. {merged}{_lasting(material)}"


def _lasting(material):
    if not material.pgm.chained:
        return ""
    target = material.target
    asked = f", and the target was {_length(material, target)}" if target else ""
    asked += ", which the data overruled" if target and overruled(material.run.path) else ""
    return f"The median bout lasts {_length(material, median_bout(material))}{asked}."


def _bound(material):
    held = material.run.held_out()
    if held is None:
        return "Nothing was held out."
    others = [f"{k} {nats(v)}" for k, v in compared(material).items() if not k.startswith("this run")]
    against = f"; {', '.join(others)}" if others else ""
    return f"The held-out bound is {nats(held)} nats per frame{against}."


def median_bout(material: Material) -> float:
    """In frames, over all bouts."""
    return float(np.median([s.frames for s in material.stretches]))


def _held_out(material):
    return [line["held_out"] for line in material.run.metrics() if line.get("held_out") is not None]


def number(value: float) -> str:
    """Four digits, and a minus that is one."""
    return f"{value:.4g}".replace("-", "−")


def _length(material, frames):
    return f"{material.duration(frames):.2g} s" if material.fps else f"{frames:.3g} frames"


def _span(seconds):
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.1f} min" if seconds < 3600 else f"{seconds / 3600:.1f} h"


def _count(number, one, many):
    return f"{number} {one if number == 1 else many}"


# --- warnings -----------------------------------------------------------------------------------------------------


def warnings(material: Material) -> list[str]:
    """Sentences about numbers that look wrong, each with what to do."""
    by_block = {_bout_length, _unused, _all_used, _one_state, _rushed, hardly}
    checks = (_unfinished, _not_finite, _bout_length, _unused, _all_used, _one_state, _rushed, _falling, _few, _frozen)
    checks += (disagreement, hardly, beaten)
    said = [(p, check(p)) for check in checks for p in (material.each if check in by_block else (material,))]
    return [
        *(fault for part in material.each for fault in faults(part)),
        *(f"{p.block}: {sentence}" if p.block else sentence for p, sentence in said if sentence),
        *doubts(material.run.null()),
    ]


def faults(material: Material) -> list[str]:
    """A sentence for each state in use that may be a fault of the tracker."""
    if material.quality is None or not material.pgm.discrete:
        return []
    mine = [k for k in suspects(material.quality) if k in material.states]
    return [warning(material.quality, k, f"{label(k, material.names)}{material.of}") for k in mine]


def _unfinished(material):
    status = material.run.provenance()["status"]
    if status != "finished":
        return f"The run is {status}, not finished: what follows may still change. `svae fit --resume` goes on."
    return ""


def _not_finite(material):
    lines = [line for line in material.run.metrics() if line["phase"] == "fit"]
    lost = sum(line.get("bound") is None for line in lines)
    error = sum(int(np.isnan(p.error).sum()) for p in material.posteriors.values())
    said = f"The bound was not finite in {lost} of {len(lines)} steps; use a smaller learning_rate. " if lost else ""
    return said + (f"{_count(error, 'frame has', 'frames have')} nothing observed." if error else "")


def _bout_length(material):
    target = material.target
    if not material.pgm.chained or not target:
        return ""
    if overruled(material.run.path):
        return (
            f"With bouts of {_length(material, target)} the states explained little of these data, so they were found "
            "without that target duration."
        )
    ratio = median_bout(material) / target
    if 1 / FAR <= ratio <= FAR:
        return ""
    word, remedy = ("longer", "fewer recordings than states, or a short fit,") if ratio > 1 else ("shorter", "noise")
    lasts = _length(material, median_bout(material))
    return (
        f"The median bout lasts {lasts}, {word} than the target of {_length(material, target)} by more than a factor "
        f"of {FAR:g}; {remedy} may be why. Fit for more steps, or ask for another --target-duration."
    )


def _unused(material):
    if not material.pgm.discrete:
        return ""
    idle = material.most - len(material.states)
    if idle < max(2, len(material.usage) // 2):
        return ""
    return f"{idle} of {len(material.usage)} states have less than 1 % of the frames; fewer --states would suffice."


def _all_used(material):
    used = len(material.states) if material.pgm.discrete else 0
    return all_used(used, material.most, more=more_states(material.config, material.block)) if used else ""


def _one_state(material):
    if material.pgm.discrete and len(material.states) == 1 and len(material.usage) > 1:
        return "Nearly all frames are in one state: nothing was segmented. Fit for longer, or with more restarts."
    return ""


def _rushed(material):
    if not material.pgm.chained or len(material.stretches) < 10:
        return ""
    share = float(np.mean([s.frames <= 2 for s in material.stretches]))
    if share <= RUSHED:
        return ""
    return f"{100 * share:.0f} % of the bouts last one frame or two; a --target-duration gives longer ones."


def _falling(material):
    held = _held_out(material)
    if len(held) < 3 or not all(map(math.isfinite, held)):
        return ""
    rise = max(held) - held[0]
    if max(held) - max(held[-2:]) <= FALL * max(rise, abs(max(held)) * 0.01):  # one low measurement is chance
        return ""
    kept = material.config.patience is not None
    remedy = "The model before the fall is kept; more recordings" if kept else "Fit for fewer steps, set patience, or"
    remedy += " would help." if kept else " add recordings."
    return (
        f"The held-out bound fell from {number(max(held))} to {number(held[-1])}: the model begins to overfit "
        f"the recordings that it is trained on. {remedy}"
    )


def _few(material):
    if len(material.posteriors) >= FEW:
        return ""
    many = _count(len(material.posteriors), "recording", "recordings")
    return (
        f"There {'is' if many.startswith('1 ') else 'are'} only {many}, so differences between animals cannot be seen."
    )


def _frozen(material):
    x = np.concatenate([p.mean for p in material.posteriors.values()])
    still = int(np.sum(x.std(0) < 1e-3 * max(float(x.std()), 1e-12)))
    return (
        f"{still} of {x.shape[1]} latent dimensions do not move; a smaller --latent-dim would suffice." if still else ""
    )
