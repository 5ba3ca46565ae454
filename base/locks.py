"""Locks on files, by which processes keep out of each other's way."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

try:
    import fcntl
except ImportError:  # where there are no such locks, nobody is kept out
    fcntl = None  # type: ignore[assignment]


def try_lock(descriptor: int, wait: bool = False) -> bool:
    """Whether the open file is now ours alone; the system frees it when it is closed, also by the process's end."""
    try:
        if fcntl is not None:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True


@contextmanager
def claimed(path: Path, wait: bool = False) -> Iterator[bool]:
    """Whether what the file ``path`` stands for is ours while the block lasts; who waits gets it in the end.

    The file stays: one that is removed while another process opens it would be locked by both.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        yield try_lock(descriptor, wait)
    finally:
        os.close(descriptor)
