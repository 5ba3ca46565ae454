"""The numbered decisions of a stream, kept until its client acknowledges them.

Decision number n is the one after n others, over all connections of a session. The client says how many it has, when it
connects (``?decisions=N``) and later (``ack``). What it does not have is saved with the session, and sent again after a
resume. What it has already, because it was told before the server died, is computed again and not sent.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

from axonnx.runtime.serve.messages import NOT_ALLOWED, NotSavedError, RefusedError

KEPT_BYTES = 2**18  # of decisions that are not acknowledged


class Outbox:
    """Decisions on their way to a client.

    Args:
        keeps: Whether sessions are saved; if not, nothing is kept.

    Attributes:
        first: Number of the oldest decision that is kept.
        has: How many decisions the client has, by its own words.
        acknowledges: Whether the client says what it has. Of others, only the newest decisions are kept.
    """

    def __init__(self, keeps: bool) -> None:
        self.keeps, self.first, self.has, self.acknowledges = keeps, 0, 0, False
        self._texts: deque[str] = deque()
        self._bytes = 0
        self._warnings: dict[int, str] = {}  # by the number of the decision that follows

    @property
    def next(self) -> int:
        """Number of the next decision."""
        return self.first + len(self._texts)

    def add(self, text: str) -> bool:
        """Keep the next decision, and return whether the client needs it."""
        needed = self.next >= self.has
        self._texts.append(text)
        self._bytes += len(text)
        while self._texts and (not self.keeps or self._bytes > KEPT_BYTES or self.first < self.has):
            self._drop()
        return needed

    def add_warning(self, text: str) -> bool:
        """Keep a warning that comes before the next decision, and return whether the client needs it.

        It is kept as long as that decision. If nothing was decided since the last warning, it replaces that one.
        """
        self._warnings[self.next] = text
        return self.next >= self.has

    def acknowledge(self, count: int) -> None:
        """Forget the first ``count`` decisions: the client has them."""
        if count > max(self.next, self.has):
            raise RefusedError(
                NOT_ALLOWED, "ack", f"{count} decisions are acknowledged, but only {self.next} were made"
            )
        self.acknowledges, self.has = True, max(self.has, count)
        while self._texts and self.first < self.has:
            self._drop()

    def resume(self, count: int) -> list[str]:
        """Return what a client with the first ``count`` decisions does not have: decisions, and warnings among them."""
        if count < self.first:
            raise RefusedError(
                NOT_ALLOWED, "session", f"decisions {count} to {self.first - 1} are no longer kept; begin a new session"
            )
        self.has = count
        self.acknowledge(count)
        texts = zip(range(self.first, self.next + 1), [*self._texts, None], strict=True)
        ordered = [each for number, text in texts for each in (self._warnings.get(number), text) if number >= count]
        return [text for text in ordered if text is not None]

    def state(self) -> dict[str, Any]:
        """Return what is saved with the session.

        Raises:
            NotSavedError: If decisions that the client does not have had to be forgotten.
        """
        if self.acknowledges and self.first > self.has:
            raise NotSavedError(
                f"more than {KEPT_BYTES >> 10} KiB of decisions are not acknowledged; acknowledge, then save again"
            )
        return {
            "first": self.first,
            "decisions": list(self._texts),
            "warnings": [list(each) for each in self._warnings.items()],
        }

    def restore(self, saved: Mapping[str, Any], decisions: int) -> None:
        """Continue from a saved state after so many decisions."""
        first, texts = saved.get("first", decisions), saved.get("decisions", [])
        if type(first) is not int or not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise ValueError("another layout")
        if first < 0 or first + len(texts) != decisions:
            raise ValueError(f"decisions {first} to {first + len(texts)} are kept, but {decisions} were made")
        warnings = saved.get("warnings", [])
        if not isinstance(warnings, list) or not all(_is_warning(each, first, decisions) for each in warnings):
            raise ValueError("another layout of warnings")
        self.first, self._texts, self._bytes = first, deque(texts), sum(map(len, texts))
        self._warnings = dict(warnings)

    def _drop(self) -> None:
        self._bytes -= len(self._texts.popleft())
        self._warnings.pop(self.first, None)
        self.first += 1


def _is_warning(each: object, first: int, decisions: int) -> bool:
    if not (isinstance(each, list) and len(each) == 2):
        return False
    number, text = each
    return type(number) is int and first <= number <= decisions and isinstance(text, str)
