"""What a fitted model can be asked. Every question takes raw recordings and answers in their units."""

from svae._queries.far import far, low_bounds
from svae._queries.inference import (
    Imputation,
    Inference,
    Reconstruction,
    Segmentation,
    impute,
    infer,
    reconstruct,
    segment,
)
from svae._queries.prediction import Forecast, Generated, forecast, generate
from svae._queries.scoring import Score, score

__all__ = [
    "Forecast",
    "Generated",
    "Imputation",
    "Inference",
    "Reconstruction",
    "Score",
    "Segmentation",
    "far",
    "forecast",
    "generate",
    "impute",
    "infer",
    "low_bounds",
    "reconstruct",
    "score",
    "segment",
]
