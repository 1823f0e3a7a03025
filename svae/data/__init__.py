"""Recordings, windows of them, and synthetic data with their truth. Numpy only."""

from .checks import Standardize, check, check_form, standardize_entries, standardize_globally, standardized
from .mouse import Mouse, mouse
from .synthetic import (
    Dots,
    Pinwheel,
    Rotations,
    TwoSpeedDots,
    dots,
    pinwheel,
    switching_rotations,
    two_speed_dots,
)
from .windows import Batch, DataError, Recordings, Split, Windows, batch, epoch_order, recordings, split, windows

__all__ = [
    "Batch",
    "DataError",
    "Dots",
    "Mouse",
    "Pinwheel",
    "Recordings",
    "Rotations",
    "Split",
    "Standardize",
    "TwoSpeedDots",
    "Windows",
    "batch",
    "check",
    "check_form",
    "dots",
    "epoch_order",
    "mouse",
    "pinwheel",
    "recordings",
    "split",
    "standardize_entries",
    "standardize_globally",
    "standardized",
    "switching_rotations",
    "two_speed_dots",
    "windows",
]
