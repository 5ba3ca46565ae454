"""The native core for training: loading, pointers, threads, and the conventions that its passes share.

**Layout.** A pass reads float32 on a CPU. Time comes first and channels last: ``[T, B, P, C]`` with P the pixels of a
sample, 1 for dense layers. A map has the logical shape ``[T, B, C, H, W]`` that torch knows, in memory that is channels
last (``channels_last`` makes it so).

**Bits.** Spikes are also kept as bits, in int16 tensors ``[T, B, P, W]`` (``[T, B, W]`` of dense layers) with
W = ⌈C / 16⌉ words for each pixel: channel c of a pixel is bit c mod 16 of word ⌊c / 16⌋, and bits beyond C are zero.
A layer that has made them attaches them to its spikes (``attach_bits``); the next one asks ``bits_of``, which packs
them only if they are not there.

**Sums** are float32, each product rounded before it is added, terms in ascending order of inputs, from zero on; then
comes the bias. Inputs that are zero are left out, which changes no bit. So the product by events and the dense one
agree, in every instruction set and for any number of threads.

**Threads** share samples (``share_out``), without the interpreter's lock: ctypes gives it back. What is summed over
samples is written down for each sample and added in their order. Torch's own threads spin for a while when they have
nothing to do, and then the core's have no processor: ``OMP_WAIT_POLICY=PASSIVE``, set before torch is loaded (the
command line does it), makes them sleep.
"""

from __future__ import annotations

import ctypes
import logging
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from axonnx import native
from axonnx.models.fast.backend import native_wanted

log = logging.getLogger(__name__)
WORD = 16  # bits
_WORTH_A_THREAD = 1 << 18  # elements
_BITS, _AGAIN = "_axonnx_bits", "_axonnx_again"


class Active(NamedTuple):
    """Which elements of a tensor are not zero, as bits; whether all of them are 1; and how many there are."""

    bits: Tensor
    binary: bool
    number: int

    def density(self, elements: int) -> float:
        """Return the share of elements that are not zero."""
        return self.number / max(1, elements)


class _Attached(NamedTuple):
    """Bits of a tensor, and the version of the tensor that they were made of."""

    active: Active
    version: int


@cache
def _function(name: str) -> Any:
    core = native.needed_core()
    return core.function(name, None, isa=core.isa)


def call(name: str, *arguments: Any) -> None:
    """Call ``axonnx_<name>_<instruction set>``: tensors go as addresses, whole numbers as int64, floats as float32."""
    _function(name)(*map(_argument, arguments))


def _argument(value: Any) -> Any:
    if value is None or isinstance(value, Tensor):
        return ctypes.c_void_p(at(value))
    if isinstance(value, int):
        return ctypes.c_int64(value)
    if isinstance(value, ctypes.Structure):
        return ctypes.byref(value)
    return ctypes.c_float(value) if isinstance(value, float) else value


class Arguments(ctypes.Structure):
    """A C struct. Tensors are given as they are, and live as long as the struct."""

    def __init__(self, **values: Any) -> None:
        self.kept = values
        super().__init__(**{name: at(x) if isinstance(x, Tensor) else x for name, x in values.items() if x is not None})


def fields(pointers: str, wholes: str = "", floats: str = "", **structs: Any) -> list[tuple[str, Any]]:
    """Fields of an ``Arguments`` by their kinds, in this order, behind the ``structs`` that it begins with.

    Each kind is a list of names. The seed of noise has no sign.
    """
    whole = [(name, ctypes.c_uint64 if name == "seed" else ctypes.c_int64) for name in wholes.split()]
    addresses = [(name, ctypes.c_void_p) for name in pointers.split()]
    return [*structs.items(), *addresses, *whole, *((name, ctypes.c_float) for name in floats.split())]


def covers(*tensors: Tensor | None) -> bool:
    """Whether the core is there and can read these: float32 on a CPU, and no stand-ins of a graph that is captured."""
    given = [x for x in tensors if x is not None]
    if torch.compiler.is_compiling() or any(type(x) not in (Tensor, nn.Parameter) for x in given):
        return False
    if not native_wanted():
        return False
    return all(x.dtype == torch.float32 and x.device.type == "cpu" for x in given) and native.core() is not None


def at(tensor: Tensor | None) -> int | None:
    """Return the address of a tensor that lies in memory without gaps, in the order of its layout."""
    if tensor is None:
        return None
    assert tensor.is_contiguous() or _is_channels_last(tensor), f"shape {list(tensor.shape)}, strides {tensor.stride()}"
    return tensor.data_ptr()


def channels_last(tensor: Tensor) -> Tensor:
    """``tensor`` [(T,) B, C] or [(T,) B, C, H, W] in the memory order [(T,) B, (H, W,) C]; copied only if it is not."""
    if tensor.dim() < 4:
        return tensor.contiguous()
    return tensor if _is_channels_last(tensor) else tensor.movedim(-3, -1).contiguous().movedim(-1, -3)


def _is_channels_last(tensor: Tensor) -> bool:
    return tensor.dim() > 3 and tensor.movedim(-3, -1).is_contiguous()


def like(tensor: Tensor, dtype: torch.dtype | None = None) -> Tensor:
    """Room for a tensor of this shape, channels last."""
    dtype = dtype or tensor.dtype
    if tensor.dim() < 4:
        return torch.empty(tensor.shape, dtype=dtype)
    return torch.empty(tensor.movedim(-3, -1).shape, dtype=dtype).movedim(-1, -3)


def words(channels: int) -> int:
    """How many words hold the bits of a pixel."""
    return -(-channels // WORD)


def attach_bits(spikes: Tensor, bits: Tensor) -> None:
    """Keep the bits of ``spikes`` beside them, for the next layer."""
    setattr(spikes, _BITS, _Attached(Active(bits, True, count(bits)), spikes._version))


def bits_of(x: Tensor) -> Tensor | None:
    """Return the bits of a tensor [T, B, C] or [T, B, C, H, W]; None where it has other numbers than 0 and 1."""
    active = active_of(x)
    return active.bits if active.binary else None


def active_of(x: Tensor) -> Active:
    """Which elements of a tensor are not zero; packed once for a tensor."""
    found: _Attached | None = getattr(x, _BITS, None)
    if found is None or found.version != x._version:
        found = _Attached(_pack(x), x._version)
        setattr(x, _BITS, found)
    return found.active


def without_time(spikes: Tensor) -> Tensor:
    """Return the only step of ``spikes`` [1, B, …], with the bits that a pass in the core has attached."""
    out, found = spikes[0], getattr(spikes, _BITS, None)
    if found is not None:
        setattr(out, _BITS, _Attached(found.active._replace(bits=found.active.bits[0]), out._version))
    return out


def _pack(x: Tensor) -> Active:
    last = channels_last(x.detach())
    pixels = last if last.dim() < 4 else last.movedim(-3, -1)
    rows, channels = pixels.numel() // max(1, pixels.shape[-1]), pixels.shape[-1]
    bits = torch.empty((*pixels.shape[:-1], words(channels)), dtype=torch.int16)
    other = torch.zeros(rows, dtype=torch.uint8)
    share_out(lambda begin, end: call("pack", pixels, bits, other, channels, begin, end), rows, x.numel())
    return Active(bits, not bool(other.any()), count(bits))


def unpack(bits: Tensor, channels: int) -> Tensor:
    """Numbers [… , channels] of bits [… , words]."""
    out = torch.empty((*bits.shape[:-1], channels))
    rows = out.numel() // max(1, channels)
    share_out(lambda begin, end: call("unpack", bits, out, channels, begin, end), rows, out.numel())
    return out


def count(bits: Tensor) -> int:
    """How many bits are set."""
    found = torch.zeros(1, dtype=torch.int64)
    call("count", bits, bits.numel(), found)
    return int(found)


@cache
def _pool(threads: int, process: int) -> ThreadPoolExecutor:
    """Threads of this process: a child that was forked has none of its parent's."""
    return ThreadPoolExecutor(threads, thread_name_prefix="axonnx-training")


def share_out(call: Callable[[int, int], object], count: int, work: int, pieces: int = 1) -> None:
    """``call(begin, end)`` for all of ``count`` parts, by as many threads as torch has where it is worth it.

    With several ``pieces`` for each thread, one that is done takes the next: parts of later steps have more spikes.
    """
    threads = max(1, min(torch.get_num_threads(), count, work // _WORTH_A_THREAD))
    if threads == 1:
        call(0, count)
        return
    ranges = min(count, threads * pieces)
    left = iter([(count * k // ranges, count * (k + 1) // ranges) for k in range(ranges)])

    def take() -> None:
        for begin, end in left:
            call(begin, end)

    waiting = [_pool(threads, os.getpid()).submit(take) for _ in range(1, threads)]
    take()
    for other in waiting:
        other.result()


@cache
def say_in_torch(what: str) -> None:
    """Log, once for each combination, that it has no pass in the core."""
    log.info("%s: no fused pass, computed by torch", what)


def attach_again(mean: Tensor, compute: Callable[[], Tensor]) -> None:
    """Keep beside ``mean``, the product of a synapse, how to compute it again from the bits of its input."""
    if memory.gaps is None:
        setattr(mean, _AGAIN, (compute, mean._version))


def again(mean: Tensor) -> Callable[[], Tensor] | None:
    """Return what computes ``mean`` again; None where nobody can, or where h* − θ is to be kept."""
    compute, version = getattr(mean, _AGAIN, (None, 0))
    return compute if memory.gaps is None and version == mean._version else None


GAPS = {"float16": torch.float16, "float32": torch.float32, "recomputed": None}


class _Memory:
    """How h* − θ is kept for the backward pass; None: not at all where it can be computed again."""

    gaps: torch.dtype | None = torch.float32


memory = _Memory()


@contextmanager
def gaps_as(how: torch.dtype | None) -> Iterator[None]:
    """Keep h* − θ as float32 (the default) or float16, or compute it again (None), while the block lasts.

    Gradients of float32 gaps are those of the plain formulas. Float16 halves what is kept; gradients then differ by
    about 1e-3 of their value, and observed gaps are rounded. A gap that is computed again is float32: the backward pass
    repeats the forward pass of a layer from the bits of its input. That takes a current that comes straight from a
    synapse; the gaps of others, as of residual streams, are kept as float32.
    """
    before, memory.gaps = memory.gaps, how
    try:
        yield
    finally:
        memory.gaps = before
