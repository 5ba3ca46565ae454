"""Pooling: means over power-of-two windows of spikes and currents, or over any windows of spikes; maxima of both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as nnf
from torch import Tensor, nn

from axonnx.models.collapsing import Choice
from axonnx.models.maths.current import Current


def pool_pairs(x: Tensor) -> Tensor:
    """Return ((a + b) + (c + d)) · ¼ over squares of 2 × 2, in that order.

    A current is any real number, so the order of additions shows in its bits; here it is fixed.
    """
    if x.requires_grad and torch.is_grad_enabled():
        pooled: Tensor = _PoolPairs.apply(x)
        return pooled
    top, bottom = x[..., 0::2, :], x[..., 1::2, :]
    return ((top[..., 0::2] + top[..., 1::2]) + (bottom[..., 0::2] + bottom[..., 1::2])) * 0.25


class _PoolPairs(torch.autograd.Function):
    """``pool_pairs`` with a gradient that is written once, where autograd would add up four maps with holes."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.shape = x.shape
        return pool_pairs(x.detach())

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        *lead, channels, height, width = ctx.shape
        quarter = (grad * 0.25).movedim(-3, -1)[..., :, None, :, None, :]
        spread = quarter.expand(*quarter.shape[:-4], 2, quarter.shape[-3], 2, channels)
        return spread.reshape(*lead, height, width, channels).movedim(-1, -3)


class AveragePool2d(nn.Module):
    """The mean over window × window pixels of spikes [… , C, H, W]; exact, for the window is a power of two."""

    def __init__(self, window: int) -> None:
        super().__init__()
        if window < 1 or window & (window - 1):
            raise ValueError(f"window is {window}; expected a power of two (an average over any other is not exact)")
        self.window = window
        self.pairs: Callable[[Tensor], Tensor] = pool_pairs

    def collapsed(self, choice: Choice) -> nn.Module:
        """Return the same layer, run by the operator that a file has."""
        self.pairs = choice.operator("PoolPairs")
        return self

    def forward(self, x: Tensor) -> Tensor:
        """Return graded spikes in steps of 1/window²."""
        return over_maps(x, lambda maps: nnf.avg_pool2d(maps, self.window))

    def current(self, current: Current) -> Current:
        """Pool a current: the variance of a mean of n independent positions is their mean variance over n."""
        for _ in range(self.window.bit_length() - 1):
            current = current.channelwise(self.pairs, lambda variance: self.pairs(variance) * 0.25)
        return current

    def extra_repr(self) -> str:
        """Return the window."""
        return f"window={self.window}"


class _Windows(nn.Module):
    """A number for each window of maps."""

    window: tuple[int, int]

    def forward(self, x: Tensor) -> Tensor:
        """Return one number for each window of [… , C, H, W], as [… , C, H/h, W/w]."""
        return over_maps(x, self._pooled)

    def _pooled(self, maps: Tensor) -> Tensor:
        raise NotImplementedError

    def extra_repr(self) -> str:
        """Return the window."""
        return f"window={self.window[0]}×{self.window[1]}"


class WholePool2d(_Windows):
    """Σ x / (2^⌈log₂ H⌉ · 2^⌈log₂ W⌉) over maps [… , C, H, W]: exact, where a mean over any H·W is not.

    With zeros the map is filled up to sides that are powers of two; of a map that has such sides it is the mean.
    """

    def __init__(self, height: int, width: int) -> None:
        super().__init__()
        self.window = _power_from(height), _power_from(width)
        self.missing = self.window[0] - height, self.window[1] - width

    def _pooled(self, maps: Tensor) -> Tensor:
        filled = nnf.pad(maps, (0, self.missing[1], 0, self.missing[0])) if any(self.missing) else maps
        return nnf.avg_pool2d(filled, self.window)


class FilledPool2d(_Windows):
    """Σ x / (2^⌈log₂ h⌉ · 2^⌈log₂ w⌉) over windows of h × w of spikes or counts; see ``WholePool2d``."""

    def __init__(self, height: int, width: int) -> None:
        super().__init__()
        self.sides = height, width
        self.window = _power_from(height), _power_from(width)

    def _pooled(self, maps: Tensor) -> Tensor:
        flat, (height, width), (tall, wide) = whole_windows(maps, self.sides), self.sides, self.window
        cut = flat.unflatten(-1, (flat.shape[-1] // width, width)).unflatten(-3, (flat.shape[-2] // height, height))
        filled = nnf.pad(cut, (0, wide - width, 0, 0, 0, tall - height))
        return nnf.avg_pool2d(filled.flatten(-2).flatten(-3, -2), self.window)

    @property
    def factor(self) -> float:
        """What makes a mean of what it gives."""
        return self.window[0] * self.window[1] / (self.sides[0] * self.sides[1])


class MaxPool2d(_Windows):
    """The largest of each window; what is left over at the right and at the bottom is left out."""

    def __init__(self, window: tuple[int, int]) -> None:
        super().__init__()
        self.window = window

    def _pooled(self, maps: Tensor) -> Tensor:
        return nnf.max_pool2d(whole_windows(maps, self.window), self.window)

    def current(self, current: Current) -> Current:
        """Return the largest mean of a current, with its own variance: a comparison, so nothing is rounded."""
        variance = current.variance
        if variance is None:
            return Current(self(current.mean))
        means, spreads = (
            whole_windows(part.flatten(0, -4) if part.dim() > 4 else part, self.window)
            for part in (current.mean, variance)
        )
        largest, at = nnf.max_pool2d(means, self.window, return_indices=True)
        chosen = spreads.flatten(2).gather(2, at.flatten(2)).reshape(largest.shape)
        shape = (*current.mean.shape[:-3], *largest.shape[-3:])
        return Current(largest.reshape(shape), chosen.reshape(shape))


def over_maps(x: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
    """Apply a function of maps [N, C, H, W] to [… , C, H, W]: torch knows no further axes."""
    return function(x.flatten(0, -4)).unflatten(0, x.shape[:-3]) if x.dim() > 4 else function(x)


def whole_windows(x: Tensor, window: tuple[int, int]) -> Tensor:
    """Return the part of maps that windows side by side cover."""
    height, width = (size // side * side for size, side in zip(x.shape[-2:], window, strict=True))
    return x if (height, width) == tuple(x.shape[-2:]) else x[..., :height, :width]


def _power_from(size: int) -> int:
    """Return the least power of two that is not smaller."""
    return 1 << (size - 1).bit_length()
