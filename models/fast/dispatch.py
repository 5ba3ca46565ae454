"""Compiled kernels, where there are any: numba is an extra, and they know float32 on a CPU."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib import import_module
from types import ModuleType

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Floats = NDArray[np.float32]
_WORTH_A_THREAD = 1 << 18  # elements


@cache
def compiled(name: str) -> ModuleType | None:
    """The kernels of module ``name``, or None where numba is not installed."""
    try:
        return import_module(f"axonnx.models.fast.{name}")
    except ModuleNotFoundError as missing:
        if missing.name != "numba":
            raise
        return None


def cover(*tensors: Tensor | None) -> bool:
    """Whether kernels can read these."""
    return all(x is None or (x.dtype == torch.float32 and x.device.type == "cpu") for x in tensors)


def array(tensor: Tensor) -> Floats:
    """The numbers of a tensor, in their place where they lie in order."""
    numbers: Floats = tensor.detach().contiguous().numpy()
    return numbers


def share_out(call: Callable[[int, int], None], count: int, work: int) -> None:
    """``call(begin, end)`` for all of ``count`` parts, by as many threads as torch has where it is worth it."""
    threads = max(1, min(torch.get_num_threads(), count, work // _WORTH_A_THREAD))
    if threads == 1:
        call(0, count)
        return
    ends = [count * k // threads for k in range(threads + 1)]
    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(call, ends[:-1], ends[1:]):
            pass
