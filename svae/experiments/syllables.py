"""Figures 7 and 8: the units of behaviour that an SLDS SVAE with 30 states finds in video.

The networks are those of `mouse`. The fit is a run folder, so `svae report`, `svae movies` and `svae view` take it. The
duration of a bout is not known here either: it is found from the data as in `svae fit`.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from svae import runs
from svae.config import Config
from svae.data import Recordings, bout_frames, find_preprocess, preprocessed
from svae.data.scores import adjusted_rand_index, matched, purity
from svae.experiments import _bouts, _strips
from svae.experiments._figures import new_figure, save_figure, save_numbers, style
from svae.experiments._videos import SIZE, Recorded, kept, network, recorded, shown


class Settings(NamedTuple):
    """Chosen to fit in a few minutes on 2 cores."""

    sequences: int = 32  # of the synthetic mouse
    length: int = 250
    states: int = 30
    latent_dim: int = 10
    warmup_steps: int = 200
    steps: int = 100
    batch_size: int = 8
    window: int = 50
    overlap: int = 10


SETTINGS = Settings()
EXAMPLES, EVERY, PADDING = 4, 4, 3  # bouts of a state; frames from one shown to the next; shown before and after
PANELS = 4  # states in the figure of the paper
LONGEST_ROW = 18  # frames shown in a row


def _command(out: Path, data: str | None, net: str, seed: int) -> list[str]:
    given = [] if data is None else ["--data", data]
    return ["svae", "paper", "syllables", *given, "--net", net, "--seed", str(seed), "--out", str(out)]


def run(
    out: Path,
    *,
    data: str | None = None,
    net: str = "mlp",
    seed: int,
    progress: Callable,
    settings: Settings = SETTINGS,
) -> dict:
    """Fit in OUT/run, then write numbers.json, syllables and states/state-KK (png, pdf)."""
    s, out, started, cpu = settings, Path(out), time.monotonic(), time.process_time()
    video, source = _kept(recorded(data, sequences=s.sequences, length=s.length, seed=seed), data, out)
    options = config(video.raw, s, net, seed)
    found = runs.train(
        runs.start(out / "run", video.raw, options, source=source, command=_command(out, data, net, seed)),
        video.raw,
        progress=progress,
    )
    paths = [found.posterior(name).state for name in video.raw.names]
    with style():
        draw(out, video, shown(video.raw, found.model()), paths)
    clocks = {"seconds": round(time.monotonic() - started, 1), "cpu_seconds": round(time.process_time() - cpu, 1)}
    return save_numbers(numbers(video, found, paths, net, s) | {"seed": seed} | clocks, out)


def _kept(video: Recorded, data: str | None, out: Path) -> tuple[Recorded, str]:
    """The recordings, and the path from which the run can read them again; the synthetic mouse gets a file."""
    if data is not None:
        return video, data
    path = out / "mouse.npz"
    return video._replace(raw=kept(path, np.stack(video.raw.sequences), video.raw.fps)), str(path)


def config(raw: Recordings, s: Settings, net: str, seed: int) -> Config:
    """The configuration of the model and of its fit; as many prior counts as there are states, as in the demo."""
    options = {k: v for k, v in s._asdict().items() if k not in ("sequences", "length")}
    small = preprocessed(raw, find_preprocess(raw, Config(size=SIZE)))
    found = {"target_duration": bout_frames(small), "concentration": float(s.states), "learning_rate": 2e-3}
    return Config.make(options | found | {"model": "slds", "size": SIZE, "seed": seed} | network(net))


def numbers(video: Recorded, found: runs.Run, paths: list[np.ndarray], net: str, s: Settings) -> dict:
    every, rate = _bouts.bouts(paths), video.raw.fps or 1.0
    share = np.bincount(np.concatenate(paths), minlength=s.states) / video.raw.frames
    held = [line["held_out"] for line in found.metrics() if line.get("held_out") is not None]
    told = {
        "states_in_use": len(_bouts.in_use(paths)),
        "median_bout_s": float(np.median([b.frames for b in every])) / rate,
        "target_duration_s": found.config.target_duration / rate,
        "held_out_bound_per_frame": held[-1] if held else float("nan"),
        "data": video.source,
        "frames": video.raw.frames,
        "network": net,
        "settings": s._asdict(),
        "states": [
            {"state": k, "share": float(share[k]), "median_bout_s": _bouts.median(every, k) / rate}
            for k in _bouts.in_use(paths)
        ],
    }
    return told if video.labels is None else _agreement(video, paths) | told


def _agreement(video: Recorded, paths: list[np.ndarray]) -> dict:
    truth, states = video.labels.reshape(-1), np.concatenate(paths)
    return {"ari": adjusted_rand_index(truth, states), "purity": purity(truth, states)}


# --- figures ------------------------------------------------------------------------------------------------------


def draw(out: Path, video: Recorded, seen: Recordings, paths: list[np.ndarray]) -> None:
    """The commonest states in one figure, and each state in one of its own."""
    every, used, scale = _bouts.bouts(paths), _bouts.in_use(paths), _strips.find_scale(seen)
    pictures = {k: panel(seen, every, k, scale) for k in used}
    titles = {k: title(k, video, paths, every) for k in used}
    save_figure(
        figure([pictures[k] for k in used[:PANELS]], [titles[k] for k in used[:PANELS]], scale), out, "syllables"
    )
    for k in used:
        save_figure(figure([pictures[k]], [titles[k]], scale), out / "states", f"state-{k:02d}")


def panel(seen: Recordings, every: list, k: int, scale: _strips.Scale) -> np.ndarray:
    """Bouts of a state near its median duration, a row each; the square says when the state is the most probable."""
    step = stride(_bouts.median(every, k))
    chosen = _bouts.typical(every, k, EXAMPLES, PADDING * step, [len(y) for y in seen.sequences])
    rows = [_row(seen.sequences[b.recording], b, step, scale) for b in chosen]
    wide = max(row.shape[1] for row in rows)
    return _strips.stacked([np.pad(r, ((0, 0), (0, wide - r.shape[1])), constant_values=np.nan) for r in rows])


def stride(frames: float) -> int:
    """Frames from one shown to the next: 4 as in the paper, more where a bout would not fit."""
    return max(EVERY, int(np.ceil(frames / (LONGEST_ROW - 2 * PADDING))))


def _row(y, b: _bouts.Stretch, step: int, scale: _strips.Scale) -> np.ndarray:
    at = np.arange(b.first - PADDING * step, b.last + PADDING * step, step)[: LONGEST_ROW + 2]
    at = at[(at >= 0) & (at < len(y))]
    frames = _strips.cropped(np.asarray(y[int(at[0]) : int(at[-1]) + 1])[at - at[0]], scale)
    on = (b.first <= at) & (at < b.last)
    marked = [_strips.marked(f, scale.high) if now else f for f, now in zip(frames, on, strict=True)]
    return _strips.beside(np.stack(marked))


def title(k: int, video: Recorded, paths: list[np.ndarray], every: list) -> str:
    states = np.concatenate(paths)
    lasts = _bouts.median(every, k)
    time = f"{lasts / video.raw.fps:.2f} s" if video.raw.fps else f"{lasts:.0f} frames"
    words = f"state {k}: {100 * np.mean(states == k):.0f} % of frames, median bout {time}; 1 frame of {stride(lasts)}"
    if video.labels is None:
        return words
    return f"{words}, mostly {video.names[matched(video.labels.reshape(-1), states)[k]]}"


def figure(pictures: list[np.ndarray], titles: list[str], scale: _strips.Scale):
    """A panel for each state, one above the other, all of one magnification."""
    wide = max(p.shape[1] for p in pictures)
    inches = 11.0 / max(wide, 1)
    fig = new_figure(11.0, sum(p.shape[0] * inches + 0.45 for p in pictures))
    grid = fig.subplots(len(pictures), 1, squeeze=False, height_ratios=[p.shape[0] for p in pictures])[:, 0]
    for axes, picture, words in zip(grid, pictures, titles, strict=True):
        full = np.pad(picture, ((0, 0), (0, wide - picture.shape[1])), constant_values=np.nan)
        _strips.show(axes, full, scale)
        axes.set_title(words, loc="left", fontsize=11)
    return fig
