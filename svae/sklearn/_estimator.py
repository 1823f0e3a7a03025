"""What estimators share."""

import difflib
import warnings
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import jax
import numpy as np

from svae.config import Config
from svae.data import DataError, Recordings, recordings, with_labels
from svae.fitting.defaults import model_for
from svae.fitting.loop import fit
from svae.queries import infer, score, segment
from svae.sklearn._as_given import as_given, labels_as, sequences
from svae.sklearn._fitted import arrays_of, ask, decode, drawn, fitted, rebuilt, remember_names


@dataclass(kw_only=True, eq=False)
class Estimator:
    """What all estimators share: the parameters of networks and fit, and the questions that need no states.

    scikit-learn asks that any value can be set; `Config` checks them in `fit`.
    """

    latent_dim: Any = None  # as the data need
    network: Any = "residual"
    hidden: Any = (64, 64)
    precision: Any = "diagonal"
    likelihood: Any = "gaussian"
    variance: Any = "learned"
    missing: Any = False
    weights: Any = "point"
    samples: Any = 1
    batch_size: Any = 32
    steps: Any = 1000
    learning_rate: Any = 1e-3
    warmup_steps: Any = 100
    restarts: Any = 1
    held_out: Any = 0.0  # scikit-learn holds out by itself, and the last rows of a table may be one class
    seed: Any = 0

    MODEL: ClassVar[str]
    ORDERED: ClassVar[bool]  # do rows follow each other in time?
    _with_states: ClassVar[Any]  # (self, X, y) -> recordings and the states that are known

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name; there are none inside others, so `deep` changes nothing."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def set_params(self, **params) -> "Estimator":
        """Set parameters by name."""
        known = [field.name for field in fields(self)]
        for name, value in params.items():
            if name not in known:
                near = difflib.get_close_matches(name, known, n=1)
                hint = f"did you mean {near[0]!r}?" if near else f"the parameters are {', '.join(known)}."
                raise ValueError(f"Invalid parameter {name!r} for {type(self).__name__}; {hint}")
            setattr(self, name, value)
        return self

    def fit(self, X: Any, y: Any = None) -> "Estimator":
        """Fit to an array (frames, *event) or a list of such.

        Where there are states, y (frames,) may say which state a frame is in, -1 where that is not known.
        """
        event = sequences(X)[0].shape[1:]
        data = self._with_states(X, y)
        for step in fit(model_for(data, model=self.MODEL, preprocess="none", **self._given()), data):
            if step.note:
                warnings.warn(step.note, stacklevel=2)
            self.model_, self.bound_ = step.model, step.bound
        self.n_features_in_ = int(np.prod(event))
        remember_names(self, X)
        return self

    def _given(self) -> dict[str, Any]:
        """Parameters that were set; the data choose the others, as in `svae fit`."""
        params, default = self.get_params(), Config()
        known = {name: value for name, value in params.items() if value != getattr(default, name)}
        given = known | {"latent_dim": params["latent_dim"]}  # None: the data say it; 8 is a choice like any other
        return {name: value for name, value in given.items() if name != "latent_dim" or value is not None}

    def transform(self, X: Any) -> Any:
        """Posterior means of the latents (frames, latent_dim), in the form of X."""
        return as_given(X, infer(*ask(self, X)).mean)

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """`fit`, then `transform` of the same X."""
        return self.fit(X).transform(X)

    def inverse_transform(self, X: Any) -> Any:
        """Frames at latents (frames, latent_dim), in the units of the data."""
        model = fitted(self)
        latents = sequences(X)
        for x in latents:
            if x.shape[1:] != (self.model_.config.latent_dim,):
                raise DataError(f"The latents have shape {x.shape}, not (frames, {self.model_.config.latent_dim}).")
        return as_given(X, [model.scaling.invert(np.asarray(decode(model, x.astype(np.float32)))) for x in latents])

    def score(self, X: Any, y: Any = None) -> float:
        """The held-out bound in nats per frame, in the units of the data: higher is better."""
        return score(*ask(self, X), key=jax.random.key(self.model_.config.seed)).bound

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the latents."""
        return np.array([f"{self.MODEL}{d}" for d in range(fitted(self).config.latent_dim)], object)

    def __getstate__(self):
        """Plain values and arrays: a model holds functions, which cannot be copied to another process."""
        state = dict(vars(self))
        if "model_" in state:
            model = state.pop("model_")
            state["_saved"] = (
                model.shape,
                model.config,
                [np.asarray(leaf) for leaf in jax.tree.leaves(arrays_of(model))],
            )
        return state

    def __setstate__(self, state):
        saved = state.pop("_saved", None)
        vars(self).update(state)
        if saved is not None:
            self.model_ = rebuilt(*saved)

    def __sklearn_is_fitted__(self):
        return hasattr(self, "model_")

    def __sklearn_tags__(self):
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            transformer_tags=TransformerTags(preserves_dtype=[]),  # latents are float32
            input_tags=InputTags(allow_nan=True, three_d_array=True),
        )


class Continuous:
    """Models without discrete states."""

    def _with_states(self, X: Any, y: Any) -> Recordings:
        """The recordings; y is not used."""
        return recordings(sequences(X))

    def sample(self, n_samples: int = 1) -> np.ndarray:
        """New frames (n_samples, *event): one after the other in LDS, each by itself in VAE."""
        return drawn(self, n_samples)[0]


class Discrete:
    """Models with discrete states."""

    def _with_states(self, X: Any, y: Any) -> Recordings:
        """The recordings, and the states that are known."""
        data = recordings(sequences(X))
        return data if y is None else with_labels(data, labels_as(X, y))

    def predict(self, X: Any) -> Any:
        """The most probable state of every frame, in the form of X."""
        return as_given(X, segment(*ask(self, X)).labels)

    def predict_proba(self, X: Any) -> Any:
        """The probability of every state (frames, states), in the form of X."""
        return as_given(X, segment(*ask(self, X)).marginals)

    def sample(self, n_samples: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """New frames (n_samples, *event) and their states: one after the other in HMM and SLDS, by itself in GMM."""
        return drawn(self, n_samples)
