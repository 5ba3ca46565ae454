"""Answers to many recordings as ``axonnx run`` prints them: a line each, and what they come to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

WIDTH = 44


def row_line(row: Mapping[str, Any]) -> str:
    """Recording, label, probability, entropy; the true class where it is known and another."""
    number = f"[{row['index']}]" if "index" in row else ""
    name = _cut(f"{row['recording']}{number}")
    if "error" in row:
        return f"{name:<{WIDTH}}  FAILED"
    line = f"{name:<{WIDTH}}  {row['label']:<16}{100 * row['probability']:>6.1f} %  entropy {row['entropy']:.3f}"
    wrong = row["true"] is not None and row["true"] != row["label"]
    return f"{line}  is {row['true']}" if wrong else line


def summary_text(facts: Mapping[str, Any]) -> str:
    """The counts for people."""
    counts = ", ".join(f"{label} {count:,}" for label, count in facts["labels"].items())
    lines = ["", f"recordings  {facts['recordings']:,}, by the engine {facts['engine']}"]
    if facts["events"]:
        left = "".join(
            f", {count:,} left out ({reason.replace('_', ' ')})" for reason, count in facts["left_out"].items()
        )
        lines.append(f"events      {facts['events']:,}{left}")
    lines.append(f"answers     {counts or 'none'}")
    if facts["accuracy"] is not None:
        low, high = facts["accuracy_interval"]
        lines.append(
            f"accuracy    {100 * facts['accuracy']:.2f} % ({100 * low:.1f} – {100 * high:.1f} %): {facts['right']:,} "
            f"of {facts['labelled']:,} whose class is known"
        )
    if facts["failed"]:
        lines.append(f"failed      {len(facts['failed']):,}, tried twice:")
        lines += [f"  {_reason(name, fault)}" for name, fault in facts["failed"].items()]
    return "\n".join(lines)


def _reason(name: str, fault: str) -> str:
    return fault if fault.startswith(name) else f"{name}: {fault}"


def _cut(name: str) -> str:
    return name if len(name) <= WIDTH else f"…{name[1 - WIDTH :]}"
