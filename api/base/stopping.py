"""End a command in good order when SIGINT, SIGTERM or SIGHUP asks for it.

The first signal raises ``EndedError`` wherever the main thread stands. Code that must first account for what it has
read (a live source) defers it: it asks ``requested()`` between two reads. A second signal always interrupts.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, SimpleNamespace

SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
_state = SimpleNamespace(number=0, deferrals=0)


class EndedError(KeyboardInterrupt):
    """A signal ended the command. Its notes say what is kept and how to continue."""


@contextmanager
def signals_handled() -> Iterator[None]:
    """Handle the signals while the block lasts; those that the caller ignores (nohup) stay ignored."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in SIGNALS}
    before = {number: handler for number, handler in before.items() if handler not in (None, signal.SIG_IGN)}
    for number in before:
        signal.signal(number, _handle)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if _handle not in before.values():  # the outermost block
            _state.number = 0


def requested() -> int:
    """Return the number of the signal that asked this command to end, or 0."""
    return int(_state.number)


@contextmanager
def deferred() -> Iterator[None]:
    """Let a first signal wait until the block has ended or has seen it in ``requested()``."""
    _state.deferrals += 1
    try:
        yield
    finally:
        _state.deferrals -= 1


def _handle(number: int, frame: FrameType | None) -> None:
    again, _state.number = _state.number, number
    if again or not _state.deferrals:
        raise EndedError(signal.Signals(number).name)
