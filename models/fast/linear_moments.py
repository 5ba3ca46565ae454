"""W·x + b and Σ_j x_j² in one node of the graph, with a backward pass that adds up both in one go."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as nnf
from torch import Tensor

from axonnx.models.fast import dispatch as kernels


def linear_moments(x: Tensor, weight: Tensor, bias: Tensor | None) -> tuple[Tensor, Tensor]:
    """The product [… , out], and the activity Σ_j x_j² [… , 1] that shared variances are multiplied with."""
    out: tuple[Tensor, Tensor] = _LinearMoments.apply(x, weight, bias)
    return out


def sum_of_squares(x: Tensor) -> Tensor:
    """Σ_j x_j² over the last axis, which stays as one."""
    compiled = kernels.compiled("moment_kernels") if kernels.cover(x) else None
    if compiled is None:
        summed: Tensor = torch.linalg.vecdot(x, x).unsqueeze(-1)
        return summed
    out = x.new_empty((*x.shape[:-1], 1))
    rows, sums = kernels.array(x).reshape(-1, x.shape[-1]), out.numpy().reshape(-1)
    kernels.share_out(lambda begin, end: compiled.sums_of_squares(begin, end, rows, sums), len(rows), x.numel())
    return out


class _LinearMoments(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(x, weight)
        ctx.set_materialize_grads(False)
        return nnf.linear(x, weight, bias), sum_of_squares(x)

    @staticmethod
    def backward(
        ctx: Any, by_mean: Tensor | None, by_activity: Tensor | None
    ) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        """∂L/∂x = Wᵀ ∂L/∂mean + 2 x ∂L/∂activity"""
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
