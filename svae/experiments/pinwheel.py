"""Figure 1: a mixture, a density network and their union, the GMM SVAE, on the five arms of a pinwheel.

The SVAE and the density network (a VAE) have the same networks and the same steps. All are judged on points of a new
seed: components in use, purity, and nats per point.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jax
import numpy as np

from svae.config import Config
from svae.data import synthetic
from svae.data.scores import IN_USE
from svae.experiments._densities import Panel, densities, figure
from svae.experiments._figures import save_figure, save_numbers, style
from svae.fitting.loop import fit
from svae.model import SVAE, make
from svae.queries import generate, infer, score

NEW_SEED = 1_000_000  # new points come from seed + NEW_SEED
IDEAL = -4.85  # nats per point, of the generator itself
NO_SKLEARN = "without scikit-learn there is no GMM to compare with: pip install 'svae[paper]'"


CONFIG = Config(
    model="gmm",
    states=15,
    latent_dim=2,
    concentration=0.05,
    network="residual",
    hidden=(40, 40),
    precision="full",
    likelihood="student_t",  # a few points lie far out on their arms
    variance="network",
    batch_size=250,
    steps=1000,
    natural_step=0.1,
    learning_rate=3e-3,
    held_out=0.0,
)


@dataclass(frozen=True)
class Settings:
    arms: int = 5
    points: int = 100  # per arm, to learn from
    new_points: int = 200  # per arm, to be judged on
    config: Config = CONFIG  # of the SVAE; the VAE's differs in the model only
    mixtures: tuple[int, ...] = (5, 15)  # components of scikit-learn's GMMs; the last is drawn
    samples: int = 50  # of q*(x) for the held-out bound
    importance_samples: int = 100
    draws: int = 100_000  # for the pictures


SETTINGS = Settings()


def run(out: Path, *, seed: int, progress: Callable) -> dict:
    """Fit, judge, write pinwheel.png, pinwheel.pdf and numbers.json to `out`, and return the numbers."""
    s, out = SETTINGS, Path(out)
    data = synthetic.pinwheel(arms=s.arms, points=s.points, seed=seed)
    new = synthetic.pinwheel(arms=s.arms, points=s.new_points, seed=seed + NEW_SEED)
    svae, svae_seconds = fitted(replace(s.config, seed=seed), data.y, progress, "GMM SVAE")
    vae, vae_seconds = fitted(replace(s.config, model="vae", seed=seed), data.y, progress, "density net (VAE)")
    numbers = {
        "svae": judge(svae, new, seed) | {"seconds": svae_seconds},
        "vae": bounds(vae, new.y, seed) | {"seconds": vae_seconds},
        **mixture_scores(data.y, new.y, seed),
        "ideal": IDEAL,
        "points": len(data.y),
        "new_points": len(new.y),
        "seed": seed,
    }
    with style():
        save_figure(figure(data.y, panels(data, svae, vae, seed)), out, "pinwheel")
    return save_numbers(numbers, out)


def fitted(config: Config, y: np.ndarray, progress: Callable, title: str) -> tuple[SVAE, float]:
    """The model after its last step, and the seconds that it took."""
    started = time.monotonic()
    for step in progress(fit(make(y.shape[1:], config), y), title):
        model = step.model
    return model, round(time.monotonic() - started, 1)


# --- numbers ------------------------------------------------------------------------------------------------------


def judge(model: SVAE, new: synthetic.Pinwheel, seed: int) -> dict[str, Any]:
    """Components in use, purity and bounds on new points."""
    states = infer(model, new.y).states[0]
    usage = np.sort(states.mean(0))[::-1]
    return {
        "components_in_use": int(np.sum(usage >= IN_USE)),
        "purity": purity(states.argmax(1), new.labels),
        **bounds(model, new.y, seed),
        "usage": np.round(usage, 4),
    }


def bounds(model: SVAE, y: np.ndarray, seed: int) -> dict[str, Any]:
    """Held-out bound and importance-weighted bound in nats per point, with standard errors over points."""
    s = SETTINGS
    found = score(model, y, key=jax.random.key(seed), samples=s.samples, importance_samples=s.importance_samples)
    return {
        "held_out_bound": found.bound,
        "held_out_bound_se": found.standard_error,
        "importance_bound": found.importance_bound,
        "importance_bound_se": found.importance_standard_error,
    }


def purity(components: np.ndarray, labels: np.ndarray) -> float:
    """Share of points whose arm is the commonest of their component."""
    commonest = [np.bincount(labels[components == k]).max() for k in np.unique(components)]
    return float(np.sum(commonest) / len(labels))


def mixture(y: np.ndarray, K: int, seed: int):
    """scikit-learn's GMM by EM, best of 5 starts."""
    from sklearn.mixture import GaussianMixture

    return GaussianMixture(K, n_init=5, max_iter=500, random_state=seed).fit(y.astype(float))


def mixture_scores(y: np.ndarray, new: np.ndarray, seed: int) -> dict[str, Any]:
    """Log likelihood per new point of scikit-learn's GMMs; where it is not installed, a sentence that says so."""
    if find_spec("sklearn") is None:
        return {"gmm": NO_SKLEARN}
    found = {K: mixture(y, K, seed).score_samples(new.astype(float)) for K in SETTINGS.mixtures}
    return {f"gmm_{K}": {"log_likelihood": v.mean(), "se": v.std() / np.sqrt(len(v))} for K, v in found.items()}


# --- the figure ---------------------------------------------------------------------------------------------------


def panels(data: synthetic.Pinwheel, svae: SVAE, vae: SVAE, seed: int) -> list[Panel]:
    """Data | GMM | density net | GMM SVAE."""
    found = [Panel("data", None, np.zeros(len(data.y), int))]
    if find_spec("sklearn") is not None:
        found.append(mixture_panel(data.y, SETTINGS.mixtures[-1], seed))
    found.append(model_panel("density net (VAE)", vae, data.y, seed))
    return [*found, model_panel("GMM SVAE", svae, data.y, seed)]


def mixture_panel(y: np.ndarray, K: int, seed: int) -> Panel:
    gmm = mixture(y, K, seed)
    samples, components = gmm.sample(SETTINGS.draws)
    return Panel(f"GMM, K = {K}", densities(samples, components, K), gmm.predict(y.astype(float)))


def model_panel(title: str, model: SVAE, y: np.ndarray, seed: int) -> Panel:
    """Densities from draws of the whole model, theta ~ q(theta) included; components by size, largest first."""
    length = 100
    drawn = generate(model, length, samples=max(1, SETTINGS.draws // length), key=jax.random.key(seed))
    states = infer(model, y).states[0]
    rank = np.argsort(np.argsort(-states.sum(0)))
    density = densities(drawn.samples.reshape(-1, 2), rank[drawn.states.reshape(-1)], len(rank))
    return Panel(title, density, rank[states.argmax(1)])
