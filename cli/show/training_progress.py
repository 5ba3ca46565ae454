"""What a person sees while a run goes on: a live bar on a terminal, plain lines elsewhere. All on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import Any, TextIO

from axonnx.train.output.progress import Progress, Silent


class Warnings(Silent):
    """Warnings alone."""

    def note(self, line: str) -> None:
        """Print it where it is a warning."""
        if line.startswith("warning"):
            print(f"axonnx train: {line}", file=sys.stderr)


class Lines(Silent):
    """One line for each epoch."""

    def __init__(self, out: TextIO | None = None) -> None:
        self.out = out or sys.stderr
        self.epochs = 0
        self.done = 0
        self.began = time.monotonic()
        self.first = 0

    def note(self, line: str) -> None:
        """Print it."""
        print(f"axonnx train: {line}", file=self.out)

    def start(self, epochs: int, batches: int, done: int) -> None:
        """Remember how long the way is."""
        self.epochs, self.done, self.first, self.began = epochs, done, done, time.monotonic()

    def epoch(self, row: Mapping[str, Any]) -> None:
        """Print it."""
        self.done += 1
        print(self.line(row), file=self.out, flush=True)

    def line(self, row: Mapping[str, Any]) -> str:
        """The epoch's figures and the remaining time."""
        spent = (time.monotonic() - self.began) / max(self.done - self.first, 1)
        phase = "" if row["phase"] == "train" else f" {row['phase']}"
        return (
            f"epoch {self.done}/{self.epochs}{phase}  loss {row['loss']:.4f}  train {100 * row['train_accuracy']:.1f} %"
            f"  test {100 * row['test_accuracy']:.1f} %  rate {row['rate']:.3f}"
            f"  waiting {100 * row['waiting']:.1f} %  {row['seconds']:.1f} s"
            f"  left {_minutes(spent * (self.epochs - self.done))}"
        )


class Bar(Lines):
    """A bar for the batches of the running epoch, and a line for each finished one."""

    def __init__(self, out: TextIO | None = None) -> None:
        super().__init__(out)
        self.batches = 0
        self.bar: Any = None

    def start(self, epochs: int, batches: int, done: int) -> None:
        """Remember how long the way is."""
        super().start(epochs, batches, done)
        self.batches = batches

    def batch(self, loss: float, accuracy: float, rate: float) -> None:
        """Move the bar."""
        if self.bar is None:
            from tqdm import tqdm

            name = f"epoch {self.done + 1}/{self.epochs}"
            self.bar = tqdm(total=self.batches, desc=name, file=self.out, leave=False, dynamic_ncols=True)
        self.bar.set_postfix_str(f"loss {loss:.3f}, accuracy {100 * accuracy:.1f} %, rate {rate:.3f}", refresh=False)
        self.bar.update()

    def epoch(self, row: Mapping[str, Any]) -> None:
        """Close the bar and print the line."""
        self.finish()
        super().epoch(row)

    def finish(self) -> None:
        """Leave the terminal clean."""
        if self.bar is not None:
            self.bar.close()
            self.bar = None


def for_terminal(out: TextIO | None = None) -> Progress:
    """A bar where a person watches, lines where output is kept."""
    return Bar(out) if (out or sys.stderr).isatty() else Lines(out)


def _minutes(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"
