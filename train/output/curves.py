"""How loss, accuracy and firing rates went: a picture of a run."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from axonnx.base.errors import AxonnxError
from axonnx.base.palette import LIGHT, SERIES, save_figure

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
