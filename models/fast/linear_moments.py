"""W·x + b and Σ_j x_j² in one node of the graph, with a backward pass that adds up both in one go."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as nnf
from torch import Tensor

from axonnx.models.fast import core, products


def linear_moments(x: Tensor, weight: Tensor, bias: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return the product [… , out], and the activity Σ_j x_j² [… , 1] that shared variances are multiplied with."""
    if x.numel() > 0 and core.covers(x, weight, bias):
        return products.linear(x, weight, bias)
    out: tuple[Tensor, Tensor] = _LinearMoments.apply(x, weight, bias)
    return out


def linear_product(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Return the product alone, with the bits of ``linear_moments``."""
    if x.numel() > 0 and core.covers(x, weight, bias):
        return products.linear(x, weight, bias)[0]
    return nnf.linear(x, weight, bias)


class _LinearMoments(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(x, weight)
        ctx.set_materialize_grads(False)
        return nnf.linear(x, weight, bias), torch.linalg.vecdot(x, x).unsqueeze(-1)

    @staticmethod
    def backward(
        ctx: Any, by_mean: Tensor | None, by_activity: Tensor | None
    ) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        """Return ∂L/∂x = Wᵀ ∂L/∂mean + 2 x ∂L/∂activity, and the gradients of weights and biases."""
        x, weight = ctx.saved_tensors
        by_x = None
        if ctx.needs_input_grad[0]:
            by_x = torch.zeros_like(x) if by_mean is None else by_mean @ weight
            if by_activity is not None:
                by_x.addcmul_(x, by_activity, value=2.0)
        if by_mean is None:
            return by_x, None, None
        flat = by_mean.flatten(0, -2)
        by_bias = flat.sum(0) if ctx.needs_input_grad[2] else None
        return by_x, flat.t() @ x.flatten(0, -2), by_bias
