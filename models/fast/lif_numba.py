"""The time steps of ``lif_sequence`` by compiled kernels: float32 on a CPU, where numba is installed.

A recurrent layer needs a matrix product for each step and calls a kernel in between; a layer without recurrence is
one call for many steps, its rows shared out among torch's threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import ModuleType

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from axonnx.models.fast import dispatch as kernels
from axonnx.models.fast.dispatch import Floats
from axonnx.models.fast.lif_torch import Drive, Gradients, Incoming, Layer, Trace, slope_blocks, variance_gradient
from axonnx.models.maths.estimators import Estimator, StraightThrough, SurrogateGradient

Longs = NDArray[np.int64]
_KERNELS = "lif_kernels"


def applies(layer: Layer, drive: Drive, membrane: Tensor, remembered: Tensor | None, last_spikes: Tensor) -> bool:
    """Whether the kernels cover this layer, its input and its state; binary spikes are what they know."""
    return (
        type(layer.estimator).output is Estimator.output
        and max(layer.decay.dim(), layer.threshold.dim()) <= drive.mean.dim() - 2
        and (drive.activity is None) == (remembered is None)
        and drive.mean.dim() > 2
        and kernels.cover(*layer[:5], *drive, membrane, remembered, last_spikes)
        and (layer.weight_variance is None or bool((last_spikes * last_spikes == last_spikes).all()))
        and kernels.compiled(_KERNELS) is not None
    )


def forward_steps(
    layer: Layer, drive: Drive, membrane: Tensor, remembered: Tensor | None, trace: Trace, learning: bool
) -> tuple[Tensor, Tensor | None, Tensor | None, Tensor | None]:
    """As ``lif_steps.forward_steps``, with the same bits; ``learning`` adds the sums ½ Σ ln(1 + z²) and Σ z²."""
    membrane = membrane.clone(memory_format=torch.contiguous_format)
    remembered = None if remembered is None else remembered.clone(memory_format=torch.contiguous_format)
    product, shared, scatter = _recurrent_buffers(layer, membrane)
    rows = _Rows(drive.mean)
    products = _products(trace, rows) if learning else None
    squares = None if products is None else torch.zeros_like(products[0])
    arrays = (
        _numbers(layer),
        *_constants(layer, drive.mean, rows),
        *_arriving_variance(drive, rows),
        rows.of(drive.mean),
        rows.of_step(product),
        _flat(shared),
        rows.of_step(scatter),
        rows.of(drive.noise if trace.total is not None else None),
        rows.of_step(membrane),
        rows.of_step(remembered),
        rows.of(trace.emitted),
        rows.of(trace.gap),
        rows.of(trace.total),
        np.empty((0, 0, 0), np.float64) if products is None else products.numpy(),
        np.empty((0, 0), np.float64) if squares is None else squares.numpy(),
    )
    forward = _compiled().forward
    if layer.weight is None or product is None:
        rows.share_out(forward, 0, len(trace.gap), arrays)
    else:
        transposed = layer.weight.t()
        for t, last_spikes in enumerate(trace.before.unbind(0)):
            torch.mm(last_spikes, transposed, out=product)
            if scatter is not None and layer.weight_variance is not None:
                torch.mm(last_spikes.square(), layer.weight_variance.t(), out=scatter)
            forward(t, t + 1, 0, rows.count, *arrays)
    if products is None or squares is None:
        return membrane, remembered, None, None
    logs, kind = products.log_().sum().mul_(0.5), trace.gap.dtype
    return membrane, remembered, logs.to(kind), squares.sum().to(kind)


def backward_steps(layer: Layer, noise: Tensor | None, trace: Trace, incoming: Incoming) -> Gradients:
    """As ``lif_steps.backward_steps``, up to rounding: some sums are taken in another order, and the exponential of
    a Normal density is the kernels' own.
    """
    h_grads = torch.empty_like(trace.gap)
    v_grads = None if trace.total is None else torch.empty_like(trace.gap)
    product, shared, scatter = _recurrent_buffers(layer, h_grads[0])
    one_for_all = shared is not None and layer.weight_variance is not None and len(layer.weight_variance) == 1
    by_weight_variance = torch.empty(trace.gap.shape[:2]) if one_for_all and v_grads is not None else None
    rows, feedback = _Rows(trace.gap), layer.feedback
    arrays = (
        *(rows.of(gradient) for gradient in incoming[:3]),
        *(rows.of_step(gradient) for gradient in incoming[3:5]),
        rows.of_step(product),
        _flat(shared),
        rows.of_step(scatter),
        rows.of(trace.emitted),
        rows.of(trace.gap),
        rows.of(trace.total),
        np.empty((rows.count, 6, rows.length), np.float32),
        rows.of(h_grads),
        rows.of(v_grads),
        np.empty((0, 0), np.float32) if by_weight_variance is None else by_weight_variance.numpy(),
    )
    numbers, constants = _numbers(layer, incoming.log, incoming.quadratic), _constants(layer, trace.gap, rows)
    backward = _compiled().backward
    for first, last, *given in _slopes(layer.estimator, trace, noise):
        fixed = (first, numbers, *constants, *(rows.of(slope) for slope in given), *arrays)
        if feedback is None or product is None:
            rows.share_out(backward, first, last, fixed)
            continue
        for t in range(last - 1, first - 1, -1):
            if t < len(h_grads) - 1:
                _through_next(incoming.spikes, t, h_grads[t + 1], feedback, product)
                if scatter is not None and layer.weight_variance is not None and v_grads is not None:
                    torch.mm(v_grads[t + 1], layer.weight_variance, out=scatter)
            backward(t, t + 1, 0, rows.count, *fixed)
    if by_weight_variance is not None:
        return Gradients(h_grads, v_grads, by_weight_variance.sum().reshape(1))
    return Gradients(h_grads, v_grads, variance_gradient(v_grads, trace.before, layer.weight_variance))


def _through_next(by_spikes: Tensor | None, t: int, h_grad: Tensor, feedback: Tensor, out: Tensor) -> None:
    """∂L/∂o[t] without what comes through variances."""
    if by_spikes is None:
        torch.mm(h_grad, feedback, out=out)
    else:
        torch.addmm(by_spikes[t], h_grad, feedback, out=out)


def _slopes(
    estimator: Estimator, trace: Trace, noise: Tensor | None
) -> Iterator[tuple[int, int, Tensor | None, Tensor | None]]:
    """Slopes of a few steps at a time; of Normal densities none, for the kernel has them at hand."""
    kind = type(estimator)
    if kind is SurrogateGradient or (kind is StraightThrough and trace.total is not None):
        yield 0, len(trace.gap), None, None
    else:
        yield from slope_blocks(estimator, trace, noise)


class _Rows:
    """Tensors [(T,) B, …] as arrays [(T,) rows, length]: a row is a sample, or a channel with its positions."""

    def __init__(self, like: Tensor) -> None:
        self.channels = 1 if like.dim() == 3 else like.shape[2]
        self.count = like.shape[1] * self.channels
        self.length = like[0, 0].numel() // self.channels if like.numel() else 0

    def of(self, tensor: Tensor | None) -> Floats:
        """[T, rows, length]; of nothing [0, 0, 0]."""
        if tensor is None:
            return np.empty((0, 0, 0), np.float32)
        return kernels.array(tensor).reshape(len(tensor), self.count, self.length)

    def of_step(self, tensor: Tensor | None) -> Floats:
        """[rows, length]; of nothing [0, 0]."""
        if tensor is None:
            return np.empty((0, 0), np.float32)
        return kernels.array(tensor).reshape(self.count, self.length)

    def share_out(self, kernel: Callable[..., None], first: int, last: int, fixed: tuple[object, ...]) -> None:
        """Call ``kernel`` for these steps of all rows."""
        work = (last - first) * self.count * self.length
        kernels.share_out(lambda begin, end: kernel(first, last, begin, end, *fixed), self.count, work)


def _arriving_variance(drive: Drive, rows: _Rows) -> tuple[Longs, Floats, Floats]:
    """Numbers, vectors, and where step t of channel c of sample b finds its own: channels; t, b, c; t, b, c.

    The variance that arrives at a row is a number times a vector: activity times gains of a dense layer, gain times
    activities of a convolutional one, and one times the variance where it is no product.
    """
    mean, activity, gain = drive[:3]
    batch, channels, length = mean.shape[1], rows.channels, rows.length
    if activity is None:
        return _layout(1, (0, 0, 0), (0, 0, 0)), _flat(None), _flat(None)
    alone = (*mean.shape[:2], 1, *mean.shape[3:])
    if gain is not None and activity.shape == alone and mean.dim() == 3 and gain.dim() == 1:
        return _layout(1, (batch, 1, 0), (0, 0, 0)), _flat(activity), _flat(gain.expand(length))
    if gain is not None and activity.shape == alone and gain.shape[1:].numel() == 1 and gain.dim() == mean.dim() - 2:
        gains = gain.flatten().expand(channels)
        return _layout(channels, (0, 0, 1), (batch * length, length, 0)), _flat(gains), _flat(activity)
    whole = (activity if gain is None else activity * gain).expand_as(mean)
    places = (batch * channels * length, channels * length, length)
    return _layout(channels, (0, 0, 0), places), np.ones(1, np.float32), _flat(whole)


def _layout(channels: int, numbers: tuple[int, int, int], vectors: tuple[int, int, int]) -> Longs:
    return np.array([channels, *numbers, *vectors], np.int64)


def _recurrent_buffers(layer: Layer, like: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """Room for W·o, ν² of each neuron where its weights share it, and room for Σ_k ν_ik² o_k² where they do not."""
    if layer.weight is None:
        return None, None, None
    product = torch.empty_like(like, memory_format=torch.contiguous_format)
    if layer.weight_variance is None:
        return product, None, None
    if layer.weight_variance.dim() == 2:
        return product, None, torch.empty_like(product)
    return product, layer.weight_variance.expand(like.shape[-1]), None


def _compiled() -> ModuleType:
    compiled = kernels.compiled(_KERNELS)
    assert compiled is not None, "applies() was asked first"
    return compiled


def _products(trace: Trace, rows: _Rows) -> Tensor | None:
    if trace.total is None:
        return None
    groups = -(-len(trace.gap) // _compiled().FACTORS)
    return torch.empty(groups, rows.count, rows.length, dtype=torch.float64)


def _numbers(layer: Layer, *by_sums: Tensor | None) -> Floats:
    """σ_base², the width of an estimator that has one, and the gradients of the two sums over z."""
    outer = [0.0 if gradient is None else float(gradient) for gradient in by_sums]
    base = 0.0 if layer.base is None else float(layer.base)
    width = layer.estimator.width if isinstance(layer.estimator, SurrogateGradient) else 0.0
    return np.array([base, width, *outer], np.float32)


def _constants(layer: Layer, like: Tensor, rows: _Rows) -> tuple[Floats, Floats, Floats]:
    """β, β² (rounded as in torch) and θ for each channel and position of a sample."""
    each = layer.decay, layer.decay * layer.decay, layer.threshold
    decay, decay_squared, threshold = (kernels.array(value.expand(like.shape[2:])) for value in each)
    shape = rows.channels, rows.length
    return decay.reshape(shape), decay_squared.reshape(shape), threshold.reshape(shape)


def _flat(tensor: Tensor | None) -> Floats:
    return np.empty(0, np.float32) if tensor is None else kernels.array(tensor).reshape(-1)
