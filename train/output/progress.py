"""Batches and epochs of a training as the progress of any long work."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from axonnx.base.progress import Progress


class Epochs:
    """Training as progress: the batches of an epoch are its steps, the row of an epoch its figures."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.epochs, self.batches, self.done, self.first = 0, 0, 0, 0
        self.began, self.under_way = time.monotonic(), False

    def start(self, epochs: int, batches: int, done: int) -> None:
        """Keep how long the run is."""
        self.epochs, self.batches, self.done, self.first = epochs, batches, done, done
        self.began = time.monotonic()

    def batch(self, loss: float, accuracy: float, rate: float) -> None:
        """Count one more step of the epoch."""
        if not self.under_way:
            self.under_way = True
            self.progress.begin(f"epoch {self.done + 1}/{self.epochs}", self.batches)
        self.progress.step(f"loss {loss:.3f}, accuracy {100 * accuracy:.1f} %")

    def epoch(self, row: Mapping[str, Any]) -> None:
        """End the epoch and tell its figures."""
        self.finish()
        self.done += 1
        self.progress.figures(self.line(row), self.done == self.epochs)

    def finish(self) -> None:
        """End an epoch that is under way."""
        if self.under_way:
            self.under_way = False
            self.progress.end()

    def line(self, row: Mapping[str, Any]) -> str:
        """Return the figures of the epoch and the time that is left; at most 80 columns for usual numbers."""
        spent = (time.monotonic() - self.began) / max(self.done - self.first, 1)
        minutes, seconds = divmod(int(spent * (self.epochs - self.done)), 60)
        phase = "" if row["phase"] == "train" else f" {row['phase']}"
        if "test_rmse" in row:
            return (
                f"epoch {self.done}/{self.epochs}{phase}  loss {row['loss']:.4f}  test RMSE {row['test_rmse']:.4g}"
                f"  rate {row['rate']:.3f}  left {minutes}:{seconds:02d}"
            )
        return (
            f"epoch {self.done}/{self.epochs}{phase}  loss {row['loss']:.4f}  train {100 * row['train_accuracy']:.1f} %"
            f"  test {100 * row['test_accuracy']:.1f} %  rate {row['rate']:.3f}  left {minutes}:{seconds:02d}"
        )
