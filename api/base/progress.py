"""Progress of long work, and its end in good order if a signal asks for it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType, SimpleNamespace
from typing import Any


class Progress:
    """Hear how far long work is; this one stays silent. Derive from it to show, log or count."""

    def note(self, line: str) -> None:
        """Take a line that is worth keeping."""

    def figures(self, line: str, last: bool = False) -> None:
        """Take figures of the work so far, which the next ones replace; the ``last`` ones stay."""

    def begin(self, name: str, total: int, done: int = 0) -> None:
        """Take the name of work in ``total`` steps, of which ``done`` were done earlier."""

    def step(self, text: str = "", fresh: bool = True) -> None:
        """Take one more step; ``fresh`` is False if it was done earlier and took no time now."""

    def end(self) -> None:
        """Take the end of the work that began last."""

    def watch(self, name: str) -> Callable[[int, Iterable[Any]], Iterator[Any]]:
        """Return what counts the outcomes of jobs as they come, and hands them on."""

        def watched(total: int, outcomes: Iterable[Any]) -> Iterator[Any]:
            self.begin(name, total)
            for outcome in outcomes:
                if outcome.fault is not None:
                    self.note(f"{name}: {outcome.name} failed: {outcome.fault}")
                self.step()
                yield outcome
            self.end()

        return watched


SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
_state = SimpleNamespace(number=0, deferrals=0)


class EndedError(KeyboardInterrupt):
    """A signal ended the command. Its notes say what is kept and how to continue.

    The first signal raises ``EndedError`` wherever the main thread stands. Code that must first account for what it has
    read (a live source) defers it: it asks ``requested()`` between two reads. A second signal always interrupts.
    """


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
