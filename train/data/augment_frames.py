"""Random changes to a batch of frames or images: by the native core, or by its twin in numpy, to the same bits."""

from __future__ import annotations

import ctypes

import numpy as np
from numpy.typing import NDArray

from axonnx.native import address_of, find_function
from axonnx.train.data import draws
from axonnx.train.data.augment import Augmentation
from axonnx.train.data.draws import OWN, Draws

Places = NDArray[np.int64]
ALL = 2**16  # events kept of so many; half a random word decides on each


def augment_frames(
    frames: NDArray[np.uint8], indices: NDArray[np.int64], how: Augmentation, seed: int, epoch: int
) -> NDArray[np.uint8]:
    """Change the samples with these ``indices``, [B, …, H, W], each in its own way; what comes in is zero.

    Cutting an image out of one padded by k pixels is moving it by up to k: a crop is a shift of both axes.
    All frames of a sequence move alike, and every sample loses a share of its events drawn between 0 and ``drop``.
    """
    how.check("frames" if frames.ndim == 5 else "images")
    drawn = Draws(seed, epoch, indices)
    *leading, height, width = frames.shape[1:]
    shape = np.array([*[1] * (2 - len(leading)), *leading, height, width], np.int64)
    steps, rows, columns = _seen(shape, how, drawn)
    keep = np.rint((1 - how.drop * drawn.unit[:, draws.DROP]) * ALL).astype(np.int64)
    place, whole, word = ctypes.c_void_p, ctypes.c_int64, ctypes.c_uint32
    types = (place, place, place, place, place, whole, ctypes.c_uint64, word, word, place)
    native = find_function("change_frames", None, *types)
    out = np.empty((len(indices), *frames.shape[1:]), np.uint8)
    for at, index in enumerate(indices.tolist()):
        if native is None:
            seen = _plain(frames[index].reshape(shape), steps[at], rows[at], columns[at], int(keep[at]), drawn, at)
            out[at] = seen.reshape(out[at].shape)
        else:
            source = np.ascontiguousarray(frames[index])
            where = (address_of(each) for each in (source, shape, steps[at], rows[at], columns[at]))
            native(*where, int(keep[at]), seed, epoch, index, address_of(out[at]))
    return out


def _seen(shape: Places, how: Augmentation, drawn: Draws) -> tuple[Places, Places, Places]:
    """Which step, row and column of each sample is seen in each step, row and column; −1 for none.

    A pixel shows the nearest one to (place − move − middle)/larger + middle; a step of a recording that takes s times
    as long shows step ⌊(step + ½)/s⌋.
    """
    move_y = drawn.whole(draws.SHIFT_Y, how.shift_y) + drawn.whole(draws.CROP_Y, how.crop)
    move_x = drawn.whole(draws.SHIFT_X, how.shift_x) + drawn.whole(draws.CROP_X, how.crop)
    larger = 1 + drawn.uniform(draws.ZOOM, how.zoom)[:, None]
    slower = 1 + drawn.uniform(draws.STRETCH, how.time_stretch)[:, None]
    count, _, height, width = shape.tolist()

    def pixels(side: int, move: Places) -> Places:
        middle = (side - 1) / 2
        return _within(np.rint((np.arange(side) - move[:, None] - middle) / larger + middle), side)

    mirrored = how.flip & (drawn.unit[:, draws.FLIP] < 0.5)
    columns = pixels(width, move_x)
    columns[mirrored] = np.where(columns[mirrored] < 0, -1, width - 1 - columns[mirrored])
    return _within((np.arange(count) + 0.5) // slower, count), pixels(height, move_y), columns


def _within(seen: NDArray[np.float64], side: int) -> Places:
    return np.where((seen >= 0) & (seen < side), seen, -1).astype(np.int64)


def _plain(
    frames: NDArray[np.uint8], steps: Places, rows: Places, columns: Places, keep: int, drawn: Draws, at: int
) -> NDArray[np.uint8]:
    """One sample in numpy, flat."""
    seen = frames[np.ix_(steps, np.arange(frames.shape[1]), rows, columns)]
    seen[steps < 0] = seen[:, :, rows < 0] = seen[..., columns < 0] = 0
    if keep < ALL:
        events = np.repeat(np.arange(seen.size), seen.reshape(-1))
        words = np.stack(drawn.words(at, OWN, (len(events) + 7) // 8), -1).reshape(-1)
        halves = np.stack([words & 0xFFFF, words >> 16], -1).reshape(-1)[: len(events)].astype(np.int64)
        seen = np.bincount(events[halves < keep], minlength=seen.size).astype(np.uint8)
    return seen
