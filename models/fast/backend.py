"""Which implementation computes: the native core, Triton kernels, or plain torch.

``auto`` takes the native core for float32 on a CPU, Triton kernels on a GPU, and torch for everything else. All three
give the same spikes; what a named implementation has no pass for runs in torch, and is named once in the log.
"""

from __future__ import annotations

import importlib.util
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Literal, get_args

import torch
from torch import Tensor

from axonnx.base.errors import AxonnxError

Backend = Literal["auto", "native", "triton", "torch"]
log = logging.getLogger(__name__)


class _Chosen:
    name: Backend = "auto"


@contextmanager
def computed_by(name: Backend) -> Iterator[None]:
    """Let ``name`` compute while the block lasts."""
    if name not in get_args(Backend):
        raise AxonnxError(f"backend is {name!r}; known are {', '.join(get_args(Backend))}")
    before, _Chosen.name = _Chosen.name, name
    try:
        yield
    finally:
        _Chosen.name = before


def check_backend(name: Backend, device: torch.device) -> None:
    """Refuse an implementation that cannot compute on this device, and say so in the log if a GPU has no kernels."""
    if name == "native" and device.type != "cpu":
        raise AxonnxError(f"backend 'native' computes on a CPU, but the device is {device}. Set backend = 'auto'")
    if name == "triton" and not _has_triton():
        raise AxonnxError("backend 'triton' needs Triton: pip install 'axonnx[gpu]'")
    if name == "triton" and device.type == "cpu" and not interpreted():
        raise AxonnxError(
            "backend 'triton' computes on a GPU, but the device is cpu. Set backend = 'auto'; the environment variable "
            "TRITON_INTERPRET=1 lets Triton's interpreter compute here, some thousand times slower"
        )
    if name == "auto" and device.type == "cuda" and not _has_triton():
        log.warning(
            "Triton is not installed: neurons on %s are computed step by step. pip install 'axonnx[gpu]'", device
        )


def native_wanted() -> bool:
    """Whether the native core may compute."""
    return _Chosen.name in ("auto", "native")


def triton_wanted(*tensors: Tensor | None) -> bool:
    """Whether Triton kernels are there and are to compute with these tensors: float32 on a GPU, or interpreted."""
    given = [x for x in tensors if x is not None]
    if _Chosen.name not in ("auto", "triton") or torch.compiler.is_compiling():
        return False
    device = "cpu" if _Chosen.name == "triton" and interpreted() else "cuda"
    return all(x.device.type == device and x.dtype == torch.float32 for x in given) and _has_triton()


def interpreted() -> bool:
    """Whether Triton's interpreter runs the kernels, on a CPU."""
    return os.environ.get("TRITON_INTERPRET") == "1"


@cache
def _has_triton() -> bool:
    return importlib.util.find_spec("triton") is not None
