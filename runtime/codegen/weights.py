"""Weights for the native core: rows for event lists and tiles for dense products, as small integers.

On the sum-exact grid a weight is n · 2^−s. If every n of a synapse fits into 16 bits, sums of n in 32 bits are exact,
and so is their product with the unit. The bits equal those of float sums, for half the bytes, or a quarter if n fits
into 8 bits.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from axonnx.runtime.codegen.layout import padded
from axonnx.runtime.codegen.rows import BYTES, FLOATS, SHORTS, WIDEST
from axonnx.runtime.format.values import UNITS, Values
from axonnx.runtime.program.instructions import Conv, Linear

FINEST_UNIT = 100  # 2^−s and 2^−(s + bits of graded inputs) are normal float32
COARSEST_UNIT = -24  # integers times a power of two, as networks in integers have them
GROUP = {SHORTS: 2, BYTES: 4}  # inputs of one dot product
TILES = (64, 32, 16)  # outputs of a tile
TYPES = {FLOATS: np.float32, SHORTS: np.int16, BYTES: np.int8}

Numbers = NDArray[Any]


class Weights(NamedTuple):
    """A synapse's weights: multiples of 2^−unit as rows [inputs, outputs] and, for dense products, as tiles."""

    stored: int
    unit: int
    rows: Numbers
    dense_stored: int
    tiles: Numbers | None


def linear_rows(weight: NDArray[np.float32], padding: int) -> NDArray[np.float32]:
    """Return W [out, in] as a row for each input [1, in padded, out padded]."""
    rows = np.zeros((1, padded(weight.shape[1], padding), padded(len(weight), padding)), np.float32)
    rows[0, : weight.shape[1], : len(weight)] = weight.T
    return rows


def conv_rows(weight: NDArray[np.float32], group: int, padding: int) -> NDArray[np.float32]:
    """Return W [out, in / group, height, width] as a row per tap and input channel [taps, in padded, out padded]."""
    outputs, per_group, height, width = weight.shape
    rows = np.zeros((height, width, padded(per_group * group, padding), padded(outputs, padding)), np.float32)
    for number in range(group):
        ins = slice(number * per_group, (number + 1) * per_group)
        outs = slice(number * outputs // group, (number + 1) * outputs // group)
        rows[:, :, ins, outs] = weight[outs].transpose(2, 3, 1, 0)
    return rows.reshape(height * width, *rows.shape[2:])


def prepare_weights(i: Linear | Conv, weight: NDArray[np.float32], x: Values, padding: int, dense: bool) -> Weights:
    """Return a synapse's weights in the fewest bytes that are exact; ``x`` are the values of its inputs."""
    rows = conv_rows(weight, i.group, padding) if isinstance(i, Conv) else linear_rows(weight, padding)
    stored, unit, numbers = narrowed(rows)
    flat = numbers.reshape(-1, numbers.shape[-1])
    listed = blocked(np.concatenate([flat, np.zeros((1, flat.shape[1]), flat.dtype)]))
    if not dense or stored == FLOATS or x.largest * 2.0**x.bits > np.iinfo(np.int16).max:
        return Weights(stored, unit, listed, FLOATS, None)
    kind = stored if x.largest * 2.0**x.bits <= 1.0 else SHORTS  # products of bytes accept only spikes
    inputs = dense_channels(i, weight) if isinstance(i, Conv) else numbers.shape[1]
    return Weights(stored, unit, listed, kind, tiles(numbers[:, :inputs].astype(TYPES[kind]), GROUP[kind]))


def dense_channels(i: Conv, weight: NDArray[np.float32]) -> int:
    """Return the channels of an image for dense products: whole groups, as in memory unless most of it is padding."""
    channels = weight.shape[1] * i.group
    return padded(channels) if channels > padded(channels) // 2 else padded(channels, max(GROUP.values()))


def tiles(numbers: Numbers, group: int) -> Numbers:
    """Return rows [taps, inputs, outputs] as flat blocks [taps, inputs / group, outputs of a tile, group]."""
    taps, inputs, outputs = numbers.shape
    parts, done = [], 0
    while done < outputs:
        width = next(width for width in TILES if width <= outputs - done)
        block = numbers[..., done : done + width].reshape(taps, inputs // group, group, width)
        parts.append(np.ascontiguousarray(block.swapaxes(2, 3)).ravel())
        done += width
    return np.concatenate(parts)


def blocked(rows: Numbers) -> Numbers:
    """Return rows [inputs, outputs] as flat blocks [inputs, width] with widths of WIDEST, half of it, …, 1."""
    parts, done, outputs, width = [], 0, rows.shape[1], WIDEST
    while done < outputs:
        while width > outputs - done:
            width //= 2
        parts.append(rows[:, done : done + width].ravel())
        done += width
    return np.concatenate(parts)


def narrowed(rows: NDArray[np.float32]) -> tuple[int, int, Numbers]:
    """Return storage type, unit and numbers of weights [taps, inputs, outputs]: integers if their sums are exact."""
    unit = finest_unit(rows)
    if unit is None:
        return FLOATS, 0, rows
    numbers = np.ldexp(rows.astype(np.float64), unit)
    largest, most = np.abs(numbers).max(initial=0.0), np.abs(numbers).sum((0, 1)).max(initial=0.0)
    for stored, kind in ((BYTES, np.int8), (SHORTS, np.int16)):
        if largest <= np.iinfo(kind).max and most < UNITS:
            return stored, unit, numbers.astype(kind)
    return FLOATS, 0, rows


def finest_unit(values: NDArray[np.float32]) -> int | None:
    """Return the least s for which all values are multiples of 2^−s; None if the core does not support it."""
    mantissas, exponents = np.frexp(values[values != 0.0])
    whole = np.ldexp(mantissas, 24).astype(np.int64)  # a float32 has 24 bits
    lowest = np.log2((whole & -whole).astype(np.float64)).astype(np.int64)  # trailing zeros, exact for powers of two
    unit = int(np.max(24 - exponents - lowest, initial=COARSEST_UNIT))
    return unit if unit <= FINEST_UNIT else None
