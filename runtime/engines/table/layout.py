"""Where the elements of a buffer lie in the compiled engine's memory: padded to sixteen, images with channels last."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from axonnx.runtime.program.instructions import Conv, Linear, Shape

Number = TypeVar("Number", bound=np.generic)

LANES = 16
WIDEST = 64  # outputs of a block


def padded(size: int) -> int:
    """The next multiple of sixteen."""
    return -(-size // LANES) * LANES


@dataclass(frozen=True)
class Layout:
    """A tensor of one sample: [H, W, C padded] for images [C, H, W], flat and padded for all else.

    ``flat``: an image that nobody takes for one.
    """

    shape: Shape
    flat: bool = False

    @property
    def image(self) -> bool:
        """Whether channels come last."""
        return len(self.shape) == 3 and not self.flat

    @property
    def pitch(self) -> int:
        """Floats from one pixel to the next; the whole size where there are no pixels."""
        return padded(self.shape[0]) if self.image else self.size

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
        return self.pixels * padded(self.shape[0]) if self.image else padded(self.elements)

    @cached_property
    def places(self) -> NDArray[np.int64]:
        """For each element, in the shape of the tensor, its place."""
        if not self.image:
            return np.arange(self.elements).reshape(self.shape)
        channels, height, width = np.indices(self.shape)
        return np.asarray((height * self.shape[2] + width) * self.pitch + channels)

    def pack(self, values: NDArray[np.float32], padding: float = 0.0) -> NDArray[np.float32]:
        """Values [B, *shape] in memory's order [B, size]."""
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


def blocked(rows: NDArray[Number], widest: int = WIDEST) -> NDArray[Number]:
    """Weights [inputs, outputs padded] as blocks [inputs][widest, half of it … 16], one after the other."""
    parts, done, outputs, width = [], 0, rows.shape[1], widest
    while done < outputs:
        while width > outputs - done:
            width //= 2
        parts.append(rows[:, done : done + width].ravel())
        done += width
    return np.concatenate(parts)


def linear_rows(weight: NDArray[np.float32]) -> NDArray[np.float32]:
    """W [out, in] as a row for each input, padded, and one of zeros."""
    rows = np.zeros((padded(weight.shape[1]) + 1, padded(len(weight))), np.float32)
    rows[: weight.shape[1], : len(weight)] = weight.T
    return rows


def conv_rows(weight: NDArray[np.float32], group: int) -> NDArray[np.float32]:
    """W [out, in / group, height, width] as a row for each tap and input channel, padded, and one of zeros."""
    outputs, per_group, height, width = weight.shape
    pitch = padded(per_group * group)
    rows = np.zeros((height, width, pitch, padded(outputs)), np.float32)
    for number in range(group):
        ins = slice(number * per_group, (number + 1) * per_group)
        outs = slice(number * outputs // group, (number + 1) * outputs // group)
        rows[:, :, ins, outs] = weight[outs].transpose(2, 3, 1, 0)
    return np.concatenate([rows.reshape(-1, padded(outputs)), np.zeros((1, padded(outputs)), np.float32)])


def weight_rows(synapse: Linear | Conv, weight: NDArray[np.float32]) -> NDArray[np.float32]:
    """A synapse's weight as rows."""
    return conv_rows(weight, synapse.group) if isinstance(synapse, Conv) else linear_rows(weight)
