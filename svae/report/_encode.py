"""Pictures to an mp4 file that every browser and every slide plays."""

from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from svae.config import ConfigError
from svae.experiments._figures import write_atomically

ENCODERS = ("libx264", "libopenh264", "h264_videotoolbox", "mpeg4")  # the first that there is
FPS = 30.0  # where no frame rate is known
QUALITY = 20  # of the encoder: smaller is better and larger


def require_av() -> Any:
    """The package, or one sentence that says how to install it."""
    try:
        import av
    except ImportError:
        raise ConfigError('movies need PyAV, which is not installed; run  pip install "svae[figures,io]"') from None
    return av


def write_movie(path: Path, pictures: Iterable[np.ndarray], fps: float | None, quality: int = QUALITY) -> int:
    """Write pictures (H, W, 3) of bytes, all of one size; returns their number. The file is whole or absent."""
    frames = iter(pictures)
    first = next(frames)
    count = 0

    def write(file):
        nonlocal count
        av = require_av()
        with av.open(file, "w", format="mp4") as container:
            stream = _stream(av, container, first.shape, fps or FPS, quality)
            for picture in _from(first, frames):
                container.mux(stream.encode(av.VideoFrame.from_ndarray(_even(picture), format="rgb24")))
                count += 1
            container.mux(stream.encode())

    write_atomically(path, write)
    return count


def _stream(av, container, shape, fps, quality):
    name = next(name for name in ENCODERS if name in av.codecs_available)
    stream = container.add_stream(name, rate=Fraction(fps).limit_denominator(1000))
    stream.height, stream.width, stream.pix_fmt = shape[0] // 2 * 2, shape[1] // 2 * 2, "yuv420p"
    stream.options = {"crf": str(quality), "preset": "veryfast"} if name == "libx264" else {}
    return stream


def _from(first, rest):
    yield first
    yield from rest


def _even(picture):
    """Both sides even, as the format wants them."""
    return np.ascontiguousarray(picture[: picture.shape[0] // 2 * 2, : picture.shape[1] // 2 * 2])
