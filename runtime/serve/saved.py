"""Sessions on disk: one file each, with the secret name that its client uses to resume it.

Beside each stands a lock that holds the session's generation. Every resume begins a new generation, and a server with
an older one can no longer write: not even one that still believes in its broken connection, on another machine.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile

from axonnx.base.errors import AxonnxError
from axonnx.base.files import try_lock
from axonnx.runtime.serve.messages import LATER, NOT_ALLOWED, NotSavedError, RefusedError
from axonnx.runtime.streams.session_state import SessionState

KEY = re.compile(r"[A-Za-z0-9_-]{22}")  # 128 bits, and no character that could lead out of the folder
SUFFIX, LOCK = ".npz", ".lock"
DIGITS = 20  # of a generation
FENCE_S = 86_400.0  # time that the lock of an ended session keeps older writers out


class SavedSessions:
    """A folder with at most ``most`` sessions. Without a folder nothing is saved."""

    def __init__(self, folder: Path | None, most: int) -> None:
        self.folder, self.most = folder, most
        if folder is not None:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with NamedTemporaryFile(dir=folder, prefix=".") as now:  # the folder's clock: those of machines may differ
                oldest = os.stat(now.fileno()).st_mtime - FENCE_S
            for lock in folder.glob(f".*{LOCK}"):
                ended = not folder.joinpath(lock.stem[1:] + SUFFIX).exists()
                if ended and lock.stat().st_mtime < oldest:
                    lock.unlink(missing_ok=True)

    def new_key(self) -> str:
        """Return a name that nobody can guess."""
        return secrets.token_urlsafe(16)

    def count(self) -> int:
        """Return the number of sessions that can be resumed."""
        return 0 if self.folder is None else sum(1 for _ in self.folder.glob(f"*{SUFFIX}"))

    def write(self, key: str, state: SessionState, generation: int = 1) -> None:
        """Save a session, and replace an earlier state of it.

        Raises:
            RefusedError: If the session was resumed by another connection meanwhile.
            NotSavedError: If there is no room for it.
        """
        path = self._path(key)
        if not path.exists() and self.count() >= self.most:
            raise NotSavedError(f"{self.most} sessions are saved already, the most that this server keeps")
        try:
            with _generation(path) as (current, put):
                _refuse_older(generation, current)
                state.write(path)
                put(generation)
        except OSError as fault:
            raise NotSavedError(fault.strerror or str(fault)) from None

    def take_over(self, key: str, use: Callable[[SessionState], None]) -> int:
        """Read a saved session into a stream, and return its new generation; older writers are kept out from now on."""
        path = self._path(key)
        if not path.is_file():
            ended = _lock_of(path).exists() and _lock_of(path).stat().st_size > 0
            text = "has ended, and its client acknowledged all decisions" if ended else "is not saved here"
            raise RefusedError(NOT_ALLOWED, "session", f"this session {text}; begin a new one")
        try:
            with _generation(path) as (current, put):
                try:
                    state = SessionState.read(path)
                except AxonnxError:
                    raise RefusedError(
                        NOT_ALLOWED, "session", "the saved session is damaged; begin a new one"
                    ) from None
                use(state)
                put(current + 1)
        except OSError as fault:
            text = f"the session cannot be continued now ({fault.strerror or fault}); try again later"
            raise RefusedError(LATER, "session", text) from None
        return current + 1

    def remove(self, key: str, generation: int = 1) -> None:
        """Delete a session that has ended.

        Raises:
            RefusedError: If the session was resumed by another connection meanwhile.
            NotSavedError: If the disk does not allow it.
        """
        if self.folder is None or not _lock_of(self._path(key)).exists():
            return
        try:
            with _generation(self._path(key)) as (current, _):
                _refuse_older(generation, current)
                self._path(key).unlink(missing_ok=True)
        except OSError as fault:
            raise NotSavedError(fault.strerror or str(fault)) from None

    def _path(self, key: str) -> Path:
        if self.folder is None:
            raise RefusedError(
                NOT_ALLOWED, "session", "this server saves no sessions because it has no folder for them"
            )
        if not KEY.fullmatch(key):
            raise RefusedError(NOT_ALLOWED, "session", "this is not a name of a session; expected the one in hello")
        return self.folder / f"{key}{SUFFIX}"


def _refuse_older(generation: int, current: int) -> None:
    if current > generation:
        raise RefusedError(NOT_ALLOWED, "fenced", "this session continues on another connection; this one ends")


def _lock_of(path: Path) -> Path:
    return path.with_name(f".{path.stem}{LOCK}")


@contextmanager
def _generation(path: Path) -> Iterator[tuple[int, Callable[[int], None]]]:
    """Lock a session, and yield its generation (0 if it has none yet) and a function that sets it."""
    descriptor = os.open(_lock_of(path), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try_lock(descriptor, wait=True)
        text = os.pread(descriptor, DIGITS, 0)
        yield int(text) if text.isdigit() else 0, lambda number: _put(descriptor, number)
    finally:
        os.close(descriptor)


def _put(descriptor: int, number: int) -> None:
    os.pwrite(descriptor, b"%0*d" % (DIGITS, number), 0)
    os.fsync(descriptor)
