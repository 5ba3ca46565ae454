"""W ∗ x + b and Σ x² under each window in one node of the graph.

Spikes are read as bits, and bits are what the backward pass keeps of them. Each convolution and batch goes by events or
by a dense product, whichever is faster at the density that is counted; both have the same sums in the same order, so
that the choice changes no bit of the forward pass.
"""

from __future__ import annotations

import ctypes
import math
from functools import cache
from typing import Any, NamedTuple

import torch
import torch.nn.functional as nnf
from torch import Tensor

from axonnx.models.fast import core

Pair = list[int]

# Shares of active inputs up to which events are faster than dense products, measured with AVX-512 and 32 to 128
# channels: 0.50 to 0.68 forwards and 0.63 to 0.85 for gradients of weights.
FORWARD_BY_EVENTS = 0.50
WEIGHTS_BY_EVENTS = 0.60
_PARTS = 8  # sums of weight gradients: as many for any number of threads, so that their bits are the same


class Window(NamedTuple):
    """Where a kernel goes."""

    stride: Pair
    padding: Pair
    dilation: Pair


def conv_moments(
    x: Tensor, weight: Tensor, bias: Tensor | None, window: Window, *, activity: bool = True
) -> tuple[Tensor, Tensor | None]:
    """Return the product of x [… , C, H, W], [… , out, …], and the activity Σ x² [… , 1, …] of each window.

    Variances that weights share are multiples of the activity; without ``activity`` it is not computed.
    """
    found: tuple[Tensor, Tensor | None] = _ConvMoments.apply(x, weight, bias, window, activity)
    if core.memory.gaps is None and x.dim() == 5 and x.numel() > 0 and core.covers(x, weight, bias):
        active = core.active_of(x)
        kept, convolution = _kept(x, active), _Convolution(x.shape, active, weight.shape, window)
        constants = weight.detach(), None if bias is None else bias.detach()
        core.attach_again(found[0], lambda: convolution.forward(kept, *constants, False)[0])
    return found


def _kept(x: Tensor, active: core.Active) -> Tensor:
    """Return what both directions read of an input: bits, or numbers that are not all 0 or 1."""
    return active.bits if active.binary else core.channels_last(x.detach())


class _ConvMoments(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, window: Window, noisy: bool
    ) -> tuple[Tensor, Tensor | None]:
        ctx.set_materialize_grads(False)
        ctx.window, ctx.biased = window, bias is not None
        ctx.native = x.dim() > 3 and x.numel() > 0 and core.covers(x, weight, bias)
        if not ctx.native:
            ctx.save_for_backward(x, weight)
            return _in_torch(x, weight, bias, window, noisy)
        images = _images(x)
        active = core.active_of(images)
        kept = _kept(images, active)
        ctx.convolution = convolution = _Convolution(x.shape, active, weight.shape, window)
        ctx.save_for_backward(kept, weight)
        return convolution.forward(kept, weight, bias, noisy)

    @staticmethod
    def backward(ctx: Any, by_mean: Tensor | None, by_activity: Tensor | None) -> tuple[Tensor | None, ...]:
        """Return ∂L/∂x = Wᵀ ∗ ∂L/∂mean + 2 x (1ᵀ ∗ ∂L/∂activity), and the gradients of weights and biases."""
        x, weight = ctx.saved_tensors
        wanted = list(ctx.needs_input_grad[:3])
        if by_mean is None and by_activity is None:
            return None, None, None, None, None
        if ctx.native:
            return *ctx.convolution.backward(x, weight, by_mean, by_activity, wanted), None, None
        return *_gradients_in_torch(x, weight, by_mean, by_activity, ctx.window, wanted), None, None


class _Convolution:
    """The passes of one convolution and batch in the core."""

    def __init__(self, shape: torch.Size, active: core.Active, weights: torch.Size, window: Window) -> None:
        channels, height, width = shape[-3:]
        self.shape, self.lead, self.weights = shape, shape[:-3], weights
        self.images, self.outputs = math.prod(self.lead), weights[0]
        self.sides = [
            (side + 2 * pad - (taps - 1) * gap - 1) // step + 1
            for side, taps, step, pad, gap in zip((height, width), weights[2:], *window, strict=True)
        ]
        if min(self.sides) < 1 or weights[1] != channels:
            raise ValueError(
                f"maps are {channels} × {height} × {width}; weights {list(weights)} with padding {window.padding} need "
                f"{weights[1]} channels and at least one window"
            )
        self.window = (ctypes.c_int64 * 14)(
            channels,
            height,
            width,
            self.outputs,
            *self.sides,
            *weights[2:],
            *window.stride,
            *window.padding,
            *window.dilation,
        )
        self.sizes = _sizes(tuple(self.window))
        self.spikes, self.density = active.binary, active.density(shape.numel())
        self.work = shape.numel() * self.outputs

    def forward(self, kept: Tensor, weight: Tensor, bias: Tensor | None, noisy: bool) -> tuple[Tensor, Tensor | None]:
        """Return the product and, if it is wanted, the activity."""
        dense = self.density > FORWARD_BY_EVENTS
        packed = torch.empty(self.sizes.dense_weights if dense else self.sizes.event_weights)
        core.call(
            "conv_pack", self.window, weight.contiguous(), None if dense else packed, packed if dense else None, None
        )
        out = torch.empty(*self.lead, *self.sides, self.outputs)
        activity = torch.empty(*self.lead, 1, *self.sides) if noisy else None
        inputs, bias = self._inputs(kept), None if bias is None else bias.contiguous()

        def pass_of(begin: int, end: int) -> None:
            room = torch.empty(self.sizes.forward_room)
            core.call("conv_forward", self.window, dense, *inputs, packed, bias, out, activity, room, begin, end)

        core.share_out(pass_of, self.images, self.work, pieces=8)
        return out.movedim(-1, -3), activity

    def backward(
        self, kept: Tensor, weight: Tensor, by_mean: Tensor | None, by_activity: Tensor | None, wanted: list[bool]
    ) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        """Gradients of the input, the weights and the bias."""
        by_x = torch.empty(*self.lead, *self.shape[-2:], self.shape[-3]) if wanted[0] else None
        parts = min(_PARTS, self.images)
        learned = by_mean is not None
        by_weight = torch.zeros(parts, self.sizes.weight_sums) if wanted[1] and learned else None
        by_bias = torch.zeros(parts, self.outputs) if wanted[2] and learned else None
        packed = torch.empty(self.sizes.back_weights) if wanted[0] and learned else None
        if packed is not None:
            core.call("conv_pack_backward", self.window, weight.contiguous(), packed)
        grads = None if by_mean is None else core.channels_last(_images(by_mean))
        by_activity = None if by_activity is None else by_activity.contiguous()
        inputs, dense = self._inputs(kept), self.density > WEIGHTS_BY_EVENTS

        def pass_of(begin: int, end: int) -> None:
            room = torch.empty(self.sizes.backward_room)
            for part in range(begin, end):
                sums = [None if found is None else found[part] for found in (by_weight, by_bias)]
                images = (self.images * n // parts for n in (part, part + 1))
                core.call(
                    "conv_backward", self.window, dense, *inputs, packed, grads, by_activity, by_x, *sums, room, *images
                )

        core.share_out(pass_of, parts, self.work, pieces=8)
        gathered = None if by_weight is None else torch.empty(self.weights)
        if by_weight is not None:
            core.call("conv_gather", self.window, by_weight, parts, gathered)
        return (
            None if by_x is None else by_x.movedim(-1, -3),
            gathered,
            None if by_bias is None else by_bias.sum(0),
        )

    def _inputs(self, kept: Tensor) -> tuple[Tensor | None, Tensor | None]:
        """Bits or numbers."""
        return (kept, None) if self.spikes else (None, kept)


class _Sizes(NamedTuple):
    """How many floats the passes of a convolution take."""

    forward_room: int
    backward_room: int
    event_weights: int
    dense_weights: int
    back_weights: int
    weight_sums: int


@cache
def _sizes(window: tuple[int, ...]) -> _Sizes:
    sizes = (ctypes.c_int64 * len(_Sizes._fields))()
    core.call("conv_sizes", (ctypes.c_int64 * len(window))(*window), sizes)
    return _Sizes(*sizes)


def _images(x: Tensor) -> Tensor:
    """Return images as [T, B, C, H, W]."""
    return x if x.dim() == 5 else x.reshape(1, -1, *x.shape[-3:])


def _in_torch(
    x: Tensor, weight: Tensor, bias: Tensor | None, window: Window, active: bool
) -> tuple[Tensor, Tensor | None]:
    maps = x.flatten(0, -4) if x.dim() > 4 else x
    squares = maps.square().sum(-3, keepdim=True) if active else None
    found = (
        nnf.conv2d(maps, weight, bias, *window),
        None if squares is None else nnf.conv2d(squares, _ones(weight), None, *window),
    )
    out, activity = (None if part is None else part.reshape(*x.shape[:-3], *part.shape[-3:]) for part in found)
    assert out is not None
    return out, activity


def _gradients_in_torch(
    x: Tensor, weight: Tensor, by_mean: Tensor | None, by_activity: Tensor | None, window: Window, wanted: list[bool]
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    shape, x = x.shape, x.reshape(-1, *x.shape[-3:])
    by_mean, by_activity = (
        None if part is None else part.reshape(-1, *part.shape[-3:]) for part in (by_mean, by_activity)
    )
    by_x, by_weight, by_bias = None, None, None
    if by_mean is not None:
        by_x, by_weight, by_bias = _backward(by_mean, x, weight, window, wanted)
    if wanted[0] and by_activity is not None:
        windowed, _, _ = _backward(by_activity, x[:, :1], _ones(weight), window, [True, False, False])
        assert windowed is not None
        by_x = torch.zeros_like(x) if by_x is None else by_x
        by_x.addcmul_(x, windowed, value=2.0)
    return None if by_x is None else by_x.reshape(shape), by_weight, by_bias


def _ones(weight: Tensor) -> Tensor:
    return weight.new_ones((1, 1, *weight.shape[2:]))


def _backward(
    grad: Tensor, x: Tensor, weight: Tensor, window: Window, wanted: list[bool]
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    found: tuple[Tensor | None, Tensor | None, Tensor | None] = torch.ops.aten.convolution_backward(
        grad, x, weight, [len(weight)], *window, False, [0, 0], 1, wanted
    )
    return found
