"""Engines compute in the default floating-point mode, whatever mode the process has set.

A processor can flush denormal numbers to zero; ``torch.set_flush_denormal(True)`` turns that on. A membrane that decays
through a long silence would then have other bits, without a word. Compilers and libraries do not undo it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache, wraps
from typing import Any, ParamSpec, TypeVar

from axonnx.base.errors import AxonnxError

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
ROOM = 512  # bytes of a C library's fenv_t, which none fills
DEFAULT = ctypes.c_void_p(-1)  # FE_DFL_ENV of glibc and musl
_TINY = 5e-324  # equals zero where denormal numbers are flushed


def in_default_mode(compute: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Run a function with denormal numbers, and set this thread's mode back afterwards.

    Raises:
        AxonnxError: If they are flushed and the C library cannot change that.
    """

    @wraps(compute)
    def computed(*given: Arguments.args, **named: Arguments.kwargs) -> Result:
        if not flushes():
            return compute(*given, **named)
        library, before = _library(), ctypes.create_string_buffer(ROOM)
        library.fegetenv(before)
        library.fesetenv(DEFAULT)
        try:
            if flushes():
                raise AxonnxError(
                    "this process flushes denormal numbers to zero, which changes results; turn that off: "
                    "torch.set_flush_denormal(False)"
                )
            return compute(*given, **named)
        finally:
            library.fesetenv(before)

    return computed


def flushes() -> bool:
    """Return whether this thread takes denormal numbers for zero."""
    return _TINY == 0.0


@cache
def _library() -> Any:
    try:
        found = ctypes.CDLL("libm.so.6")
        found.fegetenv.argtypes, found.fesetenv.argtypes = [ctypes.c_void_p], [ctypes.c_void_p]
    except (OSError, AttributeError):
        raise AxonnxError(
            "this process flushes denormal numbers to zero, and its C library cannot change that; turn it off: "
            "torch.set_flush_denormal(False)"
        ) from None
    return found
