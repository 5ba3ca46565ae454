"""Where progress goes: to standard error, or nowhere with --quiet."""

from __future__ import annotations

import sys


def to_stderr(line: str) -> None:
    """A line of progress."""
    print(line, file=sys.stderr, flush=True)


def silent(_line: str) -> None:
    """Nothing."""
