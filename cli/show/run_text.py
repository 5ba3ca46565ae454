"""Decisions and summaries as ``axonnx run`` prints them: readable lines, or a JSON object each."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from axonnx.runtime.streams.decision import Decision


def decision_json(decision: Decision) -> str:
    """One line of JSON."""
    return json.dumps(decision.as_dict())


def summary_json(facts: Mapping[str, object]) -> str:
    """One line of JSON, marked as the summary."""
    return json.dumps({"summary": True, **facts})


def decision_line(decision: Decision, length: int) -> str:
    """Time, label, probability and entropy; what closes a window says so."""
    where = f"sample {decision.window:<6}" if decision.t_us is None else f"{decision.t_us / 1e6:>13.6f} s"
    width = max(len(name) for name in decision.classes)
    line = f"{where}  {decision.label:<{width}}  {100 * decision.confidence:>5.1f} %  entropy {decision.entropy:.3f}"
    if decision.mutual_information is not None:
        line += f"  mutual information {decision.mutual_information:.3f}"
    return line + _mark(decision, length)


def _mark(decision: Decision, length: int) -> str:
    if not decision.final or (decision.t_us is None and not decision.partial):
        return ""
    early = f", early, after {decision.steps} of {length} bins" if decision.early else ""
    partial = f", partly filled: the events end after {decision.ended_after} of {length} bins"
    silent = f", of {decision.windows:,} silent windows" if decision.windows > 1 else ""
    return f"  final{early}{silent}{partial if decision.partial else ''}"


def summary_lines(facts: Mapping[str, Any]) -> str:
    """The same facts for people."""
    lines = []
    if "events" in facts:
        lines.append(f"events     {facts['events']:,} read, {facts['binned']:,} binned{_events(facts)}")
        skipped = f", {facts['bins_skipped']:,} of them skipped" if facts["bins_skipped"] else ""
        lines.append(f"bins       {facts['bins']:,}{skipped}")
    else:
        lines.append(f"samples    {facts['samples']:,}")
    lines.append(f"decisions  {facts['decisions']:,}, by the engine {facts['engine']}")
    if facts["spikes"] is not None:
        counts = ", ".join(f"{name} {count:,}" for name, count in facts["spikes"].items())
        lines.append(f"spikes     {counts} (in {facts['bins_counted']:,} bins)")
    return "\n".join(lines)


def _events(facts: Mapping[str, Any]) -> str:
    parts = [f"{count:,} {_reason(reason)}" for reason, count in facts["dropped"].items()]
    parts += [f"{facts[key]:,} {key}" for key in ("pending", "sorted", "clipped") if facts[key]]
    parts += [f"{count:,} {kind.replace('_', ' ')} skipped" for kind, count in facts["skipped"].items()]
    return "".join(f", {part}" for part in parts)


def _reason(reason: str) -> str:
    return "left out (beyond the window)" if reason == "after" else f"dropped ({reason.replace('_', ' ')})"
