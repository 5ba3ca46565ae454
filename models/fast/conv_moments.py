"""W ∗ x + b and Σ x² under each window in one node of the graph; x² is summed over channels before it is windowed.

Sums of squares of spikes and other small integers are exact, so their order shows in no bit. Nothing is kept but x and
W: squares are taken again in the backward pass, where they are one product.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import torch.nn.functional as nnf
from torch import Tensor

Pair = list[int]


class Window(NamedTuple):
    """Where a kernel goes."""

    stride: Pair
    padding: Pair
    dilation: Pair


def conv_moments(x: Tensor, weight: Tensor, bias: Tensor | None, window: Window) -> tuple[Tensor, Tensor]:
    """Of x [N, C, H, W] the product [N, out, …] and the activity Σ x² [N, 1, …] that shared variances are times."""
    out: tuple[Tensor, Tensor] = _ConvMoments.apply(x, weight, bias, window)
    return out


def squares_of_channels(x: Tensor) -> Tensor:
    """Σ_c x_c² [N, 1, H, W]"""
    return x.square().sum(1, keepdim=True)


class _ConvMoments(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, window: Window) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(x, weight)
        ctx.window, ctx.bias = window, None if bias is None else list(bias.shape)
        ctx.set_materialize_grads(False)
        activity = nnf.conv2d(squares_of_channels(x), _ones(weight), None, *window)
        return nnf.conv2d(x, weight, bias, *window), activity

    @staticmethod
    def backward(
        ctx: Any, by_mean: Tensor | None, by_activity: Tensor | None
    ) -> tuple[Tensor | None, Tensor | None, Tensor | None, None]:
        """∂L/∂x = Wᵀ ∗ ∂L/∂mean + 2 x (1ᵀ ∗ ∂L/∂activity)"""
        x, weight = ctx.saved_tensors
        wanted = list(ctx.needs_input_grad[:3])
        by_x, by_weight, by_bias = None, None, None
        if by_mean is not None:
            by_x, by_weight, by_bias = _backward(by_mean, x, weight, ctx.bias, ctx.window, wanted)
        if wanted[0] and by_activity is not None:
            like = x[:, :1]
            windowed, _, _ = _backward(by_activity, like, _ones(weight), None, ctx.window, [True, False, False])
            by_x = torch.zeros_like(x) if by_x is None else by_x
            by_x.addcmul_(x, windowed, value=2.0)
        return by_x, by_weight, by_bias, None


def _ones(weight: Tensor) -> Tensor:
    return weight.new_ones((1, 1, *weight.shape[2:]))


def _backward(
    grad: Tensor, x: Tensor, weight: Tensor, bias: Pair | None, window: Window, wanted: list[bool]
) -> tuple[Tensor, Tensor, Tensor]:
    found: tuple[Tensor, Tensor, Tensor] = torch.ops.aten.convolution_backward(
        grad, x, weight, bias, *window, False, [0, 0], 1, [*wanted[:2], wanted[2] and bias is not None]
    )
    return found
