"""What a model, a step and an answer say of themselves in one look, as text and as HTML for notebooks."""

import html
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import numpy as np

Rows = list[tuple[str, str]]  # what is described, and the words


def model_rows(model: Any) -> Rows:
    """The parts of a model and the settings of its fit, read off the model."""
    config = model.config
    networks = f"{config.network} {list(config.hidden)}, {config.precision} precision, {config.likelihood} likelihood"
    own = [part for part in (model.recognize, model.observe) if not type(part).__module__.startswith("svae.")]
    networks += "".join(f", {type(part).__name__} of your own" for part in own)
    networks = "none, the latent is the frame or its projection" if model.pgm.observed else networks
    restarts = f", {config.restarts} restarts" if config.restarts > 1 else ""
    steps = f"{config.steps:,} steps{restarts}, batches of {config.batch_size}, natural step {config.natural_step:g}"
    return [
        ("model", f"{config.model}, frames of shape {model.shape}, {config.latent_dim} latent dimensions"),
        *_families(model.q),
        ("networks", networks),
        ("fit", f"{steps}, seed {config.seed}; {_units(model)}"),
    ]


def model_text(model: Any) -> str:
    """One line for each part of a model."""
    rows = model_rows(model)
    width = max(len(name) for name, _ in rows)
    return "\n".join(["SVAE", *(f"  {name:{width}}  {words}" for name, words in rows)])


def model_html(model: Any) -> str:
    """The same as a table."""
    return _table("SVAE", model_rows(model))


def step_rows(step: Any) -> Rows:
    """Where a fit stands."""
    rows = [("bound", f"{step.bound:.4g} nats per frame")]
    if np.isfinite(step.held_out):
        rows.append(("held out", f"{step.held_out:.4g} nats per frame"))
    rows.append(("states in use", str(step.states_in_use)))
    rows.append(("speed", f"{step.frames_per_second:,.0f} frames a second"))
    return [*rows, ("note", step.note)] if step.note else rows


def step_text(step: Any) -> str:
    """One line of a step."""
    return ", ".join([_title(step), *(f"{name} {words}" for name, words in step_rows(step))])


def step_html(step: Any) -> str:
    """The same as a table."""
    return _table(_title(step), step_rows(step))


def answer_text(answer: Any) -> str:
    """One line of what a query gave: its recordings, and the shape of each field."""
    names = f"{len(answer.names)} recording{'' if len(answer.names) == 1 else 's'}"
    fields = (f"{name} {_shape(getattr(answer, name))}" for name in answer._fields if name not in ("names", "blocks"))
    return f"{type(answer).__name__} of {names}: {', '.join(fields)}{_of_blocks(answer)}"


def arrays_text(answer: Any) -> str:
    """One line of a tuple of arrays."""
    fields = (f"{name} {_shape(getattr(answer, name))}" for name in answer._fields if name != "blocks")
    return f"{type(answer).__name__}: {', '.join(fields)}{_of_blocks(answer)}"


def _of_blocks(answer: Any) -> str:
    """The names of the discrete blocks, where there are several."""
    blocks = getattr(answer, "blocks", ())
    return f", blocks {' and '.join(blocks)}" if len(blocks) > 1 else ""


def state_text(state: Any) -> str:
    """One line of what a fit remembers between two steps."""
    return f"FitState after {int(state.done)} of {state.best.config.steps} steps"


def _families(q: Any) -> Iterator[tuple[str, str]]:
    """The name and the sizes of every family in q(theta)."""
    for path, family in jax.tree_util.tree_leaves_with_path(q, is_leaf=lambda node: hasattr(node, "natural")):
        sizes = " x ".join(map(str, max((a.shape for a in jax.tree.leaves(family)), key=len, default=())))
        name = jax.tree_util.keystr(path, simple=True, separator=".") or "q"
        yield f"q({name})", f"{type(family).__name__} {sizes}".strip()


def _units(model: Any) -> str:
    """Whether a fit has given the model the units of its data."""
    try:
        mean, scale = (np.asarray(a, float) for a in (model.scaling.mean, model.scaling.scale))
    except (RuntimeError, TypeError, ValueError):  # while a program is traced, or without arrays
        return "units not known here"
    fresh = not mean.any() and bool((scale == 1).all())
    return "no units of data yet" if fresh else "in the units of its data"


def _shape(value: Any) -> str:
    """(400, 2), or that of the first and the number of further ones."""
    if isinstance(value, np.ndarray):
        return str(value.shape)
    if not isinstance(value, Sequence):
        return str(value)
    first = _shape(value[0]) if len(value) else "none"
    return first if len(value) < 2 else f"{first} and {len(value) - 1} more"


def _title(step: Any) -> str:
    return f"Step {step.step} of {step.total} ({step.phase})"


def _table(title: str, rows: Rows) -> str:
    cells = (
        f"<tr><th style='text-align:left'>{_safe(a)}</th><td style='text-align:left'>{_safe(b)}</td></tr>"
        for a, b in rows
    )
    return f"<table><caption style='text-align:left'><b>{_safe(title)}</b></caption>{''.join(cells)}</table>"


def _safe(text: str) -> str:
    return html.escape(text)
