"""Random numbers of augmentation, each a function of (seed, epoch, sample) and of what it is drawn for.

So a sample is changed in the same way whatever batch, process or thread it is in.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from axonnx.runtime.program.layer_noise import Words, check_key, philox

UNIT = 2.0**-32
# What a sample's first counters are for. A change has numbers of its own: it is the same whatever else is asked for.
SAMPLE, OWN, OTHER = range(3)
WORDS = 24
BLEND, PARTNER, DROP, GAIN, STRETCH, FLIP, ZOOM, SHIFT_X, SHIFT_Y, CROP_X, CROP_Y = range(11)
TONE, TONE_CORNERS, START = 12, 8, 20


@dataclass(frozen=True)
class Draws:
    """The draws for these samples of an epoch."""

    seed: int
    epoch: int
    samples: NDArray[np.int64]

    def __post_init__(self) -> None:
        check_key(self.seed, self.samples.tolist(), self.epoch)

    @cached_property
    def unit(self) -> NDArray[np.float64]:
        """[samples, WORDS] numbers between 0 and 1, which are neither."""
        counter = np.arange(WORDS // 4, dtype=np.uint64), SAMPLE, self.epoch, self.samples[:, None].astype(np.uint64)
        return to_unit(np.stack(np.broadcast_arrays(*self._words(*counter)), -1).reshape(len(self.samples), WORDS))

    def uniform(self, what: int | slice, most: float) -> NDArray[np.float64]:
        """Between −most and most for each sample."""
        found: NDArray[np.float64] = most * (2 * self.unit[:, what] - 1)
        return found

    def whole(self, what: int, most: int) -> NDArray[np.int64]:
        """Draw a whole number from −most to most for each sample."""
        return np.floor((2 * most + 1) * self.unit[:, what]).astype(np.int64) - most

    def words(self, at: int, stream: int, count: int) -> tuple[Words, ...]:
        """Four random words for each of so many events of sample number ``at``."""
        return self._words(np.arange(count, dtype=np.uint64), stream, self.epoch, int(self.samples[at]))

    def _words(self, *counter: Words | int) -> tuple[Words, ...]:
        return philox(tuple(np.asarray(word, np.uint64) for word in counter), self.seed)


def to_unit(words: Words) -> NDArray[np.float64]:
    """Return the middle of that one of 2^32 parts of the unit interval which a word names."""
    return (words.astype(np.float64) + 0.5) * UNIT


def places(
    side: int, mirrored: NDArray[np.bool_], larger: NDArray[np.float64], move: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Where each of ``side`` pixels goes in each sample: mirrored, then zoomed about the middle, then moved."""
    middle = (side - 1) / 2
    place = np.where(mirrored[:, None], -1.0, 1.0) * (np.arange(side) - middle)
    found: NDArray[np.int64] = np.rint(place * larger[:, None] + middle).astype(np.int64) + move[:, None]
    return found
