"""What a training shows: its progress while it runs, and a picture of loss, accuracy and firing rates."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from axonnx.base.errors import AxonnxError
from axonnx.base.palette import LIGHT, SERIES, save_figure
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

    def batch(self, loss: float | None = None, accuracy: float = 0.0, rate: float = 0.0) -> None:
        """Count one more step of the epoch; a device that would have to be waited for gives no figures."""
        if not self.under_way:
            self.under_way = True
            self.progress.begin(f"epoch {self.done + 1}/{self.epochs}", self.batches)
        self.progress.step("" if loss is None else f"loss {loss:.3f}, accuracy {100 * accuracy:.1f} %")

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


if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_curves(path: Path, rows: Sequence[dict[str, Any]], title: str) -> None:
    """Write a PNG, if matplotlib is installed."""
    with suppress(AxonnxError):
        save_figure(path, lambda: _figure(rows, title), format="png", dpi=110)


def _figure(rows: Sequence[dict[str, Any]], title: str) -> Figure:
    """Draw loss, accuracy and the firing rates of the layers; of many layers, ``SERIES`` from the first to the last."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 3.2), layout="constrained")
    figure.suptitle(title)
    loss, accuracy, rates = figure.subplots(1, 3)
    epochs = [row["epoch"] for row in rows]
    values = "test_rmse" in rows[0]
    if values:
        loss.plot(epochs, [row["cross_entropy"] for row in rows], label="training, mean squared error")
        accuracy.plot(epochs, [row["test_mae"] for row in rows], label="test MAE")
        accuracy.plot(epochs, [row["test_rmse"] for row in rows], label="test RMSE")
    else:
        loss.plot(epochs, [row["cross_entropy"] for row in rows], label="training cross-entropy")
        loss.plot(epochs, [row["test_nll"] for row in rows], label="test NLL")
        accuracy.plot(epochs, [100 * row["train_accuracy"] for row in rows], label="training")
        accuracy.plot(epochs, [100 * row["test_accuracy"] for row in rows], label="test, mean-field")
    layers = [name for name in rows[0] if name.startswith("rate/")]
    step = max(1.0, (len(layers) - 1) / (SERIES - 1))
    shown = [layers[round(at * step)] for at in range(min(SERIES, len(layers)))]
    for name in shown:
        rates.plot(epochs, [row[name] for row in rows], label=name.removeprefix("rate/"))
    for axes, what in (
        (loss, "loss"),
        (accuracy, "errors" if values else "accuracy (%)"),
        (rates, _rate_title(shown, layers)),
    ):
        axes.set(xlabel="epoch", title=what)
        axes.legend()
        _mark_finetuning(axes, rows)
    return figure


def _rate_title(shown: Sequence[str], layers: Sequence[str]) -> str:
    return "firing rate" if len(shown) == len(layers) else f"firing rate, {len(shown)} of {len(layers)} layers"


def _mark_finetuning(axes: Any, rows: Sequence[dict[str, Any]]) -> None:
    first = next((row["epoch"] for row in rows if row["phase"] == "finetune"), None)
    if first is not None:
        axes.axvline(first - 0.5, color=LIGHT["muted"], linestyle=":", linewidth=1)
