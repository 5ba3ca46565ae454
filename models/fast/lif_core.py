"""The time steps of ``lif_sequence`` in the native core: float32 on a CPU, forwards and backwards.

What a pass keeps for its backward pass is bits of spikes, h* − θ (``core.gaps_as``), and the
small factors of the variance. κ² is computed again; noise is drawn again by estimators that read it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from axonnx.models.fast import core, products
from axonnx.models.fast.core import Active, Arguments, fields
from axonnx.models.fast.memory import keep_freed_memory
from axonnx.models.maths.current import Current
from axonnx.models.maths.estimators import (
    AnalyticGumbelRao,
    Estimator,
    GumbelSoftmaxST,
    ImportanceWeighted,
    StraightThrough,
    SurrogateGradient,
)
from axonnx.models.maths.firing import Drawn


class _Forward(Arguments):
    _fields_ = fields(
        "mean activity gain noise membrane0 variance0 decay threshold weight own each bits spikes gap total membrane "
        "variance sums",
        "steps batch pixels channels terms halves drawn first_step to_zero seed",
        "base scale",
    )


class _Backward(Arguments):
    _fields_ = fields(
        "panels each_panels by_spikes by_membrane by_variance by_gap h_grads v_grads by_activity by_gain by_decay "
        "by_threshold by_own by_base first_membrane first_variance first_spikes",
        "estimator",
        "by_log by_quadratic option",
        of=_Forward,
    )


class Kind(NamedTuple):
    """What of a layer is no tensor."""

    estimator: Estimator
    noise: Drawn | None
    to_zero: bool


# Membrane, variance and spikes before the first step.
Initial = tuple[Tensor | None, Tensor | None, Tensor | None]
NOTHING: Initial = (None, None, None)


class Passed(NamedTuple):
    """What a pass gives; ``total``, κ² of the decision, only where nothing is to be learned.

    A gap that was not kept is a function, which computes it once more; it has no gradient.
    """

    spikes: Tensor
    gap: Tensor | Callable[[], Tensor]
    total: Tensor | None
    membrane: Tensor
    variance: Tensor | None
    log: Tensor | None
    quadratic: Tensor | None


def code_of(estimator: Estimator) -> tuple[int, float] | None:
    """Return the number of an estimator's slopes in the core, and its option; None where the core has none."""
    kind = type(estimator)
    if kind is StraightThrough or (isinstance(estimator, ImportanceWeighted) and estimator.p == "F"):
        return 0, 0.0
    if isinstance(estimator, ImportanceWeighted):
        if estimator.p == "low_variance":
            return 2, 0.0
        return (1, float(estimator.p)) if isinstance(estimator.p, int | float) else None
    if isinstance(estimator, AnalyticGumbelRao):
        return 3, estimator.k
    if kind is GumbelSoftmaxST and isinstance(estimator, GumbelSoftmaxST):
        return (4 if estimator.noise == "uniform" else 5), estimator.k
    return (6, estimator.width) if isinstance(estimator, SurrogateGradient) else None


def applies(
    current: Current,
    noise: Tensor | Drawn | None,
    initial: Initial,
    constants: tuple[Tensor | None, ...],
    estimator: Estimator,
) -> bool:
    """Whether the core has a pass for this layer, its input and its state."""
    mean, last = current.mean, initial[2]
    given = noise if isinstance(noise, Tensor) else None
    if mean.dim() not in (3, 5) or not core.covers(mean, current.activity, current.gain, given, *initial, *constants):
        return False
    if code_of(estimator) is None or (current.activity is None and not isinstance(estimator, SurrogateGradient)):
        core.say_in_torch(f"neurons with the estimator {estimator}")
        return False
    if any(x is not None and x.numel() not in (1, mean.shape[2]) for x in constants[:2]):
        core.say_in_torch("neurons with constants that are neither a layer's nor a channel's")
        return False
    return mean.numel() > 0 and (last is None or core.active_of(last).binary)


def lif_pass(
    current: Current,
    noise: Tensor | Drawn | None,
    initial: Initial,
    decay: Tensor,
    threshold: Tensor,
    base: Tensor | None,
    weight: Tensor | None,
    weight_variance: Tensor | None,
    estimator: Estimator,
    to_zero: bool,
) -> Passed:
    """All steps of a layer; ``applies`` was asked first."""
    activity, gain = _factors(current)
    drawn = noise if isinstance(noise, Drawn) else None
    given = noise if isinstance(noise, Tensor) and activity is not None else None
    kind = Kind(estimator, drawn if activity is not None else None, to_zero)
    everything = (current.mean, activity, gain, given, *initial, decay, threshold, base, weight, weight_variance)
    learning = torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in everything)
    again = core.again(current.mean) if learning else None
    outputs = _LIF.apply(*everything, kind, learning, again)
    bits, passed = outputs[-1], Passed(*outputs[:-1])
    if again is not None:
        known = tuple(None if x is None else x.detach() for x in (*everything[1:6], *everything[7:]))
        passed = passed._replace(gap=lambda: _gap_again(again(), known, kind, bits))
    core.attach_bits(passed.spikes, bits[1:])
    return passed


def squares_of_noise(noise: Drawn, like: Tensor) -> Tensor:
    """ε|ε| for membranes ``like`` [T, B, …], as a pass draws it: the plain formulas can be run on the same noise."""
    out, size = core.like(like), {"steps": like.shape[0], "batch": like.shape[1], "channels": like.shape[2]}
    p = _Forward(pixels=like.shape[3:].numel(), **size, **_constants_of(Kind(StraightThrough(), noise, False)))
    core.call("squares_of_noise", p, out, 0, like.shape[1])
    return out


def _factors(current: Current) -> tuple[Tensor | None, Tensor | None]:
    """Activities of pixels and gains of channels, or the whole variance where it is no sum of such products."""
    terms = current.terms()
    if terms is not None:
        return terms
    mean, activity, gain = current.mean, current.activity, current.gain
    alone = (*mean.shape[:2], 1, *mean.shape[3:])
    if activity is None or gain is None:
        return (None if activity is None else current.variance), None
    by_channel = gain.numel() in (1, mean.shape[2]) and gain.numel() == (gain.shape[0] if gain.dim() else 1)
    if activity.shape == alone and by_channel and mean.dim() == 3 and gain.dim() < 2:
        return activity, gain
    return current.variance, None


def _by_channel(value: Tensor | None, channels: int) -> Tensor | None:
    """Return a constant of the layer or of each channel (of each term), padded."""
    if value is None:
        return None
    rows = value.detach().reshape(len(value), -1) if value.dim() == 4 else value.detach().reshape(1, -1)
    out = torch.zeros(len(rows), products.padded(channels))
    out[:, :channels] = rows
    return out


class _LIF(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        mean: Tensor,
        activity: Tensor | None,
        gain: Tensor | None,
        noise: Tensor | None,
        membrane: Tensor | None,
        variance: Tensor | None,
        last_spikes: Tensor | None,
        decay: Tensor,
        threshold: Tensor,
        base: Tensor | None,
        weight: Tensor | None,
        weight_variance: Tensor | None,
        kind: Kind,
        learning: bool,
        again: Callable[[], Tensor] | None,
    ) -> tuple[Tensor | None, ...]:
        if learning:
            keep_freed_memory()
        gaps = None if again is not None else (core.memory.gaps if learning else None) or torch.float32
        bits = torch.empty((len(mean) + 1, *_last(mean).shape[1:-1], core.words(mean.shape[2])), dtype=torch.int16)
        bits[0] = 0 if last_spikes is None else core.active_of(last_spikes).bits
        sums = torch.zeros((mean.shape[1], 2), dtype=torch.float64) if learning and activity is not None else None
        tensors = (activity, gain, noise, membrane, variance, decay, threshold, base, weight, weight_variance)
        out = _run(mean, tensors, kind, bits, gaps, sums, totals=not learning)
        ctx.set_materialize_grads(False)
        if learning:
            ctx.kind, ctx.shape, ctx.again = kind, mean.shape, again
            kept_noise = noise if kind.estimator.reads_noise or again is not None else None
            small = (membrane, variance, decay, threshold, base, weight, weight_variance)
            ctx.save_for_backward(activity, gain, kept_noise, *small, bits, out["gap"])
        ctx.mark_non_differentiable(bits)
        totals = (None, None) if sums is None else sums.sum(0).float().unbind()
        return (*out.values(), *totals, bits)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *incoming: Tensor | None) -> tuple[Tensor | None, ...]:
        activity, gain, noise, membrane, variance, decay, threshold, base, weight, weight_variance, bits, gap = (
            ctx.saved_tensors
        )
        if gap is None:
            constants = (membrane, variance, decay, threshold, base, weight, weight_variance)
            gap = _gap_again(ctx.again(), (activity, gain, noise, *constants), ctx.kind, bits)
        need, shape = ctx.needs_input_grad, ctx.shape
        batch, channels, wide = shape[1], shape[2], products.padded(shape[2])
        like, noisy = gap, activity is not None
        by_spikes, by_gap, _, by_membrane, by_variance, by_log, by_quadratic, _ = incoming
        shared = weight_variance is not None and weight_variance.dim() < 2
        map_wanted = noisy and ((gain is None and need[1]) or (weight_variance is not None and not shared))

        def each_channel(wanted: bool, rows: int = 1, dtype: torch.dtype = torch.float64) -> Tensor | None:
            return torch.zeros((batch, rows, wide), dtype=dtype) if wanted else None

        h_grads = core.like(like, torch.float32)
        out = {
            "h_grads": h_grads,
            "v_grads": core.like(like, torch.float32) if map_wanted else None,
            "by_activity": torch.zeros_like(core.channels_last(activity))
            if noisy and gain is not None and need[1]
            else None,
            "by_gain": each_channel(noisy and need[2], _terms(gain), torch.float32),
            "by_decay": each_channel(need[7]),
            "by_threshold": each_channel(need[8]),
            "by_own": each_channel(shared and need[11]),
            "by_base": torch.zeros(batch, dtype=torch.float64) if noisy and need[9] else None,
            "first_membrane": core.like(like[0], torch.float32) if need[4] else None,
            "first_variance": core.like(like[0], torch.float32) if need[5] else None,
            "first_spikes": core.like(like[0], torch.float32) if need[6] else None,
        }
        given = _arguments(
            (activity, gain, noise, membrane, variance, decay, threshold, base), weight_variance, ctx.kind, shape
        )
        each = None if weight_variance is None or shared else weight_variance
        # Of recurrent means, forwards in time, nothing is read but whether there are any.
        of = _Forward(bits=bits, gap=gap, weight=weight, each=None if each is None else products.columns(each), **given)
        of.halves = int(gap.dtype == torch.float16)
        code = code_of(ctx.kind.estimator)
        assert code is not None, "applies() was asked first"
        arriving = [None if x is None else core.channels_last(x) for x in (by_spikes, by_membrane, by_variance, by_gap)]
        pass_ = _Backward(
            panels=None if weight is None else products.panels(weight, transposed=True),
            each_panels=None if each is None else products.panels(each, transposed=True),
            by_spikes=arriving[0],
            by_membrane=arriving[1],
            by_variance=arriving[2],
            by_gap=arriving[3],
            estimator=code[0],
            option=code[1],
            by_log=0.0 if by_log is None else float(by_log),
            by_quadratic=0.0 if by_quadratic is None else float(by_quadratic),
            **out,
        )
        pass_.of = of
        pieces = 4 if weight is None else 1  # recurrent layers go back in groups of samples
        core.share_out(lambda begin, end: core.call("lif_backward", pass_, begin, end), batch, gap.numel(), pieces)
        before = Active(bits[:-1], True, 0)
        if weight is not None:
            before = before._replace(number=core.count(before.bits))
        return (
            h_grads if need[0] else None,
            out["by_activity"] if gain is not None else out["v_grads"] if need[1] else None,
            _of_channels(out["by_gain"], gain, channels),
            None,
            out["first_membrane"],
            out["first_variance"],
            out["first_spikes"],
            _of_channels(out["by_decay"], decay, channels),
            _of_channels(out["by_threshold"], threshold, channels),
            None if out["by_base"] is None or base is None else out["by_base"].sum().float().reshape(base.shape),
            products.by_weight(before, None, h_grads, channels) if weight is not None and need[10] else None,
            _variance_grad(out, weight_variance, before, channels, need[11]),
            None,
            None,
            None,
        )


def _run(
    mean: Tensor,
    tensors: tuple[Tensor | None, ...],
    kind: Kind,
    bits: Tensor,
    gaps: torch.dtype | None,
    sums: Tensor | None,
    totals: bool,
) -> dict[str, Tensor | None]:
    """Run all steps forwards and fill ``bits`` and ``sums``; ``gaps`` and ``totals`` say which others are written."""
    *shared, weight, weight_variance = tensors
    noisy = tensors[0] is not None
    out = {
        "spikes": core.like(mean),
        "gap": None if gaps is None else core.like(mean, gaps),
        "total": core.like(mean) if noisy and totals else None,
        "membrane": core.like(mean[0]),
        "variance": core.like(mean[0]) if noisy else None,
    }
    given = _arguments(tuple(shared), weight_variance, kind, mean.shape)
    rows = None if weight is None else products.columns(weight)
    each = None if weight_variance is None or weight_variance.dim() < 2 else products.columns(weight_variance)
    mean = core.channels_last(mean.detach())
    pass_ = _Forward(mean=mean, weight=rows, each=each, bits=bits, sums=sums, **given, **out)
    pass_.halves = int(gaps == torch.float16)
    batch = mean.shape[1]
    core.share_out(lambda begin, end: core.call("lif_forward", pass_, begin, end), batch, mean.numel(), pieces=4)
    return out


def _gap_again(mean: Tensor, tensors: tuple[Tensor | None, ...], kind: Kind, bits: Tensor) -> Tensor:
    """Run the forward pass once more for its h* − θ; its spikes must be those that are known."""
    found = bits.clone()
    gap = _run(mean, tensors, kind, found, torch.float32, None, totals=False)["gap"]
    assert gap is not None, "a float32 gap was asked for"
    assert torch.equal(found, bits), "other neurons fire when h* − θ is computed again"
    return gap


def _terms(gain: Tensor | None) -> int:
    """How many products a variance is the sum of."""
    return len(gain) if gain is not None and gain.dim() == 4 else 1


def _last(tensor: Tensor) -> Tensor:
    """Channels as the last axis."""
    return tensor if tensor.dim() < 4 else tensor.movedim(-3, -1)


def _constants_of(kind: Kind) -> dict[str, Any]:
    drawn = kind.noise
    if drawn is None:
        return {"scale": 1.0, "to_zero": int(kind.to_zero)}
    return {
        "drawn": 1,
        "seed": drawn.seed,
        "first_step": drawn.step,
        "scale": drawn.scale * drawn.scale,
        "to_zero": int(kind.to_zero),
    }


def _arguments(
    tensors: tuple[Tensor | None, ...], weight_variance: Tensor | None, kind: Kind, shape: torch.Size
) -> dict[str, Any]:
    """Return what both directions are given."""
    activity, gain, noise, membrane, variance, decay, threshold, base = tensors
    channels = shape[2]
    maps = {"activity": activity, "noise": noise, "membrane0": membrane, "variance0": variance}
    shared = weight_variance if weight_variance is not None and weight_variance.dim() < 2 else None
    by_channel = {"gain": gain, "decay": decay, "threshold": threshold, "own": shared}
    return {
        **{name: None if x is None else core.channels_last(x.detach()) for name, x in maps.items()},
        **{name: _by_channel(x, channels) for name, x in by_channel.items()},
        **_constants_of(kind),
        "base": 0.0 if base is None else float(base),
        "steps": shape[0],
        "batch": shape[1],
        "pixels": shape[3:].numel(),
        "channels": channels,
        "terms": _terms(gain),
    }


def _of_channels(grads: Tensor | None, value: Tensor | None, channels: int) -> Tensor | None:
    """Gradients of samples and channels, added in the shape of a constant."""
    if grads is None or value is None:
        return None
    total = grads.sum(0)[:, :channels]
    return (total.sum() if value.numel() == 1 else total).to(value.dtype).reshape(value.shape)


def _variance_grad(
    out: dict[str, Tensor | None], weight_variance: Tensor | None, before: Active, channels: int, wanted: bool
) -> Tensor | None:
    if weight_variance is None or not wanted:
        return None
    if weight_variance.dim() < 2:
        return _of_channels(out["by_own"], weight_variance, channels)
    v_grads = out["v_grads"]
    assert v_grads is not None, "variances of single weights need those of neurons"
    return products.by_weight(before, None, v_grads, channels)
