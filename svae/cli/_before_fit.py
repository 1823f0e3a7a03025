"""What the verbs that begin a fit say of the data before it, and what they refuse."""

from typing import Any

from svae.config import Config, ConfigError

FEW = 20  # frames for each state that was asked for


def of_data(recordings: Any) -> list[str]:
    """What the readers left out, what is odd in the data, and how to give a frame rate where there is none."""
    from svae.cli._runs import frame_rate
    from svae.data import doubts

    known = frame_rate(recordings) is not None
    rate = [] if known else ["The data do not say their frame rate, so all times are in frames; --fps 30 gives it."]
    return [*recordings.notes, *doubts(recordings), *rate]


def of_config(recordings: Any, config: Config) -> list[str]:
    """What is odd in a configuration for these data; ConfigError and DataError where a fit would be in vain."""
    from svae.data import DataError
    from svae.model import pgm_of

    if not pgm_of(config).independent and max(map(len, recordings.sequences)) == 1:
        raise DataError(
            f"No recording has more than one frame, but {config.model} is a model of how frames follow each other; "
            "give longer recordings, or --model gmm for frames without order."
        )
    frames, states = recordings.frames, config.states
    if states is None:
        return []
    if states > frames:
        raise ConfigError(f"{states} states for {frames} frames: a state needs many frames; give fewer with --states")
    if states * FEW > frames:
        return [f"{states} states for {frames} frames, fewer than {FEW} for each: give fewer with --states."]
    return []
