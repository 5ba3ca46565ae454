"""Products of spikes and weights in the core: by events where few inputs are active, dense where many are.

The choice is made for each product by counting. Both ways give the same bits (see ``core``), so it never shows in a
result. Of binary inputs the backward pass keeps bits, of others the numbers.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from axonnx.models.fast import core
from axonnx.models.fast.core import Active, Arguments, fields

# Shares of active inputs up to which events are faster than dense products, measured with AVX-512, 3,200 rows, 256
# outputs, and 256 and 700 inputs: 0.95 forwards (of 700 inputs 2.4 ms against 12.1 at 0.1, 9.4 against 12.3 at 0.7),
# and 0.8 to 0.9 for gradients of weights (2.3 against 12.8, 10.6 against 12.7).
FORWARD_BY_EVENTS = 0.80
WEIGHTS_BY_EVENTS = 0.70


class _Dense(Arguments):
    _fields_ = fields("x panels bias out", "inputs outputs x_step out_step exact")


class _Linear(Arguments):
    _fields_ = fields("bits x panels bias out activity", "inputs outputs")


class _LinearGrads(Arguments):
    _fields_ = fields("bits x grads weights", "rows inputs outputs")


def padded(count: int) -> int:
    """``count`` filled up to whole words."""
    return core.words(count) * core.WORD


def columns(weight: Tensor) -> Tensor:
    """Weights [out, in] as rows [in, padded out]: what each input adds to the sums."""
    rows = weight.new_zeros((weight.shape[1], padded(weight.shape[0])))
    rows[:, : weight.shape[0]] = weight.detach().t()
    return rows


def panels(weight: Tensor, transposed: bool = False) -> Tensor:
    """Weights [out, in] in the order that dense products read them, for x Wᵀ; ``transposed``: for x W."""
    given = weight.detach() if transposed else weight.detach().t()
    inputs, outputs = given.shape
    out = weight.new_empty((-(-outputs // 32) * 32, inputs))
    core.call("panels", weight.detach().contiguous(), inputs, outputs, *_strides(weight, transposed), out)
    return out


def _strides(weight: Tensor, transposed: bool) -> tuple[int, int]:
    return (weight.shape[1], 1) if transposed else (1, weight.shape[1])


def linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return the product [… , out], and the activity Σ_j x_j² [… , 1] that shared variances are multiplied with."""
    if x.shape[-1] != weight.shape[1]:  # the core would read beyond the end of one of them
        rows, inputs = x.numel() // x.shape[-1], x.shape[-1]
        raise RuntimeError(f"shapes cannot be multiplied: {rows} × {inputs} and weights {list(weight.shape)}")
    out: tuple[Tensor, Tensor] = _LinearPass.apply(x, weight, bias)
    if core.memory.gaps is None:
        active, inputs, numbers = core.active_of(x), x.shape[-1], None
        if not active.binary:
            numbers = x.detach()
        constants = weight.detach(), None if bias is None else bias.detach()

        def again() -> Tensor:
            return forward(core.unpack(active.bits, inputs) if numbers is None else numbers, active, *constants)[0]

        core.attach_again(out[0], again)
    return out


def forward(x: Tensor, active: Active, weight: Tensor, bias: Tensor | None) -> tuple[Tensor, Tensor]:
    """W·x + b and Σ x² of numbers whose active elements are known."""
    outputs, inputs = weight.shape
    out, activity = x.new_empty((*x.shape[:-1], outputs)), x.new_empty((*x.shape[:-1], 1))
    numbers, rows = None if active.binary else x.detach().contiguous(), activity.numel()
    bias = None if bias is None else bias.detach().contiguous()
    if active.density(x.numel()) > FORWARD_BY_EVENTS:
        if numbers is None:
            numbers, exact = x.detach().contiguous(), 0
        else:
            exact = 1
        p: Any = _Dense(
            x=numbers,
            panels=panels(weight),
            bias=bias,
            out=out,
            inputs=inputs,
            outputs=outputs,
            x_step=inputs,
            out_step=outputs,
            exact=exact,
        )
        core.share_out(lambda begin, end: core.call("dense", p, begin, end), rows, rows * inputs * outputs // 64)
        torch.linalg.vecdot(numbers, numbers, out=activity[..., 0])
        return out, activity
    p = _Linear(
        bits=active.bits,
        x=numbers,
        panels=panels(weight),
        bias=bias,
        out=out,
        activity=activity,
        inputs=inputs,
        outputs=outputs,
    )
    work = active.number * outputs // 16
    core.share_out(lambda begin, end: core.call("linear_forward", p, begin, end), rows, work, pieces=4)
    return out, activity


def by_input(grads: Tensor, weight: Tensor) -> Tensor:
    """∂L/∂x = ∂L/∂(W x) W of gradients [… , out]."""
    outputs, inputs = weight.shape
    grads = grads.contiguous()
    out, rows = grads.new_empty((*grads.shape[:-1], inputs)), grads.numel() // outputs
    sizes = {"inputs": outputs, "outputs": inputs, "x_step": outputs, "out_step": inputs}
    p = _Dense(x=grads, panels=panels(weight, transposed=True), out=out, **sizes)
    core.share_out(lambda begin, end: core.call("dense", p, begin, end), rows, rows * inputs * outputs // 64)
    return out


def by_weight(active: Active, x: Tensor | None, grads: Tensor, inputs: int) -> Tensor:
    """∂L/∂W [out, in] = Σ_rows grads ⊗ x; ``x`` are the numbers of inputs that are not all 0 or 1."""
    grads, outputs = grads.contiguous(), grads.shape[-1]
    rows = grads.numel() // outputs
    if active.density(rows * inputs) > WEIGHTS_BY_EVENTS:
        numbers = core.unpack(active.bits, inputs) if x is None else x
        return grads.reshape(rows, outputs).t() @ numbers.reshape(rows, inputs)
    found = grads.new_zeros((inputs, padded(outputs)))
    sizes = {"rows": rows, "inputs": inputs, "outputs": outputs}
    p = _LinearGrads(bits=active.bits, x=x, grads=grads, weights=found, **sizes)
    work = active.number * outputs // 16
    core.share_out(lambda begin, end: core.call("linear_backward", p, begin, end), core.words(inputs), work)
    return found[:, :outputs].t()


class _LinearPass(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> tuple[Tensor, Tensor]:
        active = core.active_of(x)
        ctx.active, ctx.inputs, ctx.leading = active._replace(bits=active.bits[:0]), x.shape[-1], x.shape
        ctx.save_for_backward(active.bits, None if active.binary else x.contiguous(), weight)
        ctx.set_materialize_grads(False)
        return forward(x, active, weight, bias)

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, by_mean: Tensor | None, by_activity: Tensor | None
    ) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        """Return ∂L/∂x = Wᵀ ∂L/∂mean + 2 x ∂L/∂activity, and the gradients of weights and biases."""
        bits, x, weight = ctx.saved_tensors
        active, by_x, by_weights, by_bias = ctx.active._replace(bits=bits), None, None, None
        if ctx.needs_input_grad[0]:
            by_x = torch.zeros(ctx.leading) if by_mean is None else by_input(by_mean, weight)
            if by_activity is not None:
                _add_activity(by_x, bits, x, by_activity.contiguous())
        if by_mean is not None:
            by_weights = by_weight(active, x, by_mean, ctx.inputs) if ctx.needs_input_grad[1] else None
            by_bias = by_mean.flatten(0, -2).sum(0) if ctx.needs_input_grad[2] else None
        return by_x, by_weights, by_bias


def _add_activity(by_x: Tensor, bits: Tensor, x: Tensor | None, by_activity: Tensor) -> None:
    """Add 2 x ∂L/∂activity."""
    if x is not None:
        by_x.addcmul_(x, by_activity, value=2.0)
        return
    rows, inputs = by_activity.numel(), by_x.shape[-1]
    core.share_out(
        lambda begin, end: core.call("add_activity", bits, by_activity, by_x, inputs, begin, end), rows, by_x.numel()
    )
