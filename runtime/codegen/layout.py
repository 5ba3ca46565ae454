"""Where the elements of a buffer lie in the native core's memory: sizes padded, images with channels last."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from axonnx.runtime.program.instructions import Shape

LANES = 16  # of the widest vectors; the padding of all builds but those for microcontrollers


def padded(size: int, padding: int = LANES) -> int:
    """The next multiple of the padding."""
    return -(-size // padding) * padding


@dataclass(frozen=True)
class Layout:
    """A tensor of one sample: [H, W, C padded] for images [C, H, W], flat and padded for all else.

    ``flat``: an image that nobody takes for one.
    """

    shape: Shape
    padding: int = LANES
    flat: bool = False

    @property
    def image(self) -> bool:
        """Whether channels come last."""
        return len(self.shape) == 3 and not self.flat

    @property
    def pitch(self) -> int:
        """Floats from one pixel to the next; the whole size where there are no pixels."""
        return padded(self.shape[0], self.padding) if self.image else self.size

    @property
    def pixels(self) -> int:
        """1 where there are none."""
        return self.shape[1] * self.shape[2] if self.image else 1

    @property
    def elements(self) -> int:
        """Without padding."""
        return int(np.prod(self.shape, dtype=np.int64))

    @cached_property
    def size(self) -> int:
        """With padding."""
        return self.pixels * padded(self.shape[0], self.padding) if self.image else padded(self.elements, self.padding)

    @cached_property
    def places(self) -> NDArray[np.int64]:
        """For each element, in the shape of the tensor, its place."""
        if not self.image:
            return np.arange(self.elements).reshape(self.shape)
        channels, height, width = np.indices(self.shape)
        return np.asarray((height * self.shape[2] + width) * self.pitch + channels)

    def pack(self, values: NDArray[np.float32], padding: float = 0.0) -> NDArray[np.float32]:
        """Values [B, *shape] in memory's order [B, size]; ``padding`` is what stands where there is no element."""
        out = np.full((len(values), self.size), padding, np.float32)
        out[:, self.places.ravel()] = values.reshape(len(values), -1)
        return out

    def unpack(self, memory: NDArray[np.float32]) -> NDArray[np.float32]:
        """Memory [..., size] as values [..., *shape]."""
        if not self.image:
            return np.ascontiguousarray(memory[..., : self.elements]).reshape(*memory.shape[:-1], *self.shape)
        _, height, width = self.shape
        pixels = memory.reshape(*memory.shape[:-1], height, width, self.pitch)[..., : self.shape[0]]
        return np.ascontiguousarray(np.moveaxis(pixels, -1, -3))
