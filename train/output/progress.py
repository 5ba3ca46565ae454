"""What a person sees while a run goes on: a live bar on a terminal, plain lines elsewhere. All on stderr."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol


class Progress(Protocol):
    """Told about every batch and every epoch."""

    def note(self, line: str) -> None:
        """What is to be known of the data before the first epoch."""

    def start(self, epochs: int, batches: int, done: int) -> None:
        """A run of ``epochs`` epochs of ``batches`` batches, ``done`` of which are behind us."""

    def batch(self, loss: float, accuracy: float, rate: float) -> None:
        """One more batch, with the epoch's running means."""

    def epoch(self, row: Mapping[str, Any]) -> None:
        """One more epoch, with its row of results."""

    def finish(self) -> None:
        """The run is over."""


class Silent:
    """Progress that prints nothing."""

    def note(self, line: str) -> None:
        """Ignored."""

    def start(self, epochs: int, batches: int, done: int) -> None:
        """Ignored."""

    def batch(self, loss: float, accuracy: float, rate: float) -> None:
        """Ignored."""

    def epoch(self, row: Mapping[str, Any]) -> None:
        """Ignored."""

    def finish(self) -> None:
        """Ignored."""
