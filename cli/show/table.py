"""Final figures as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def metrics_table(metrics: Mapping[str, Any], classes: Sequence[str]) -> str:
    """A line for each part, and the confusion that happened most often."""
    lines = [f"{'part':<18}{'samples':>8}{'accuracy':>10}  {'95 % interval':<16}{'NLL':>8}{'ECE':>8}{'Brier':>8}"]
    for name, found in metrics.items():
        low, high = found["accuracy_interval"]
        interval = f"{100 * low:.1f} – {100 * high:.1f} %"
        lines.append(
            f"{name:<18}{found['samples']:>8}{100 * found['accuracy']:>8.1f} %  {interval:<16}"
            f"{found['nll']:>8.3f}{found['ece']:>8.3f}{found['brier']:>8.3f}"
        )
    worst = _worst_confusion(metrics.get("test", {}).get("confusion"), classes)
    return "\n".join([*lines, *([worst] if worst else [])])


def _worst_confusion(confusion: list[list[int]] | None, classes: Sequence[str]) -> str | None:
    if confusion is None:
        return None
    pairs = [
        (count, true, guess) for true, row in enumerate(confusion) for guess, count in enumerate(row) if true != guess
    ]
    count, true, guess = max(pairs, default=(0, 0, 0))
    return f"most frequent confusion: {classes[true]!r} taken for {classes[guess]!r}, {count} times" if count else None
