"""Messages beside event records: JSON objects with a ``type``, and the codes with which a stream ends.

server → client   hello, decision, saved, not_saved, summary, error
client → server   records (binary); advance, ack, save, end (text)
"""

from __future__ import annotations

import json
from typing import Any, Literal, NamedTuple, cast

from axonnx.runtime.streams.decision import Decision

# Codes of RFC 6455, section 7.4.1, and its registry.
DONE, STOPPING, NOT_UNDERSTOOD, MALFORMED, NOT_ALLOWED, TOO_BIG, OUR_FAULT, LATER = (
    *(1000, 1001, 1003, 1007, 1008, 1009, 1011),
    1013,
)
LONGEST_REASON = 123  # bytes of UTF-8 in a close frame
ORDERS = ("advance", "ack", "save", "end")
INT64 = range(-(2**63), 2**63)


class RefusedError(Exception):
    """Ends a stream: the code, a word for the metrics, and the text for the client."""

    def __init__(self, code: int, kind: str, text: str) -> None:
        super().__init__(text)
        self.code, self.kind, self.text = code, kind, text

    @property
    def reason(self) -> str:
        """As much of the text as fits into a close frame."""
        return self.text.encode()[:LONGEST_REASON].decode(errors="ignore")


class NotSavedError(Exception):
    """A session could not be saved; its stream goes on."""


class Order(NamedTuple):
    """A client's request in a text message."""

    type: Literal["advance", "ack", "save", "end"]
    t_us: int = 0
    decisions: int = 0


def message(kind: str, **facts: Any) -> str:
    """Return a JSON object with its type first."""
    return json.dumps({"type": kind, **facts})


def decision_message(decision: Decision, number: int) -> str:
    """Return the JSON that ``axonnx run --json`` prints, with a type and the decision's number."""
    return message("decision", number=number, **decision.as_dict())


def read_order(text: str) -> Order:
    """Parse the request in a text message."""
    try:
        found: Any = json.loads(text)
    except (ValueError, RecursionError):
        raise _not_understood("something that is not JSON") from None
    if not isinstance(found, dict) or found.get("type") not in ORDERS:
        raise _not_understood(
            f"type {found.get('type')!r}" if isinstance(found, dict) else "JSON that is not an object"
        )
    kind, t_us = found["type"], found.get("t_us", 0)
    if kind == "advance" and (type(t_us) is not int or t_us not in INT64 or "t_us" not in found):
        raise _not_understood(f"t_us {found.get('t_us')!r}, which is not a 64-bit number of microseconds")
    count = found.get("decisions", 0)
    if kind == "ack" and (type(count) is not int or count < 0 or "decisions" not in found):
        raise _not_understood(f"decisions {found.get('decisions')!r}, which is not a number of decisions")
    word = cast(Literal["advance", "ack", "save", "end"], kind)
    return Order(word, t_us if kind == "advance" else 0, count if kind == "ack" else 0)


def _not_understood(found: str) -> RefusedError:
    expected = '{"type": "advance", "t_us": N}, {"type": "ack", "decisions": N}, {"type": "save"}, {"type": "end"}'
    return RefusedError(
        NOT_UNDERSTOOD, "message", f"found a text message with {found[:80]}; expected {expected}, or records"
    )
