"""How loss, accuracy and firing rates went: a picture of a run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from axonnx.base.files import replacing


def draw_curves(path: Path, rows: Sequence[dict[str, Any]], title: str) -> bool:
    """Write a PNG; False where matplotlib is not installed."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        return False
    figure = Figure(figsize=(11, 3.2), layout="constrained")
    loss, accuracy, rates = figure.subplots(1, 3)
    epochs = [row["epoch"] for row in rows]
    loss.plot(epochs, [row["cross_entropy"] for row in rows], label="training cross-entropy")
    loss.plot(epochs, [row["test_nll"] for row in rows], label="test NLL")
    accuracy.plot(epochs, [100 * row["train_accuracy"] for row in rows], label="training")
    accuracy.plot(epochs, [100 * row["test_accuracy"] for row in rows], label="test, mean-field")
    for name in (name for name in rows[0] if name.startswith("rate/")):
        rates.plot(epochs, [row[name] for row in rows], label=name.removeprefix("rate/"))
    for axes, what in ((loss, "loss"), (accuracy, "accuracy (%)"), (rates, "firing rate")):
        axes.set(xlabel="epoch", title=what)
        axes.grid(alpha=0.3)
        if len(axes.lines) <= 8:
            axes.legend(fontsize="small")
        _mark_finetuning(axes, rows)
    figure.suptitle(title)
    with replacing(path) as temporary:
        figure.savefig(temporary, format="png", dpi=110)
    return True


def _mark_finetuning(axes: Any, rows: Sequence[dict[str, Any]]) -> None:
    first = next((row["epoch"] for row in rows if row["phase"] == "finetune"), None)
    if first is not None:
        axes.axvline(first - 0.5, color="grey", linestyle=":", linewidth=1)
