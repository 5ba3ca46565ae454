"""The positions of a buffer's elements in the native core's memory: padded sizes, images with channels last."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from axonnx.runtime.program.instructions import Shape

LANES = 16  # lanes of the widest vectors; the padding of all builds except those for microcontrollers


def padded(size: int, padding: int = LANES) -> int:
    """Return the next multiple of the padding."""
    return -(-size // padding) * padding


@dataclass(frozen=True)
class Layout:
    """A tensor of one sample: [H, W, C padded] for images [C, H, W], flat and padded otherwise.

    ``flat`` marks an image whose readers all use it as a vector.
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
        """Number of floats from one pixel to the next, or the whole size if there are no pixels."""
        return padded(self.shape[0], self.padding) if self.image else self.size

    @property
    def pixels(self) -> int:
        """Number of pixels, or 1 if the tensor is not an image."""
        return self.shape[1] * self.shape[2] if self.image else 1

    @property
    def elements(self) -> int:
        """Number of elements without padding."""
        return int(np.prod(self.shape, dtype=np.int64))

    @cached_property
    def size(self) -> int:
        """Number of elements with padding."""
        return self.pixels * padded(self.shape[0], self.padding) if self.image else padded(self.elements, self.padding)

    @cached_property
    def places(self) -> NDArray[np.int64]:
        """Position of each element, in the shape of the tensor."""
        if not self.image:
            return np.arange(self.elements).reshape(self.shape)
        channels, height, width = np.indices(self.shape)
        return np.asarray((height * self.shape[2] + width) * self.pitch + channels)

    def pack(self, values: NDArray[np.float32], padding: float = 0.0) -> NDArray[np.float32]:
        """Return values [B, *shape] in the order of the memory [B, size]; ``padding`` fills the gaps."""
        out = np.full((len(values), self.size), padding, np.float32)
        out[:, self.places.ravel()] = values.reshape(len(values), -1)
        return out

    def unpack(self, memory: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return memory [..., size] as values [..., *shape]."""
        if not self.image:
            return np.ascontiguousarray(memory[..., : self.elements]).reshape(*memory.shape[:-1], *self.shape)
        _, height, width = self.shape
        pixels = memory.reshape(*memory.shape[:-1], height, width, self.pitch)[..., : self.shape[0]]
        return np.ascontiguousarray(np.moveaxis(pixels, -1, -3))
