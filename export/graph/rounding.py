"""The sum-exact grid: weights rounded so that every partial sum is a float32, whatever the order of additions.

A synapse's weights and biases become multiples of 2^−s, with the largest s for which

    max_i (Σ_j |w_ij| · x_max + |b_i|) · 2^(s + input bits) < 2²⁴ .

Then every partial sum is an integer multiple of 2^−(s + input bits) below 2²⁴ of them: exactly representable, so
any order, fused or not, gives the same bits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from axonnx.base.errors import AxonnxError
from axonnx.export.graph.ranges import Range
from axonnx.runtime.format.values import UNITS

ENOUGH = 30  # more fraction bits than any useful float32 weight has


@dataclass(frozen=True)
class Part:
    """One weight tensor [out, …] with its bias, and what can reach it."""

    weight: Tensor
    bias: Tensor | None
    reached_by: Range

    def bound(self) -> float:
        """max_i of the largest possible sum."""
        rows = self.weight.double().abs().flatten(1).sum(1) * self.reached_by.largest
        return float((rows if self.bias is None else rows + self.bias.double().abs()).max())


def finest_grid(parts: list[Part], largest_integer: int | None = None, where: str = "weights") -> int:
    """Find the largest s at which the sum of all ``parts`` is exact once they are rounded to it.

    ``largest_integer`` bounds |w| · 2^s as well: 127 for weights that are stored in 8 bits. ``where`` is what an
    error text calls them.
    """
    bits = max(part.reached_by.bits for part in parts)
    total = sum(part.bound() for part in parts)
    if not math.isfinite(total):
        raise AxonnxError(f"{where}: they hold numbers that are not finite. Train again, with a lower rate")
    s = ENOUGH if total == 0 else min(ENOUGH, math.floor(math.log2(UNITS / total)) - bits + 1)
    while not _fits(parts, s, largest_integer):
        s -= 1
    if s < -ENOUGH or any(_vanishes(part.weight, s) for part in parts):
        if largest_integer is not None:
            finest_grid(parts, None, where)  # an error of its own if float32 cannot hold them either
            raise AxonnxError(
                f"{where}: as integers of up to {largest_integer:,} the large weights leave nothing of the small ones "
                f"beside them (the grid is 2^{-s}). Store weights in more bits, or as float32",
                options=("weights",),
            )
        raise AxonnxError(
            f"{where}: sums of up to {total:g}, with {bits} bits behind the input's point, are exact on a grid of "
            f"2^{-s} at the finest, on which weights vanish. Let fewer or smaller numbers arrive (clip or centre the "
            f"input), or train again, with a lower learning rate, where weights diverged"
        )
    return s


def on_grid(tensor: Tensor, s: int) -> Tensor:
    """``tensor`` rounded to multiples of 2^−s (ties to even)."""
    return (torch.round(tensor.double() * 2.0**s) * 2.0**-s).float()


def units(parts: list[Part], s: int) -> float:
    """Find the largest possible partial sum of ``parts`` on the grid, in units of the last place that can occur."""
    bits = max(part.reached_by.bits for part in parts)
    return sum(part.bound() for part in parts) * 2.0 ** (s + bits)


def _vanishes(weight: Tensor, s: int) -> bool:
    """Whether nothing is left of a weight tensor that held something."""
    return bool(weight.any()) and not bool(on_grid(weight, s).any())


def _fits(parts: list[Part], s: int, largest_integer: int | None) -> bool:
    rounded = [
        Part(on_grid(part.weight, s), None if part.bias is None else on_grid(part.bias, s), part.reached_by)
        for part in parts
    ]
    if not units(rounded, s) < UNITS:
        return False
    if largest_integer is None:
        return True
    return all(float(part.weight.abs().max()) * 2.0**s <= largest_integer for part in rounded)
