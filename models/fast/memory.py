"""What malloc does with the memory that a training step frees."""

import ctypes
import sys
from functools import cache

_KEPT, _MAPPED = 256 << 20, 32 << 20  # bytes; blocks beyond the second are always the system's again
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # numbers of glibc's malloc.h


@cache
def keep_freed_memory() -> None:
    """Let the process keep 256 MiB that a training step frees and the next one takes again.

    Pages that come back from the system have to be cleared, which is up to a fifth of a training step. This asks glibc;
    elsewhere it does nothing.
    """
    if sys.platform == "linux":
        set_option = getattr(ctypes.CDLL(None), "mallopt", None)
        for option, value in ((_TRIM_THRESHOLD, _KEPT), (_MMAP_THRESHOLD, _MAPPED)):
            if set_option is not None:
                set_option(option, value)
