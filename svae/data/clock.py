"""From the times of a table to the frames of a recording."""

import numpy as np

from .recordings import DataError, Recordings, seconds


def seconds_known(data: Recordings, number: int, what: str) -> None:
    """Raise where a table counts seconds and a recording frames."""
    if data.fps is None and not (data.times and data.times[number] is not None):
        raise DataError(f"{what} counts seconds, but {data.names[number]} has no frame rate; say it with --fps.")


def frames_between(
    data: Recordings, number: int, start: float, stop: float, in_frames: bool, what: str
) -> tuple[int, int]:
    """The frames [first, last) whose middle lies between start and stop; DataError where the recording has ended."""
    T, name = len(data.sequences[number]), data.names[number]
    if not in_frames:
        seconds_known(data, number, what)
    at = np.arange(float(T)) if in_frames else seconds(data, number)
    each = _frame_time(at)
    unit = "frame " if in_frames else ""
    if stop < start:
        raise DataError(f"{what}: a bout of {name} starts at {unit}{start:g} and stops before, at {stop:g}; mend it.")
    if start > at[-1] + each or stop < at[0] - each:
        raise DataError(
            f"{what}: {unit}{start:g} to {stop:g} lies outside {name}, which goes from {at[0]:g} to {at[-1] + each:g}; "
            "do they share a clock?"
        )
    middle = at + each / 2
    return int(np.searchsorted(middle, start)), int(np.searchsorted(middle, stop))


def frames_of(data: Recordings, number: int, times: np.ndarray) -> np.ndarray:
    """The frame that is nearest to each time; -1 or T for times outside."""
    at = seconds(data, number)
    return np.searchsorted(at + _frame_time(at) / 2, times) - (times < at[0] - _frame_time(at) / 2)


def _frame_time(at: np.ndarray) -> float:
    return float(np.median(np.diff(at))) if len(at) > 1 else 1.0
