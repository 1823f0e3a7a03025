"""What a fitted model can be asked. Every question takes raw recordings and answers in their units."""

from svae.queries.far import far, low_bounds
from svae.queries.inference import (
    Imputation,
    Inference,
    Reconstruction,
    Segmentation,
    impute,
    infer,
    reconstruct,
    segment,
)
from svae.queries.prediction import Forecast, Generated, forecast, generate
from svae.queries.response import Response, response
from svae.queries.scoring import Score, score

__all__ = [
    "Forecast",
    "Generated",
    "Imputation",
    "Inference",
    "Reconstruction",
    "Response",
    "Score",
    "Segmentation",
    "far",
    "forecast",
    "generate",
    "impute",
    "infer",
    "low_bounds",
    "reconstruct",
    "response",
    "score",
    "segment",
]
