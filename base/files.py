"""Files that are written completely or not at all.

A file grows under a name of its own beside its place, ``.NAME.TOKEN.axonnx.part``, and its writer holds a lock on it.
What a killed process left behind is known by that name and by its lock being free.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # where there are no such locks, nothing is taken for left behind
    fcntl = None  # type: ignore[assignment]

PART = ".axonnx.part"


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary path beside ``path`` that takes its place when the block ends well, and vanishes when not."""
    final = Path(path)
    remove_leftovers(final.parent, final.name)
    temporary = final.with_name(f".{final.name}.{secrets.token_hex(4)}{PART}")
    try:
        with _locked(temporary):
            yield temporary
            with open(temporary, "rb") as written:
                os.fsync(written.fileno())
            os.replace(temporary, final)
    except OSError as fault:
        if (
            str(fault.filename or temporary) == str(temporary) and fault.errno is not None
        ):  # speak of the file, not of its part
            raise OSError(fault.errno, f"cannot be written ({os.strerror(fault.errno)})", str(final)) from None
        raise
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Put ``text`` in the place of whatever ``path`` held."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def remove_leftovers(folder: Path, name: str = "*") -> None:
    """Parts of files in ``folder`` (or of the one called ``name``) that no living process writes."""
    pattern = f".{name if name == '*' else _literally(name)}.*{PART}"
    for path in folder.glob(pattern):
        with suppress(OSError):
            _remove_unless_locked(path)


def _remove_unless_locked(path: Path) -> None:
    if fcntl is None or path.is_symlink() or not path.is_file():
        return
    descriptor = os.open(path, os.O_RDWR)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)  # BlockingIOError where its writer lives
        path.unlink()
    finally:
        os.close(descriptor)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """The new file ``path``, locked until the block ends, however it ends."""
    descriptor = _create(path)
    try:
        yield
    finally:
        os.close(descriptor)


def _create(path: Path) -> int:
    while True:
        descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_EXCL, 0o666)
        if fcntl is not None:
            with suppress(OSError):  # a file system without locks: others leave such files alone
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if path.exists():
            return descriptor
        os.close(descriptor)  # taken for left behind in the moment before it was locked


def _literally(name: str) -> str:
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in name)
