"""Tables and verdicts in Markdown, from records alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from axonnx.train.shared_records import Record, mean_and_std
from experiments.plan import Plan
from experiments.statistics import decide

Column = tuple[str, Callable[[Record], Any], str]  # heading, figure of a record, how it is written


def block(plan: Plan, scale: str, records: Sequence[Record]) -> str:
    """Return an experiment's table and verdicts, as Markdown."""
    size = plan.scales[scale]  # type: ignore[index]
    seeds = len({record["seed"] for record in records})
    minutes = sum(record.get("seconds", 0.0) for record in _once(records)) / 60
    cost = f"; {minutes:.0f} minutes of training in all" if minutes else ""
    lines = [f"Scale `{scale}`, {seeds} seeds: {size.about}{cost}.", "", *table(plan, records)]
    if any("groups" in record for record in records):
        groups = ", ".join(dict.fromkeys(group for record in records for group in record.get("groups", {})))
        lines[1:1] = [
            "",
            f"Means over groups {groups} of the training part, each held out in turn; no test part was seen.",
        ]
    verdicts = decide(plan.claims, records)
    if verdicts:
        lines += ["", *(f"- {verdict}" for verdict in verdicts)]
    return "\n".join(lines)


def table(plan: Plan, records: Sequence[Record]) -> list[str]:
    """Return a row for each case, mean ± standard deviation over seeds."""
    columns = COLUMNS[plan.measure]
    lines = ["| | " + " | ".join(name for name, _, _ in columns) + " |", "| --- |" + " ---: |" * len(columns)]
    for case in plan.cases:
        own = [record for record in records if record["case"] == case.name]
        if own:
            done = [record for record in own if "failed" not in record]
            cells = [_cell([figure(record) for record in done], form) for _, figure, form in columns]
            stopped = f" ({len(own) - len(done)} of {len(own)} stopped, not finite)" if len(done) < len(own) else ""
            lines.append(f"| {case.name}{stopped} | " + " | ".join(cells) + " |")
    return lines


def _once(records: Sequence[Record]) -> list[Record]:
    """Of cases that share a run only one counts its time."""
    return list({record.get("run", id(record)): record for record in records}.values())


def _cell(values: Sequence[Any], form: str) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return "–"
    mean, std = mean_and_std(known)
    scale = 100.0 if form.endswith("%") else 1.0
    digits = form.removesuffix("%")
    around = "" if std != std else f" ± {scale * std:{digits}}"
    return f"{scale * mean:{digits}}{around}"


def _final(part: str, key: str) -> Callable[[Record], Any]:
    return lambda record: record.get("final", {}).get(part, {}).get(key)


def _last(key: str) -> Callable[[Record], Any]:
    return lambda record: record["epochs"][-1][key] if record.get("epochs") else None


def _point(key: str) -> Callable[[Record], Any]:
    """At the greatest depth, mean over scales up to 1."""

    def mean(record: Record) -> float | None:
        deepest = max(point["depth"] for point in record["points"])
        chosen = [point[key] for point in record["points"] if point["depth"] == deepest and point["scale"] <= 1]
        return None if None in chosen else sum(chosen) / len(chosen)

    return mean


def gradient_norms(row: dict[str, Any]) -> list[float]:
    """Of every layer but the read-out, in the order of the pass."""
    return [value for key, value in row.items() if key.startswith("gradient/") and "readout" not in key]


def attenuation(row: dict[str, Any]) -> float | None:
    """Gradient norm of the first layer against that of the last hidden one."""
    norms = gradient_norms(row)
    return norms[0] / norms[-1] if len(norms) > 1 and norms[-1] else None


COLUMNS: dict[str, tuple[Column, ...]] = {
    "training": (
        ("test accuracy, as trained (%)", lambda record: record["accuracy"], ".1f%"),
        ("mean-field (%)", _final("mean_field", "accuracy"), ".1f%"),
        ("Bayesian, 8 passes (%)", _final("bayesian", "accuracy"), ".1f%"),
        ("training accuracy (%)", _last("train_accuracy"), ".1f%"),
        ("firing rate (%)", _last("rate"), ".1f%"),
    ),
    "gradients": (
        ("relative bias", _point("bias"), ".3f"),
        ("relative variance", _point("variance"), ".3g"),
        ("cosine of the mean", _point("cosine"), ".3f"),
        ("cosine of one draw", _point("cosine_of_one"), ".3f"),
    ),
    "uncertainty": (
        ("accuracy (%)", lambda record: record["accuracy"], ".1f%"),
        ("NLL", lambda record: record["nll"], ".3f"),
        ("ECE", lambda record: record["ece"], ".3f"),
        ("accuracy on the surest 80 % (%)", lambda record: record["rejection"]["0.8"], ".1f%"),
        ("AUROC by entropy", lambda record: record["auroc_entropy"], ".3f"),
        ("AUROC by mutual information", lambda record: record["auroc_mutual_information"], ".3f"),
    ),
    "worth": (
        ("accuracy (%)", lambda record: record["accuracy"], ".1f%"),
        ("NLL", lambda record: record["raw_nll"], ".3f"),
        ("NLL, tempered", lambda record: record["nll"], ".3f"),
        ("area, risk–coverage (%)", lambda record: record["aurc"], ".2f%"),
        ("errors, AUROC", lambda record: record["errors"], ".3f"),
        ("noise, AUROC", lambda record: record["unknown"]["noise"], ".3f"),
        ("shuffled", lambda record: record["unknown"]["shuffled"], ".3f"),
        ("turned", lambda record: record["unknown"]["turned"], ".3f"),
        ("90 % sets hold (%)", lambda record: record["held"], ".1f%"),
        ("their size", lambda record: record["size"], ".2f"),
    ),
    "deployed": (
        ("before the collapse (%)", lambda record: record.get("before"), ".1f%"),
        ("the file (%)", lambda record: record["accuracy"], ".1f%"),
        ("ECE", lambda record: record.get("ece"), ".3f"),
        ("spikes an inference", lambda record: record.get("spikes"), ".0f"),
        ("energy (nJ)", lambda record: record.get("energy_nj"), ".0f"),
        ("file (kB)", lambda record: record["bytes"] / 1000 if "bytes" in record else None, ".0f"),
    ),
}
