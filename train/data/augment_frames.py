"""Random changes to a batch of frames or images."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from axonnx.train.data.augment import Augmentation


def augment_frames(frames: NDArray[np.uint8], how: Augmentation, generator: np.random.Generator) -> NDArray[np.uint8]:
    """The samples [B, …, H, W], moved and mirrored each in its own way; what comes in from outside is zero.

    Cutting an image out of one padded by k pixels is moving it by up to k: a crop is a shift of both axes.
    All frames of a sequence move alike.
    """
    how.check("frames" if frames.ndim == 5 else "images")
    count = len(frames)
    down, right = _shifts(how.shift_y, how, count, generator), _shifts(how.shift_x, how, count, generator)
    mirrored = generator.integers(2, size=count) == 1 if how.flip else np.zeros(count, np.bool_)
    out = np.zeros_like(frames)
    for sample in range(count):
        source = frames[sample, ..., ::-1] if mirrored[sample] else frames[sample]
        _paste(source, out[sample], int(down[sample]), int(right[sample]))
    return out


def _shifts(most: int, how: Augmentation, count: int, generator: np.random.Generator) -> NDArray[np.int64]:
    moved = np.zeros(count, np.int64)
    for limit in (most, how.crop):
        if limit:
            moved += generator.integers(-limit, limit, count, endpoint=True)
    return moved


def _paste(source: NDArray[np.uint8], target: NDArray[np.uint8], down: int, right: int) -> None:
    """Copy the part of the source that is still in view after the move."""
    (rows_from, rows_to), (columns_from, columns_to) = (
        _overlap(source.shape[-2], down),
        _overlap(source.shape[-1], right),
    )
    target[..., rows_to, columns_to] = source[..., rows_from, columns_from]


def _overlap(size: int, shift: int) -> tuple[slice, slice]:
    """Where the overlap lies in the source and in the target of a move by `shift`."""
    shift = max(-size, min(size, shift))
    return slice(max(-shift, 0), size - max(shift, 0)), slice(max(shift, 0), size - max(-shift, 0))
