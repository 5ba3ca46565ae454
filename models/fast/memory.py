"""What malloc does with the memory that a training step frees."""

from functools import cache

import torch

_LARGEST = (32 << 20) - (1 << 16)  # the largest block, in bytes, that glibc learns from


@cache
def keep_freed_memory() -> None:
    """Let the process keep 64 MiB that a training step frees and the next one takes again, instead of returning them.

    Pages that come back from the system have to be cleared, which is up to a tenth of a training step. glibc keeps
    twice the largest block that it has mapped and freed; so it is given one. Elsewhere this does nothing.
    """
    torch.empty(_LARGEST, dtype=torch.uint8)
