"""What goes over the wire beside event records: JSON objects with a ``type``, and the codes that a stream ends with.

server → client   hello, decision, saved, summary, error
client → server   records (binary); advance, save, end (text)
"""

from __future__ import annotations

import json
from typing import Any, Literal, NamedTuple, cast

from axonnx.runtime.streams.decision import Decision

# Codes of RFC 6455, section 7.4.1 and its registry.
DONE, STOPPING, NOT_UNDERSTOOD, MALFORMED, NOT_ALLOWED, TOO_BIG, OUR_FAULT, LATER = (
    *(1000, 1001, 1003, 1007, 1008, 1009, 1011),
    1013,
)
LONGEST_REASON = 123  # bytes of UTF-8 in a close frame
ORDERS = ("advance", "save", "end")
INT64 = range(-(2**63), 2**63)


class RefusedError(Exception):
    """A stream that ends here: the code, a word for the metrics, and what to tell the client."""

    def __init__(self, code: int, kind: str, text: str) -> None:
        super().__init__(text)
        self.code, self.kind, self.text = code, kind, text

    @property
    def reason(self) -> str:
        """As much of the text as a close frame holds."""
        return self.text.encode()[:LONGEST_REASON].decode(errors="ignore")


class Order(NamedTuple):
    """What a client asks for in words."""

    type: Literal["advance", "save", "end"]
    t_us: int = 0


def message(kind: str, **facts: Any) -> str:
    """Return a JSON object with its type first."""
    return json.dumps({"type": kind, **facts})


def decision_message(decision: Decision) -> str:
    """As ``axonnx run --json`` prints it, with a type."""
    return message("decision", **decision.as_dict())


def read_order(text: str) -> Order:
    """Return the order that a text message holds."""
    try:
        found: Any = json.loads(text)
    except (ValueError, RecursionError):
        raise _not_understood("no JSON") from None
    if not isinstance(found, dict) or found.get("type") not in ORDERS:
        raise _not_understood(f"type {found.get('type')!r}" if isinstance(found, dict) else "no object")
    kind, t_us = found["type"], found.get("t_us", 0)
    if kind == "advance" and (type(t_us) is not int or t_us not in INT64 or "t_us" not in found):
        raise _not_understood(f"t_us {found.get('t_us')!r}, not microseconds of 64 bits")
    return Order(cast(Literal["advance", "save", "end"], kind), t_us if kind == "advance" else 0)


def _not_understood(found: str) -> RefusedError:
    expected = '{"type": "advance", "t_us": N}, {"type": "save"}, {"type": "end"}, or binary records'
    return RefusedError(NOT_UNDERSTOOD, "message", f"a text message with {found[:80]}; expected {expected}")
