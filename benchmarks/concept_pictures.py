"""The pictures of docs/concepts.md and docs/choose.md, drawn from models that this package fits.

python -m benchmarks.concept_pictures docs/images [windows pinwheel potentials states]
"""

import sys
import tempfile
from pathlib import Path

import jax
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import svae
from svae import runs
from svae.experiments._figures import ARMS, BLUE, GREY, ORANGE, STYLE

GAP = slice(50, 60)


def fitted(model, data, key=0):
    """The fitted model, and every step that reached it."""
    steps = list(svae.fit(model, data, key=jax.random.key(key)))
    return steps[-1].model, steps


def potentials(out: Path) -> None:
    """A dot of which some frames are missing: what the model infers, and how sure it is."""
    y = np.array(svae.data.dots(sequences=30, length=100, seed=0).y)
    model = svae.make(y.shape[2:], model="lds", latent_dim=6, steps=1000, warmup_steps=100, seed=1)
    model, _ = fitted(model, list(y))
    one = y[0].copy()
    one[GAP] = np.nan
    found = svae.infer(model, one)
    filled = svae.impute(model, one, key=jax.random.key(2)).frames[0]
    figure, axes = plt.subplots(3, 1, figsize=(8, 5.2), sharex=True, layout="constrained", height_ratios=(1, 1, 1.2))
    axes[0].imshow(one.T, aspect="auto", vmin=0, vmax=1)
    axes[0].set(ylabel="pixel", title="what is given: 10 frames are missing")
    axes[1].imshow(filled.T, aspect="auto", vmin=0, vmax=1)
    axes[1].set(ylabel="pixel", title="what the model fills in")
    d = int(np.argmin(np.var(np.diff(found.mean[0], axis=0), axis=0) / np.var(found.mean[0], 0)))  # the slowest
    t, mean, sd = np.arange(len(one)), found.mean[0][:, d], found.sd[0][:, d]
    axes[2].fill_between(t, mean - 2 * sd, mean + 2 * sd, color=BLUE, alpha=0.25, lw=0)
    axes[2].plot(t, mean, color=BLUE)
    axes[2].axvspan(GAP.start - 0.5, GAP.stop - 0.5, color=GREY, alpha=0.15, lw=0)
    axes[2].set(xlabel="frame", ylabel="latent", title="one latent dimension, mean ± 2 sd")
    save(figure, out / "concept-potentials.png")


def states(out: Path) -> None:
    """Switching rotations: data, true states, found states, and the report's own pictures of the run."""
    data = svae.data.switching_rotations(seed=0)
    config = svae.Config(model="slds", states=4, latent_dim=2, steps=300, restarts=1, target_duration=100.0)
    with tempfile.TemporaryDirectory() as folder:
        run = runs.start(Path(folder) / "run", svae.load(data.y, fps=30), config)
        runs.train(run, svae.load(data.y, fps=30))
        run = runs.Run(Path(folder) / "run")
        answer = run.posterior(run.recordings()[0])
        metrics = run.metrics()
    shown = slice(0, 1200)
    figure, axes = plt.subplots(
        4, 1, figsize=(8, 5.4), sharex=True, layout="constrained", height_ratios=(2, 0.5, 0.5, 1.4)
    )
    axes[0].plot(data.y[shown], lw=0.8)
    axes[0].set(title="two columns of data", ylabel="value")
    for row, labels, title in (
        (1, data.labels, "true states"),
        (2, matched(answer.state, data.labels), "states found"),
    ):
        axes[row].imshow(
            labels[shown][None], aspect="auto", cmap=matplotlib.colors.ListedColormap(ARMS[:8]), vmin=0, vmax=7
        )
        axes[row].set(yticks=[], title=title)
    axes[3].stackplot(np.arange(1200), np.asarray(answer.probability)[shown].T, colors=colours(answer, data.labels))
    axes[3].set(xlabel="frame", ylabel="probability", ylim=(0, 1))
    save(figure, out / "concept-states.png")
    bound(metrics, out)


def matched(found: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """The found states by the number of the true state that each meets most."""
    best = {k: np.bincount(truth[found == k]).argmax() for k in np.unique(found)}
    return np.array([best[k] for k in found])


def colours(answer, truth) -> list[str]:
    """A colour for each state of the model, that of the true state that it meets most."""
    K = np.asarray(answer.probability).shape[1]
    met = [truth[answer.state == k] for k in range(K)]
    return [ARMS[np.bincount(m).argmax()] if len(m) else "#ffffff" for m in met]


def bound(metrics: list[dict], out: Path) -> None:
    """The bound of the batches and of held-out data, by step."""
    steps = np.array([m["step"] for m in metrics])
    figure, axes = plt.subplots(figsize=(8, 3.2), layout="constrained")
    axes.plot(steps, [m["bound"] for m in metrics], color=GREY, lw=0.9, label="bound of a batch")
    held = [(m["step"], m["held_out"]) for m in metrics if m.get("held_out") is not None]
    axes.plot(*zip(*held, strict=True), "o-", color=ORANGE, label="held out")
    warm = max((m["step"] for m in metrics if m["phase"] == "warm-up"), default=0)
    axes.axvspan(0, warm, color=BLUE, alpha=0.1, lw=0, label="warm-up of the networks")
    axes.set(xlabel="step", ylabel="nats per frame")
    axes.legend(loc="lower right")
    save(figure, out / "concept-bound.png")


def windows(out: Path) -> None:
    """Three recordings cut into windows: what counts, and what is only seen."""
    data = svae.data.recordings([np.zeros((n, 1)) for n in (520, 350, 180)])
    table = svae.data.windows(data, 200, 20)
    figure, axes = plt.subplots(figsize=(8, 2.6), layout="constrained")
    for i, row in enumerate(table.recording):
        y = -float(row) - 0.18 * (i % 2)
        axes.barh(y, table.last[i] - table.first[i], left=table.first[i], height=0.16, color=BLUE, alpha=0.3)
        axes.barh(y, table.core_last[i] - table.core_first[i], left=table.core_first[i], height=0.16, color=BLUE)
    axes.set(yticks=[0, -1, -2], yticklabels=["520 frames", "350 frames", "180 frames"], xlabel="frame")
    axes.set_title("windows of 200 frames (dark) with an overlap of 20 (light)")
    save(figure, out / "concept-windows.png")


def pinwheel(out: Path) -> None:
    """The pinwheel of the paper: the data by state, and the same points in the latent space."""
    data = svae.data.pinwheel(seed=0)
    model = svae.make((2,), model="gmm", states=10, latent_dim=2, steps=1500, concentration=0.5, restarts=4, seed=3)
    model, _ = fitted(model, data.y)
    labels, x = svae.segment(model, data.y).labels[0], svae.infer(model, data.y).mean[0]
    figure, axes = plt.subplots(1, 2, figsize=(8, 3.9), layout="constrained")
    palette = np.array(ARMS)[labels % len(ARMS)]
    for ax, points, title in ((axes[0], data.y, "data y"), (axes[1], x, "latents x")):
        ax.scatter(*points.T, c=palette, s=9)
        ax.set(title=title, xticks=[], yticks=[])
    axes[0].set_aspect("equal")
    save(figure, out / "concept-pinwheel.png")


def save(figure, path: Path) -> None:
    figure.savefig(path, dpi=130)
    plt.close(figure)
    print(path.name, flush=True)


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    pictures = {draw.__name__: draw for draw in (windows, pinwheel, potentials, states)}
    with plt.rc_context(STYLE):
        for name in sys.argv[2:] or pictures:
            pictures[name](folder)
