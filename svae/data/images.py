"""Images made smaller or larger by two matrices: areas are averaged going down, neighbours are blended going up."""

import functools

import numpy as np


@functools.lru_cache(64)
def resampling(before: int, after: int) -> np.ndarray:
    """(after, before) weights, rows sum to 1: overlaps of pixel areas, or linear interpolation when it grows."""
    if after >= before:
        place = np.clip((np.arange(after) + 0.5) * before / after - 0.5, 0, before - 1)
        return np.maximum(0, 1 - np.abs(place[:, None] - np.arange(before))).astype(np.float32)
    edges = np.linspace(0, before, after + 1)
    low = np.maximum(edges[:-1, None], np.arange(before))
    high = np.minimum(edges[1:, None], np.arange(before) + 1)
    return (np.maximum(0, high - low) * (after / before)).astype(np.float32)


def resize(frames: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """(T, H, W) to (T, *size); a pixel is missing where all that it covers is."""
    if frames.shape[1:] == size:
        return frames
    missing = np.isnan(frames)
    if not missing.any():
        return _weighted(frames, size)
    weight = _weighted(1.0 - missing, size)
    total = _weighted(np.where(missing, 0, frames), size)
    return np.divide(total, weight, out=np.full_like(total, np.nan), where=weight > 1e-6)


def _weighted(frames, size):
    """Resize frames by two products of plain matrices, which are much faster than a stack of small ones."""
    T, H, W = frames.shape
    rows, columns = resampling(H, size[0]), resampling(W, size[1])
    narrow = (np.asarray(frames, np.float32).reshape(T * H, W) @ columns.T).reshape(T, H, size[1])
    turned = np.ascontiguousarray(narrow.swapaxes(1, 2)).reshape(T * size[1], H) @ rows.T
    return turned.reshape(T, size[1], size[0]).swapaxes(1, 2)


def gray(frames: np.ndarray) -> np.ndarray:
    """(T, H, W, C) with C = 1, 3 or 4 channels to (T, H, W): their mean, transparency left out."""
    return frames if frames.ndim == 3 else frames[..., : min(3, frames.shape[-1])].mean(-1)


def shrunk(height: int, width: int, longest: int) -> tuple[int, int]:
    """The size in proportion whose longer side is `longest`, and whose shorter one is at least 8."""
    scale = longest / max(height, width)
    return tuple(max(min(8, longest), round(side * scale)) for side in (height, width))
