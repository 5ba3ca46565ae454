"""Write files and folders atomically, and read files with limits.

A file is written under a temporary name in the same folder, ``.NAME.TOKEN.axonnx.part``, while its writer holds a lock
on it. The remains of a killed process are recognised by that name and by the free lock. Locks also keep apart processes
that share a folder.
"""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from axonnx.base.errors import AxonnxError

try:
    import fcntl

    POSIX = True
except ImportError:
    POSIX = False
try:
    import msvcrt
except ImportError:  # not Windows
    msvcrt = None  # type: ignore[assignment]

PART = ".axonnx.part"
PIECE = 1 << 24  # bytes


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path that replaces ``path`` if the block succeeds, and is deleted if it fails."""
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
        ):  # name the file, not its temporary part
            raise OSError(fault.errno, f"cannot be written ({os.strerror(fault.errno)})", str(final)) from None
        raise
    finally:
        temporary.unlink(missing_ok=True)


def read_at_most(path: str | os.PathLike[str], most: int) -> bytes:
    """Return the contents of a file or of a shell's pipe; refuse devices, named pipes, and more than ``most`` bytes."""
    refuse_device(path)
    with open(path, "rb") as file:
        about = os.fstat(file.fileno())
        _refuse_device(path, about.st_mode)
        data, left = bytearray(), most + 1
        while about.st_size <= most and left > 0 and (piece := file.read(min(left, PIECE))):
            data += piece
            left -= len(piece)
    if about.st_size > most or left == 0:
        raise AxonnxError(f"{os.fspath(path)}: holds more than {most:,} bytes; a valid file is smaller. Check the path")
    return bytes(data)


def refuse_device(path: str | os.PathLike[str]) -> None:
    """Refuse a device, which may be endless, a named pipe, which nobody may ever write to, and a socket.

    A missing file is reported by the code that opens it.
    """
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return
    _refuse_device(path, mode)


def _refuse_device(path: str | os.PathLike[str], mode: int) -> None:
    named = os.path.exists(os.path.realpath(path))  # the pipe of a shell's <(…) has no name, and somebody writes to it
    kinds = {
        "a device": stat.S_ISCHR(mode) or stat.S_ISBLK(mode),
        "a named pipe": stat.S_ISFIFO(mode) and named,
        "a socket": stat.S_ISSOCK(mode),
    }
    for kind, found in kinds.items():
        if found:
            raise AxonnxError(f"{os.fspath(path)}: is {kind}; expected a file")


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write ``text`` to a file atomically."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def remove_leftovers(folder: Path, name: str = "*") -> None:
    """Delete parts of files in ``folder`` (or of the file ``name``) that no living process writes."""
    pattern = f".{name if name == '*' else _literally(name)}.*{PART}"
    for path in folder.glob(pattern):
        with suppress(OSError):
            _remove_unless_locked(path)


def _remove_unless_locked(path: Path) -> None:
    if not POSIX or path.is_symlink() or not path.is_file():
        return
    descriptor = os.open(path, os.O_RDWR)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)  # BlockingIOError if its writer lives
        if os.path.samestat(os.fstat(descriptor), path.stat()):  # the name may be that of a newer part by now
            path.unlink()
    finally:
        os.close(descriptor)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Create the file ``path`` and lock it until the block ends."""
    descriptor = _create(path)
    if not POSIX:  # Windows does not rename a file that is open, so no part counts as left behind there
        os.close(descriptor)
        yield
        return
    try:
        yield
    finally:
        os.close(descriptor)


def _create(path: Path) -> int:
    while True:
        descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_EXCL, 0o666)
        with suppress(OSError):  # a file system without locks: other processes leave such files alone
            try_lock(descriptor, wait=True)  # whoever removes leftovers may hold it for a moment
        if path.exists():
            return descriptor
        os.close(descriptor)  # deleted as left behind in the moment before it was locked


def _literally(name: str) -> str:
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in name)


def write_folder(path: str | os.PathLike[str], files: Mapping[str, str], mark: str) -> Path:
    """Write a folder of text files atomically.

    The files are written to a folder beside it, which then takes its place.

    Args:
        path: The folder to make. An existing folder is replaced only if it contains ``mark``.
        files: Texts by file name.
        mark: Name of a file that only generated folders have; other folders are refused.

    Returns:
        The path of the folder.

    Raises:
        AxonnxError: If the folder cannot be made, or holds other things.
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
        raise AxonnxError(f"{final}: is the current folder; give a new one, e.g. {final / 'out'}")
    if not final.resolve().parent.is_dir():
        raise AxonnxError(f"{final}: its parent folder {final.resolve().parent} does not exist; make it first")
    if final.exists() and not final.is_dir():
        raise AxonnxError(f"{final}: is a file; expected a folder")
    if final.is_dir() and any(final.iterdir()) and not (final / mark).is_file():
        raise AxonnxError(f"{final}: is a folder with other contents, which would be lost; give a new folder")


def _take_place(temporary: Path, final: Path) -> None:
    """Move the old folder aside first, because a folder with files cannot be replaced in one step."""
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
    """Return whether this process has now locked the open file; closing it, or the end of the process, unlocks it."""
    try:
        if POSIX:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        elif msvcrt is not None:
            _lock_first_byte(descriptor, wait)
    except (BlockingIOError, PermissionError):
        return False
    return True


def _lock_first_byte(descriptor: int, wait: bool) -> None:
    """Lock as Windows does: a range of bytes, and a wait that gives up after ten seconds."""
    while True:
        try:
            os.lseek(descriptor, 0, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
            return
        except OSError as fault:
            if not wait or fault.errno != errno.EDEADLK:
                raise


@contextmanager
def claimed(path: Path, wait: bool = False) -> Iterator[bool]:
    """Yield whether this process holds the lock ``path`` while the block lasts; with ``wait`` it waits for the lock.

    A folder is locked itself; Windows cannot open folders, so a file in it is locked there. The file stays: if it were
    deleted while another process opens it, both would hold a lock.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir() and POSIX:
        descriptor = os.open(path, os.O_RDONLY)
    else:
        descriptor = os.open(path / ".lock" if path.is_dir() else path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        yield try_lock(descriptor, wait)
    finally:
        os.close(descriptor)


BLOCK = 1 << 22


def sha256_of(path: str | Path) -> str:
    """Return the sha256 of a file's contents."""
    return _hashed(Path(path)).hexdigest()


def sha256_of_files(paths: Iterable[Path], root: Path) -> str:
    """Return the sha256 of several files: of their paths below ``root`` and their contents, sorted by path."""
    state = hashlib.sha256()
    for place, path in sorted((path.relative_to(root).as_posix(), path) for path in paths):
        state.update(f"{place}\n".encode() + _hashed(path).digest())
    return state.hexdigest()


def _hashed(path: Path) -> hashlib._Hash:
    state = hashlib.sha256()
    refuse_device(path)
    try:
        with path.open("rb") as file:
            while block := file.read(BLOCK):
                state.update(block)
    except OSError as fault:
        raise AxonnxError(f"{path}: cannot be read: {fault.strerror or fault}") from None
    return state
