"""Files and folders that are written completely or not at all, files read as far as they can be what they should.

A file grows under a name of its own beside its place, ``.NAME.TOKEN.axonnx.part``, and its writer holds a lock on it.
What a killed process left behind is known by that name and by its lock being free. Locks also keep processes that
share a folder out of each other's way.
"""

from __future__ import annotations

import os
import secrets
import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from axonnx.base.errors import AxonnxError

try:
    import fcntl
except ImportError:  # where there are no such locks, nobody is kept out and nothing is taken for left behind
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


def write_folder(path: str | os.PathLike[str], files: Mapping[str, str], mark: str) -> Path:
    """Make the folder ``path`` of texts by their names; one that stands there is replaced where ``mark`` is in it.

    Files grow in a folder beside it, which takes its place when all are written. ``mark`` is the name of a file that
    only generated folders have: a folder with other things in it is refused, not mixed with or emptied.
    """
    final = Path(path)
    _check_place(final, mark)
    temporary = final.with_name(f".{final.name}.{secrets.token_hex(4)}{PART}")
    try:
        for name, text in files.items():
            place = temporary / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, encoding="utf-8", newline="\n")
        _take_place(temporary, final)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return final


def _check_place(final: Path, mark: str) -> None:
    if final.resolve() == Path.cwd().resolve():
        raise AxonnxError(f"{final}: the folder you are in; name a new one to write, e.g. {final / 'out'}")
    if not final.resolve().parent.is_dir():
        raise AxonnxError(f"{final}: there is no folder {final.resolve().parent} to make it in; make that first")
    if final.exists() and not final.is_dir():
        raise AxonnxError(f"{final}: a file; name a folder to write")
    if final.is_dir() and any(final.iterdir()) and not (final / mark).is_file():
        raise AxonnxError(f"{final}: a folder with other things in it, which would be lost; name a new one")


def _take_place(temporary: Path, final: Path) -> None:
    """What stood there moves aside first, for a folder with files in it cannot be replaced in one step."""
    if not final.exists():
        os.replace(temporary, final)
        return
    aside = final.with_name(f".{final.name}.{secrets.token_hex(4)}{PART}")
    os.replace(final, aside)
    try:
        os.replace(temporary, final)
    except OSError:
        os.replace(aside, final)
        raise
    shutil.rmtree(aside)


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
