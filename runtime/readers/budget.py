"""How much memory this process may still take: a file that cannot fit is refused before memory is asked for."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from axonnx.base.errors import AxonnxError

try:
    import resource
except ImportError:  # a system without such limits
    resource = None  # type: ignore[assignment]

DECODED = 8  # bytes in memory for each byte of a file that is decoded as a whole, at least


def memory_left() -> int | None:
    """Return the bytes that this process can still take: the system's available memory, or less by its own limit."""
    found = []
    with suppress(OSError, ValueError, IndexError):
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        found.append(
            1024 * sum(int(line.split()[1]) for line in lines if line.startswith(("MemAvailable", "SwapFree")))
        )
        most = -1 if resource is None else resource.getrlimit(resource.RLIMIT_AS)[0]
        if most >= 0:  # RLIM_INFINITY is −1
            pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
            found.append(max(0, most - pages * os.sysconf("SC_PAGE_SIZE")))
    return min(found, default=None)


def check_budget(path: Path, wanted: int) -> None:
    """Refuse a file that needs more memory than there is.

    Raises:
        AxonnxError: If ``wanted`` bytes are more than this process can still take.
    """
    left = memory_left()
    if left is not None and wanted > left:
        raise AxonnxError(
            f"{path}: takes {wanted:,} bytes once it is decoded; this process can have {left:,}. Cut the recording, or"
            f" use a machine with more memory"
        )


@contextmanager
def within_memory(path: Path) -> Iterator[None]:
    """Turn a failed request for memory in the block into a refusal of the file."""
    try:
        yield
    except MemoryError as fault:
        size = path.stat().st_size
        raise AxonnxError(
            f"{path}: does not fit into memory: it has {size:,} bytes, and decoded it takes more ({fault}). Cut the"
            f" recording, or use a machine with more memory"
        ) from None
