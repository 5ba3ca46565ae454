"""Numbers on the command line."""

from __future__ import annotations

import argparse
from typing import Literal


def from_zero(text: str) -> int:
    """A whole number that is not negative."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r}; expected a whole number from 0 on")
    return int(text)


def from_one(text: str) -> int:
    """A whole number that is positive."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}; expected a whole number from 1 on")
    return int(text)


def origin(text: str) -> int | Literal["first"]:
    """Where time begins: at the first event, or at so many microseconds."""
    if text == "first":
        return "first"
    try:
        number: int | None = int(text)
    except ValueError:
        number = None
    if number is None or not -(2**63) <= number < 2**63:
        raise argparse.ArgumentTypeError(f"{text!r}; expected first, or microseconds of 64 bits")
    return number
