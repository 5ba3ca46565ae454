"""The native core for training: loading, pointers, threads, and the conventions that its passes share.

**Layout.** A pass reads float32 on a CPU. Time comes first and channels last: ``[T, B, P, C]`` with P the pixels of a
sample, 1 for dense layers. A map has the logical shape ``[T, B, C, H, W]`` that torch knows, in memory that is channels
last (``channels_last`` makes it so).

**Bits.** Spikes are also kept as bits, in int16 tensors ``[T, B, P, W]`` (``[T, B, W]`` of dense layers) with
W = ⌈C / 16⌉ words for each pixel: channel c of a pixel is bit c mod 16 of word ⌊c / 16⌋, and bits beyond C are zero.
A layer that has made them attaches them to its spikes (``attach_bits``); the next one asks ``bits_of``, which packs
them only if they are not there.

**Sums** are float32, each product rounded before it is added, terms in ascending order of inputs, from zero on; then
comes the bias. Inputs that are zero are left out, which changes no bit. So the product by events and the dense one agree,
in every instruction set and for any number of threads.

**Threads** share samples (``share_out``), without the interpreter's lock: ctypes gives it back. What is summed over
samples is written down for each sample and added in their order.
"""

from __future__ import annotations

import ctypes
import logging
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from axonnx import native

log = logging.getLogger(__name__)
WORD = 16  # bits
_WORTH_A_THREAD = 1 << 18  # elements
_BITS = "_axonnx_bits"


class _Attached(NamedTuple):
    """Bits of a tensor, and the version of the tensor that they were made of."""

    bits: Tensor | None
    version: int


@cache
def function(name: str) -> Any:
    """The function ``axonnx_<name>_<instruction set>`` of the core, which returns nothing."""
    core = native.needed_core()
    return core.function(name, None, isa=core.isa)


def covers(*tensors: Tensor | None) -> bool:
    """Whether the core is there and can read these."""
    plain = all(x is None or (x.dtype == torch.float32 and x.device.type == "cpu") for x in tensors)
    return plain and native.core() is not None


def at(tensor: Tensor | None) -> int | None:
    """The address of a tensor that lies in memory without gaps, in the order of its layout."""
    if tensor is None:
        return None
    dense = tensor.is_contiguous() or (tensor.dim() == 4 and tensor.is_contiguous(memory_format=torch.channels_last))
    assert dense or _is_channels_last(tensor), f"shape {list(tensor.shape)}, strides {tensor.stride()}"
    return tensor.data_ptr()


def channels_last(tensor: Tensor) -> Tensor:
    """``tensor`` [T, B, C] or [T, B, C, H, W] in the memory order [T, B, (H, W,) C]; a copy only if it is not so."""
    if tensor.dim() < 5:
        return tensor.contiguous()
    return tensor if _is_channels_last(tensor) else tensor.movedim(2, -1).contiguous().movedim(-1, 2)


def _is_channels_last(tensor: Tensor) -> bool:
    return tensor.dim() > 3 and tensor.movedim(-3, -1).is_contiguous()


def like(tensor: Tensor, dtype: torch.dtype | None = None) -> Tensor:
    """Room for a tensor of this shape, channels last."""
    if tensor.dim() < 5:
        return torch.empty(tensor.shape, dtype=dtype or tensor.dtype)
    return torch.empty_like(tensor.movedim(2, -1), dtype=dtype, memory_format=torch.contiguous_format).movedim(-1, 2)


def words(channels: int) -> int:
    """How many words hold the bits of a pixel."""
    return -(-channels // WORD)


def attach_bits(spikes: Tensor, bits: Tensor) -> None:
    """Keep the bits of ``spikes`` beside them, for the next layer."""
    setattr(spikes, _BITS, _Attached(bits, spikes._version))


def bits_of(x: Tensor) -> Tensor | None:
    """The bits of a tensor [T, B, C] or [T, B, C, H, W], or None where it has other numbers than 0 and 1."""
    found: _Attached | None = getattr(x, _BITS, None)
    if found is None or found.version != x._version:
        found = _Attached(_pack(x), x._version)
        setattr(x, _BITS, found)
    return found.bits


def _pack(x: Tensor) -> Tensor | None:
    """Bits of numbers, or None."""
    last = channels_last(x.detach())
    pixels = last if last.dim() < 5 else last.movedim(2, -1)
    channels = pixels.shape[-1]
    rows = pixels.numel() // max(1, channels)
    bits = torch.empty((*pixels.shape[:-1], words(channels)), dtype=torch.int16)
    other = torch.zeros(max(1, rows), dtype=torch.uint8)
    call = function("pack")
    share_out(
        lambda begin, end: call(
            ctypes.c_void_p(pixels.data_ptr()),
            ctypes.c_void_p(bits.data_ptr()),
            ctypes.c_void_p(other.data_ptr()),
            ctypes.c_int64(channels),
            ctypes.c_int64(begin),
            ctypes.c_int64(end),
        ),
        rows,
        x.numel(),
    )
    return None if bool(other.any()) else bits


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="axonnx-training")


def share_out(call: Callable[[int, int], object], count: int, work: int) -> None:
    """``call(begin, end)`` for all of ``count`` parts, by as many threads as torch has where it is worth it."""
    threads = max(1, min(torch.get_num_threads(), count, work // _WORTH_A_THREAD))
    if threads == 1:
        call(0, count)
        return
    ends = [count * k // threads for k in range(threads + 1)]
    waiting = [_pool(threads).submit(call, ends[k], ends[k + 1]) for k in range(1, threads)]
    call(0, ends[1])
    for other in waiting:
        other.result()


@cache
def say_in_torch(what: str) -> None:
    """Log, once for each combination, that it has no pass in the core."""
    log.info("%s: no fused pass, computed by torch", what)


class _Memory:
    """How h* − θ is kept for the backward pass."""

    gaps: torch.dtype = torch.float16


memory = _Memory()


@contextmanager
def gaps_as(dtype: torch.dtype) -> Iterator[None]:
    """Keep h* − θ as ``dtype``, float16 (the default) or float32, while the block lasts.

    Slopes of float16 gaps differ by 1e-3 of their value; gradients of float32 gaps are those of the plain formulas.
    """
    before, memory.gaps = memory.gaps, dtype
    try:
        yield
    finally:
        memory.gaps = before
