"""Video through PyAV: frames are counted without decoding, and decoded window by window in grey."""

from pathlib import Path

import numpy as np

from ..recordings import DataError
from ..views import Floats, reading
from .optional import need
from .pieces import LARGEST_FRAME, Contents, Note, Piece, time_base

FARTHEST = 1000  # frames played to see whether seeking can be trusted
BLOCK = 64  # frames; a seek decodes from the last whole picture on


class Video:
    """Frames (T, H, W) of a file; `stamps` says when each is shown, in ticks, and `starts` where decoding may begin.

    It stays open where the last reading ended: the next one often goes on from there, and a seek costs many frames.
    """

    dtype = np.dtype(np.uint8)

    def __init__(self, path: Path, shape: tuple[int, int, int], stamps: np.ndarray, starts: np.ndarray):
        self.path, self.shape, self.stamps, self.starts = path, shape, stamps, starts
        self._next, self._container, self._frames = -1, None, iter(())

    def __getitem__(self, frames: slice) -> np.ndarray:
        first, last, _ = frames.indices(self.shape[0])
        return reading(self.path.name, lambda: self._decode(first, max(first, last)))

    def _decode(self, first, last):
        """A frame that cannot be decoded repeats the one before it, as players do."""
        out = np.zeros((last - first, *self.shape[1:]), np.uint8)
        if first != self._next:
            self._seek(first)
        filled = 0
        while filled < len(out) and (frame := next(self._frames, None)) is not None:
            place = min(self._number(frame) - first, len(out) - 1)
            if place >= filled and (frame.height, frame.width) == self.shape[1:]:
                out[filled : place + 1] = frame.to_ndarray(format="gray")
                filled = place + 1
        if filled == 0 < len(out):
            raise OSError(f"frames {first} to {last} cannot be decoded")
        out[filled:] = out[filled - 1 : filled]
        self._next = last
        return out

    def _number(self, frame):
        return -1 if frame.pts is None else int(np.searchsorted(self.stamps, frame.pts, side="right")) - 1

    def _seek(self, first):
        import av

        if self._container is not None:
            self._container.close()
        self._container = av.open(str(self.path))
        stream = self._container.streams.video[0]
        stream.thread_type = "AUTO"
        begin = self.starts[max(0, int(np.searchsorted(self.starts, self.stamps[first], side="right")) - 1)]
        self._container.seek(int(begin), stream=stream)
        self._frames = self._container.decode(stream)


def _trusted(path, shape, stamps, starts):
    """Places to seek to; only the beginning if the second one gives another picture than playing up to it does."""
    if len(starts) < 2 or (number := int(np.searchsorted(stamps, starts[1]))) > FARTHEST:
        return starts[:1]
    played = Video(path, shape, stamps, starts[:1])
    for first in range(0, number + 1, BLOCK):
        last = played[first : min(first + BLOCK, number + 1)][-1]
    sought = Video(path, shape, stamps, starts)[number : number + 1][0]
    return starts if np.array_equal(last, sought) else starts[:1]


def read_video(path: Path, dataset: str | None) -> Contents:
    """The first video stream of a file in grey, with its frame rate."""
    av = need("av", f"{path.name} is a video, which")
    with av.open(str(path)) as container:
        if not container.streams.video:
            raise DataError(f"{path.name} has no video stream.")
        stream, streams = container.streams.video[0], len(container.streams.video)
        height, width = stream.height, stream.width
        packets = [(p.pts, p.is_keyframe) for p in container.demux(stream) if p.pts is not None]
        tick, rate = stream.time_base, stream.average_rate
    stamps = np.unique(np.array([pts for pts, _ in packets], np.int64))
    starts = np.unique(np.array([pts for pts, key in packets if key], np.int64))
    if len(stamps) == 0 or len(starts) == 0 or not height or not width:
        raise DataError(f"{path.name} has no frame that can be shown; it is damaged or cut short.")
    if height * width > LARGEST_FRAME:
        raise DataError(f"{path.name} has frames of {height} x {width}, too large for a model; make them smaller.")
    starts = _trusted(path, (len(stamps), height, width), stamps, np.union1d(starts, stamps[:1]))
    times = (stamps - stamps[0]) * float(tick)
    clock = time_base(times)
    fps = float(rate) if rate and clock.times is None else clock.fps
    y = Floats(Video(path, (len(stamps), height, width), stamps, starts), kind="frames", block=BLOCK)
    others = [Note("only the first of its video streams is read")] if streams > 1 else []
    return Contents([Piece("", y, clock.times)], fps, [*others, *clock.notes])
