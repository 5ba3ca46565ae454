"""The rows of a run as TensorBoard's scalars, where its package is installed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any


class Board:
    """Writes each numeric column of a row over its epoch."""

    def __init__(self, writer: Any) -> None:
        self.writer = writer

    def add(self, row: Mapping[str, Any]) -> None:
        """One more epoch."""
        for name, value in row.items():
            if isinstance(value, int | float) and name != "epoch":
                self.writer.add_scalar(name, value, row["epoch"])
        self.writer.flush()

    def close(self) -> None:
        """Close the event file."""
        self.writer.close()


def open_board(folder: Path, epochs_done: int) -> Board | None:
    """A board in ``folder`` for the epochs after ``epochs_done``; None where TensorBoard is not installed."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    # What a killed run wrote about later epochs is written again.
    return Board(SummaryWriter(log_dir=str(folder), purge_step=epochs_done + 1))
