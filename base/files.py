"""Files that are written completely or not at all, and read as far as they can be what they should.

A file grows under a name of its own beside its place, ``.NAME.TOKEN.axonnx.part``, and its writer holds a lock on it.
What a killed process left behind is known by that name and by its lock being free.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from axonnx.base.errors import AxonnxError

try:
    import fcntl
except ImportError:  # where there are no such locks, nothing is taken for left behind
    fcntl = None  # type: ignore[assignment]

PART = ".axonnx.part"
PIECE = 1 << 24  # bytes


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


def read_at_most(path: str | os.PathLike[str], most: int) -> bytes:
    """All of a file or pipe; a device, which may have no end, and more than ``most`` bytes are refused unread."""
    with open(path, "rb") as file:
        about = os.fstat(file.fileno())
        _refuse_device(path, about.st_mode)
        data, left = bytearray(), most + 1
        while about.st_size <= most and left > 0 and (piece := file.read(min(left, PIECE))):
            data += piece
            left -= len(piece)
    if about.st_size > most or left == 0:
        raise AxonnxError(f"{os.fspath(path)}: holds more than {most:,} bytes, which no such file does")
    return bytes(data)


def refuse_device(path: str | os.PathLike[str]) -> None:
    """A device is no file, and may have no end; what is not there is left to whoever opens it."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return
    _refuse_device(path, mode)


def _refuse_device(path: str | os.PathLike[str], mode: int) -> None:
    if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
        raise AxonnxError(f"{os.fspath(path)}: is a device; expected a file")


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
