"""Locks on files, by which processes keep out of each other's way."""

from __future__ import annotations

try:
    import fcntl
except ImportError:  # where there are no such locks, nobody is kept out
    fcntl = None  # type: ignore[assignment]


def try_lock(descriptor: int) -> bool:
    """Whether the open file is now ours alone; the system frees it when it is closed, also by the process's end."""
    try:
        if fcntl is not None:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
