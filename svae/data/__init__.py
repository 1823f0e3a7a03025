"""Recordings from any file or array, windows of them, and synthetic data with their truth. Numpy only."""

from .beside import Beside, Called
from .carried import with_labels
from .checks import (
    Standardize,
    check,
    check_form,
    check_range,
    check_shapes,
    entry_units,
    global_units,
    standardize_entries,
    standardize_globally,
    standardized,
)
from .doubts import body_length, doubts
from .driven import with_inputs
from .grouped import with_groups
from .groups import load_groups
from .inputs import load_inputs
from .labels import load_labels
from .layout import Layout, layout_of, matched, renamed
from .load import load
from .moments import Moments, moments
from .mouse import Mouse, mouse
from .preprocess import Preprocess, preprocessed, wild_shares
from .preprocess import find as find_preprocess
from .recordings import DataError, Recordings, recordings, safe_names, seconds, take
from .source import load_source
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
from .timescale import bout_frames
from .views import View, blocks, cut, sample_frames, settled
from .windows import Batch, Split, Windows, batch, epoch_order, split, stretches, windows

__all__ = [
    "Batch",
    "Beside",
    "Called",
    "DataError",
    "Dots",
    "Layout",
    "Moments",
    "Mouse",
    "Pinwheel",
    "Preprocess",
    "Recordings",
    "Rotations",
    "Split",
    "Standardize",
    "TwoSpeedDots",
    "View",
    "Windows",
    "batch",
    "blocks",
    "body_length",
    "bout_frames",
    "check",
    "check_form",
    "check_range",
    "check_shapes",
    "cut",
    "dots",
    "doubts",
    "entry_units",
    "epoch_order",
    "find_preprocess",
    "global_units",
    "layout_of",
    "load",
    "load_groups",
    "load_inputs",
    "load_labels",
    "load_source",
    "matched",
    "moments",
    "mouse",
    "pinwheel",
    "preprocessed",
    "recordings",
    "renamed",
    "safe_names",
    "sample_frames",
    "seconds",
    "settled",
    "split",
    "standardize_entries",
    "standardize_globally",
    "standardized",
    "stretches",
    "switching_rotations",
    "take",
    "two_speed_dots",
    "wild_shares",
    "windows",
    "with_groups",
    "with_inputs",
    "with_labels",
]
