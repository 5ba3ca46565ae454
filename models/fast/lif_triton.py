"""Passes of spiking neurons on a GPU: what ``lif_core`` is on a CPU, with one launch for a layer and a direction.

What is covered:

============================  ==========================================================================
estimators                    st, iwst (a number, "F", "low_variance"), agr, gs_st, gs, sg; not gr, and not
                              iwst with a function of one's own
variance of the current       none; activity times gain (σ of a layer or neuron; sums of such products of
                              residual streams); a map (σ of each weight)
variance of recurrent weights none, of the layer, of each neuron, of each weight
reset                         by subtraction, to zero
β and θ                       of the layer, of each neuron or channel; learned or not
noise                         drawn in the kernel, given (a replay), or none (mean-field)
recurrent layers              up to 1,024 neurons
============================  ==========================================================================

Anything else runs in torch, and is named once in the log. Kept for the backward pass are spikes as bytes, h* − θ as
``core.gaps_as`` says, and κ²; noise is drawn again by estimators that read it.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
import torch.nn.functional as nnf
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch.autograd.function import once_differentiable

from axonnx.models.fast import backend, core, triton_kernels
from axonnx.models.fast.lif_core import Initial, Kind, Passed, code_of
from axonnx.models.fast.triton_kernels import MAP, NO_SPREAD, PRODUCT
from axonnx.models.maths.current import Current
from axonnx.models.maths.estimators import Estimator, GumbelSoftmax, GumbelSoftmaxST, SurrogateGradient
from axonnx.models.maths.firing import Drawn

LARGEST_RECURRENT = 1024  # neurons, whose state one program keeps in registers
_TILE, _MOST_CHANNELS = 512, 128  # neurons of a program; channels of it


def launch(kernel: Any, grid: tuple[int, ...], *arguments: Any, warps: int = 4, **constants: Any) -> None:
    """Run a kernel; with stand-ins for tensors, which have shapes and no numbers, nothing runs."""
    if any(isinstance(x, FakeTensor) for x in arguments):
        return
    tensor = next(x for x in arguments if isinstance(x, Tensor))
    with torch.cuda.device_of(tensor):
        kernel[grid](*arguments, num_warps=warps, enable_fp_fusion=False, **constants)


def applies(
    current: Current,
    noise: Tensor | Drawn | None,
    initial: Initial,
    constants: tuple[Tensor | None, ...],
    estimator: Estimator,
) -> bool:
    """Whether there are kernels for this layer, its input and its state."""
    mean, given = current.mean, noise if isinstance(noise, Tensor) else None
    everything = (mean, current.activity, current.gain, given, *initial, *constants)
    if mean.dim() not in (3, 5) or mean.numel() == 0 or not backend.triton_wanted(*everything):
        return False
    if _code(estimator) is None or (current.activity is None and not isinstance(estimator, SurrogateGradient)):
        core.say_in_torch(f"neurons with the estimator {estimator}")
        return False
    if any(x is not None and x.numel() not in (1, mean.shape[2]) for x in constants[:2]):
        core.say_in_torch("neurons with constants that are neither a layer's nor a channel's")
        return False
    if len(constants) > 3 and constants[3] is not None and mean.shape[2] > LARGEST_RECURRENT:
        core.say_in_torch(f"recurrent layers of more than {LARGEST_RECURRENT} neurons")
        return False
    return True


def _code(estimator: Estimator) -> tuple[int, float] | None:
    """Return the number of an estimator's slopes in the kernels, and its option."""
    if type(estimator) is GumbelSoftmax:
        return code_of(GumbelSoftmaxST(estimator.k, estimator.noise))
    return code_of(estimator)


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
    activity, gain = _factors(current, weight is not None)
    drawn = noise if isinstance(noise, Drawn) and activity is not None else None
    given = noise if isinstance(noise, Tensor) and activity is not None else None
    everything = (current.mean, activity, gain, given, *initial, decay, threshold, base, weight, weight_variance)
    learning = torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in everything)
    outputs = _LIF.apply(*everything, Kind(estimator, drawn, to_zero), learning)
    passed = Passed(*outputs[:-1])
    if outputs[-1] is not None:
        attach_bytes(passed.spikes, outputs[-1])
    return passed


def _factors(current: Current, recurrent: bool) -> tuple[Tensor | None, Tensor | None]:
    """Activities [T, B, K, …] and gains [K, C], or a variance for each neuron and no gain."""
    mean, activity, gain = current.mean, current.activity, current.gain
    terms = current.terms()
    if terms is not None:
        return terms[0], terms[1].flatten(1)
    if activity is None or gain is None:
        return (None if activity is None else current.variance), None
    shared = activity.shape == (*mean.shape[:2], 1) and gain.dim() < 2 and gain.numel() in (1, mean.shape[2])
    return (activity, gain.expand(mean.shape[2])[None]) if shared else (current.variance, None)


class _Shape(NamedTuple):
    """Sizes of a layer's maps, and of the part that a program has."""

    steps: int
    batch: int
    channels: int
    pixels: int

    @property
    def tile(self) -> tuple[int, int]:
        """Channels and pixels of a program."""
        channels = min(_power(self.channels), _MOST_CHANNELS if self.pixels > 1 else _TILE)
        return channels, min(_power(self.pixels), max(8, _TILE // channels))

    @property
    def grid(self) -> tuple[int, int, int]:
        """Programs: samples, groups of pixels, groups of channels."""
        channels, pixels = self.tile
        return self.batch, -(-self.pixels // pixels), -(-self.channels // channels)


def _power(count: int) -> int:
    """Return the next power of two."""
    return 1 << (count - 1).bit_length()


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
    ) -> tuple[Tensor | None, ...]:
        ctx.set_materialize_grads(False)
        given = [_plain(x) for x in (mean, activity, gain, noise, membrane, variance, last_spikes)]
        mean = given[0]
        shape = _Shape(len(mean), mean.shape[1], mean.shape[2], mean.shape[3:].numel())
        noisy, relaxed = activity is not None, _relaxed(kind, noise)
        recurrent = weight is not None
        programs = _programs(shape) if recurrent else math.prod(shape.grid)
        spikes, gap = torch.empty_like(mean), torch.empty_like(mean, dtype=core.memory.gaps if learning else None)
        total = torch.empty_like(mean) if noisy else None
        after = torch.empty_like(mean[0]), torch.empty_like(mean[0]) if noisy else None
        sums = mean.new_zeros((programs, 2)) if noisy and learning else None
        kept: Tensor | None = None
        dtype = torch.float32 if relaxed else torch.uint8
        if recurrent:
            kept = mean.new_empty((shape.steps + 1, *mean.shape[1:]), dtype=dtype)
            kept[0] = 0 if last_spikes is None else last_spikes
        elif learning and not relaxed:
            kept = torch.empty_like(mean, dtype=dtype)
        constants = [_plain(x) for x in (decay, threshold, base)]
        numbers = _numbers(kind, shape)
        flags = _flags(kind, activity, gain, noise, decay, threshold)
        where = (spikes, kept, gap, total, *after, sums)
        if weight is None:
            launch(
                triton_kernels.forward,
                shape.grid,
                *given,
                *constants,
                *where,
                *numbers,
                shape.channels,
                shape.pixels,
                _padded(shape.channels),
                1 if gain is None else len(gain),
                **flags,
                RELAXED=relaxed,
                BC=shape.tile[0],
                BP=shape.tile[1],
            )
        else:
            shared, each = _recurrent_variances(weight_variance)
            launch(
                triton_kernels.recurrent_forward,
                (programs,),
                *given[:6],
                *constants,
                _from_to(weight, relaxed),
                shared,
                None if each is None else _from_to(each, relaxed),
                *where,
                *numbers,
                **flags,
                **_recurrent_flags(shared, shape.channels),
                RELAXED=relaxed,
                warps=_warps(shape.channels),
            )
        if learning:
            ctx.kind, ctx.shape, ctx.relaxed = kind, shape, relaxed
            reads = kind.estimator.reads_noise
            trace = (spikes if kept is None else kept, gap, total)
            small = (*given[4:7], *constants, weight, weight_variance)
            ctx.save_for_backward(given[1], given[2], given[3] if reads else None, *small, *trace)
        totals = (None, None) if sums is None else sums.sum(0, dtype=torch.float64).float().unbind()
        shown = kept if kept is None or relaxed or weight is None else kept[1:]
        shown = None if relaxed else shown
        if shown is not None:
            ctx.mark_non_differentiable(shown)
        return spikes, gap, None if learning else total, *after, *totals, shown

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *incoming: Tensor | None) -> tuple[Tensor | None, ...]:
        saved = ctx.saved_tensors
        activity, gain, noise, membrane, variance, last_spikes, decay, threshold, base = saved[:9]
        weight, weight_variance, kept, gap, total = saved[9:]
        kind, need, shape = ctx.kind, ctx.needs_input_grad, ctx.shape
        noisy, recurrent = activity is not None, weight is not None
        by_spikes, by_gap, _, by_membrane, by_variance, by_log, by_quadratic, _ = incoming
        shared, each = _recurrent_variances(weight_variance)
        first_wanted = noisy and (need[5] or need[6])
        programs = _programs(shape) if recurrent else shape.grid[0] * shape.grid[1]
        groups = 1 if recurrent else shape.grid[2]
        like: Tensor = gap

        def room(wanted: bool, *size: int) -> Tensor | None:
            return like.new_empty(size, dtype=torch.float32) if wanted else None

        h_grads = torch.empty_like(like, dtype=torch.float32)
        map_wanted = noisy and ((gain is None and need[1]) or each is not None or first_wanted)
        v_grads = torch.empty_like(h_grads) if map_wanted else None
        by_activity = room(
            noisy and gain is not None and need[1], groups, *(() if activity is None else activity.shape)
        )
        by_gain = room(noisy and gain is not None and need[2], programs, *(() if gain is None else gain.shape))
        by_decay = room(need[7], programs, shape.channels)
        by_threshold = room(need[8], programs, shape.channels)
        by_base = room(noisy and need[9], programs * groups)
        by_own = room(shared is not None and need[11], programs, shape.channels)
        by_sums = _sums(by_log, by_quadratic, like)
        arriving = [_plain(x) for x in (by_spikes, by_gap, by_membrane, by_variance)]
        flags = {**_flags(kind, activity, gain, noise, decay, threshold), "READS_NOISE": kind.estimator.reads_noise}
        numbers = _numbers(kind, shape)
        where = (h_grads, v_grads, by_activity, by_gain, by_decay, by_threshold, by_base)
        if weight is None:
            launch(
                triton_kernels.backward,
                shape.grid,
                *(activity, gain, noise, membrane, variance, last_spikes),
                *(decay, threshold, base),
                *(kept, gap, total, *arriving, by_sums),
                *where,
                *numbers,
                shape.channels,
                shape.pixels,
                _padded(shape.channels),
                1 if gain is None else len(gain),
                **flags,
                TERMS=_power(1 if gain is None else len(gain)),
                BC=shape.tile[0],
                BP=shape.tile[1],
            )
        else:
            launch(
                triton_kernels.recurrent_backward,
                (programs,),
                *(activity, gain, noise, membrane, variance),
                *(decay, threshold, base),
                *(_square(weight), shared, None if each is None else _square(each)),
                *(kept, gap, total, *arriving, by_sums),
                *where,
                by_own,
                *numbers,
                **flags,
                **_recurrent_flags(shared, shape.channels),
                warps=_warps(shape.channels),
            )
        first = _first(ctx, h_grads, v_grads, saved)
        return (
            h_grads if need[0] else None,
            v_grads if gain is None else None if by_activity is None else by_activity.sum(0),
            None if by_gain is None else by_gain.sum(0, dtype=torch.float64).float(),
            None,
            *first,
            _of_channels(by_decay, decay),
            _of_channels(by_threshold, threshold),
            None if by_base is None else by_base.sum(dtype=torch.float64).float().reshape(base.shape),
            _by_weight(h_grads, kept) if weight is not None and need[10] else None,
            _by_variance(by_own, v_grads, kept, weight_variance) if need[11] else None,
            None,
            None,
        )


def _first(
    ctx: Any, h_grads: Tensor, v_grads: Tensor | None, saved: tuple[Tensor, ...]
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """Gradients of the state before the first step; a pass from rest has none."""
    need = ctx.needs_input_grad
    if not any(need[4:7]):
        return None, None, None
    membrane, variance, last_spikes, decay, threshold = saved[3:8]
    weight, weight_variance = saved[9:11]
    h, v, to_zero = h_grads[0], None if v_grads is None else v_grads[0], ctx.kind.to_zero
    kept = 1.0 - last_spikes if to_zero else 1.0
    decay, threshold = (_of_maps(x, h) for x in (decay, threshold))
    by_spikes: Tensor | None = None
    if need[6]:
        by_spikes = -decay * membrane * h if to_zero else -threshold * h
        if to_zero and v is not None:
            by_spikes = by_spikes - decay * decay * variance * v
        shared, each = _recurrent_variances(weight_variance)
        if weight is not None:
            by_spikes = by_spikes + h @ weight
        if shared is not None and v is not None:
            by_spikes = by_spikes + 2.0 * last_spikes * ((shared * v).sum(-1, keepdim=True) - shared * v)
        if each is not None and v is not None:
            by_spikes = by_spikes + 2.0 * last_spikes * (v @ each)
    return (
        decay * kept * h if need[4] else None,
        decay * decay * kept * v if need[5] and v is not None else None,
        by_spikes,
    )


def _plain(x: Any) -> Any:
    """Return a tensor without gaps in memory, and without a gradient."""
    return None if x is None else x.detach().contiguous()


def _padded(channels: int) -> int:
    """Channels filled up to words, as the core numbers neurons: noise is a function of that number."""
    return core.words(channels) * core.WORD


def _relaxed(kind: Kind, noise: Tensor | None) -> bool:
    """Whether neurons emit numbers between 0 and 1."""
    return isinstance(kind.estimator, GumbelSoftmax) and (kind.noise is not None or noise is not None)


def _numbers(kind: Kind, shape: _Shape) -> tuple[Any, ...]:
    code = _code(kind.estimator)
    assert code is not None, "applies() was asked first"
    drawn = kind.noise or Drawn(0, 0)
    return drawn.seed, drawn.step, drawn.scale * drawn.scale, code[1], shape.steps, shape.batch


def _flags(
    kind: Kind, activity: Tensor | None, gain: Tensor | None, noise: Tensor | None, decay: Tensor, threshold: Tensor
) -> dict[str, Any]:
    code = _code(kind.estimator)
    assert code is not None, "applies() was asked first"
    return {
        "OWN_DECAY": int(decay.numel() > 1),
        "OWN_THRESHOLD": int(threshold.numel() > 1),
        "SPREAD": NO_SPREAD if activity is None else MAP if gain is None else PRODUCT,
        "DRAWN": kind.noise is not None,
        "ESTIMATOR": code[0],
        "TO_ZERO": kind.to_zero,
    }


def _recurrent_flags(shared: Tensor | None, neurons: int) -> dict[str, int]:
    wide, own = _wide(neurons), 0 if shared is None else int(shared.numel() > 1)
    return {"OWN_VARIANCE": own, "N": neurons, "BB": _samples(neurons), "BN": wide, "BK": 16}


def _wide(neurons: int) -> int:
    """Return a recurrent layer's neurons filled up to a power of two, at least the 16 of a tensor core's product."""
    return max(16, _power(neurons))


def _samples(neurons: int) -> int:
    """Return how many samples of a recurrent layer one program takes: what registers of all GPUs hold, at most 16."""
    wide = _wide(neurons)
    return min(16, (2048 if wide < 256 else 1024) // wide)


def _programs(shape: _Shape) -> int:
    return -(-shape.batch // _samples(shape.channels))


def _warps(neurons: int) -> int:
    """Warps of a program that has some samples of a recurrent layer."""
    return min(16, max(4, _wide(neurons) // 16))


def _recurrent_variances(weight_variance: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
    """Variances that a layer's or neuron's weights share, or those of each weight."""
    if weight_variance is None:
        return None, None
    plain: Tensor = _plain(weight_variance)
    return (plain, None) if plain.dim() < 2 else (None, plain)


def _from_to(weight: Tensor, relaxed: bool) -> Tensor:
    """Weights [from, to], in three parts if what they are multiplied with is 0 or 1."""
    turned = _square(weight.t())
    return turned if relaxed else exact_parts(turned)


def _square(weight: Tensor) -> Tensor:
    """Weights filled up with zeros."""
    more = _wide(len(weight)) - len(weight)
    padded: Tensor = _plain(nnf.pad(weight, (0, more, 0, more)))
    return padded


def exact_parts(weight: Tensor) -> Tensor:
    """Three bfloat16 tensors [3, …] whose sum is ``weight``, exactly for 0 and 2⁻¹⁰⁹ ≤ |w| < 2¹²⁸ − 2¹²⁰.

    Each takes eight of a float32's 24 bits. A product with 0 or 1 is exact, so tensor cores add the same numbers as
    float32 products do.
    """
    parts, left = [], weight.detach()
    for _ in range(3):
        part = left.to(torch.bfloat16)
        left = left - part.float()
        parts.append(part)
    return torch.stack(parts)


def _sums(by_log: Tensor | None, by_quadratic: Tensor | None, like: Tensor) -> Tensor | None:
    """Gradients of the regulariser's two sums, on the device."""
    if by_log is None and by_quadratic is None:
        return None
    zero = like.new_zeros((), dtype=torch.float32)
    return torch.stack([zero if x is None else x for x in (by_log, by_quadratic)])


def _of_maps(constant: Tensor, like: Tensor) -> Tensor:
    """Return a constant of channels in the shape of maps."""
    return constant.reshape(-1, *(1,) * (like.dim() - 2)) if constant.numel() > 1 else constant


def _of_channels(partial: Tensor | None, constant: Tensor) -> Tensor | None:
    """Return sums of programs and channels in a constant's shape; doubles, because terms of many pixels cancel."""
    if partial is None:
        return None
    total = partial.sum(0, dtype=torch.float64)
    return (total.sum() if constant.numel() == 1 else total).float().reshape(constant.shape)


def _by_weight(grads: Tensor, kept: Tensor) -> Tensor:
    """Return ∂L/∂W = Σ_t ∂L/∂h*[t] ⊗ o[t−1]."""
    return grads.flatten(0, 1).t() @ kept[:-1].flatten(0, 1).float()


def _by_variance(
    by_own: Tensor | None, v_grads: Tensor | None, kept: Tensor, weight_variance: Tensor | None
) -> Tensor | None:
    if weight_variance is None:
        return None
    if weight_variance.dim() < 2:
        return _of_channels(by_own, weight_variance)
    assert v_grads is not None, "variances of single weights need those of neurons"
    return _by_weight(v_grads, kept[:].float().square())


_BYTES = "_axonnx_bytes"


def attach_bytes(spikes: Tensor, found: Tensor) -> None:
    """Keep the bytes of ``spikes`` beside them: what the next layer keeps for its backward pass."""
    setattr(spikes, _BYTES, (found, spikes._version))


def bytes_of(x: Tensor) -> Tensor | None:
    """Return the bytes of spikes, if a pass has made them and nothing has changed the spikes since."""
    found: tuple[Tensor, int] | None = getattr(x, _BYTES, None)
    return None if found is None or found[1] != x._version else found[0]


def leaky_sum(current: Tensor, membrane: Tensor, total: Tensor, decay: Tensor) -> tuple[Tensor, Tensor]:
    """Run the read-out's recurrence over ``current`` [T, …]: the last membrane and sum."""
    h, s = (x.detach().contiguous().clone() for x in (membrane, total))
    count = h.numel()
    launch(triton_kernels.leaky_sum, (-(-count // 256),), _plain(current), h, s, decay, len(current), count, BLOCK=256)
    return h, s
