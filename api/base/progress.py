"""``Progress``: how far long work is. Everything that takes long is given one, and tells it alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
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
