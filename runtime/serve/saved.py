"""Sessions on disk: one file each, with the secret name that its client uses to resume it."""

from __future__ import annotations

import re
import secrets
from pathlib import Path

from axonnx.base.errors import AxonnxError
from axonnx.runtime.serve.messages import LATER, NOT_ALLOWED, RefusedError
from axonnx.runtime.streams.session_state import SessionState

KEY = re.compile(r"[A-Za-z0-9_-]{22}")  # 128 bits, and no character that could lead out of the folder
SUFFIX = ".npz"


class SavedSessions:
    """A folder with at most ``most`` sessions. Without a folder nothing is saved."""

    def __init__(self, folder: Path | None, most: int) -> None:
        self.folder, self.most = folder, most
        if folder is not None:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def new_key(self) -> str:
        """Return a name that nobody can guess."""
        return secrets.token_urlsafe(16)

    def count(self) -> int:
        """Return the number of sessions that can be resumed."""
        return 0 if self.folder is None else sum(1 for _ in self.folder.glob(f"*{SUFFIX}"))

    def write(self, key: str, state: SessionState) -> None:
        """Save a session, and replace an earlier state of it."""
        path = self._path(key)
        if not path.exists() and self.count() >= self.most:
            raise RefusedError(
                LATER, "saved", f"{self.most} sessions are saved already, the most that this server keeps"
            )
        state.write(path)

    def read(self, key: str) -> SessionState:
        """Read a saved session."""
        path = self._path(key)
        if not path.is_file():
            raise RefusedError(NOT_ALLOWED, "session", "this session is not saved here; begin a new one")
        try:
            return SessionState.read(path)
        except AxonnxError:
            raise RefusedError(NOT_ALLOWED, "session", "the saved session is damaged; begin a new one") from None

    def remove(self, key: str) -> None:
        """Delete a session that has ended."""
        if self.folder is not None:
            self._path(key).unlink(missing_ok=True)

    def _path(self, key: str) -> Path:
        if self.folder is None:
            raise RefusedError(
                NOT_ALLOWED, "session", "this server saves no sessions because it has no folder for them"
            )
        if not KEY.fullmatch(key):
            raise RefusedError(NOT_ALLOWED, "session", "this is not a name of a session; expected the one in hello")
        return self.folder / f"{key}{SUFFIX}"
