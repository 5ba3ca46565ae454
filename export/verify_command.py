"""``axonnx verify``: exit 0 when every bit is equal, 1 when one is not, 2 for wrong use."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from axonnx.export.gap import Sampled, Score
from axonnx.export.shards import read_shards
from axonnx.export.verify import (
    Verification,
    check_operators,
    check_structure,
    compare_running,
    measure_accuracy,
)
from axonnx.runtime.atomic_file import write_text
from axonnx.runtime.errors import AxonnxError
from axonnx.runtime.metrics import wilson_interval
from axonnx.train.checkpoint import read_index
from axonnx.train.trained import Trained, load_trained

EQUAL, DIFFERENT = 0, 1


def main(arguments: Sequence[str]) -> int:
    """``axonnx verify``."""
    options = _parser().parse_args(arguments)
    if options.merge:
        result = merge(read_shards(options.merge))
    elif options.model is None or options.run is None:
        raise AxonnxError("which file and which run? axonnx verify model.onnx --run RUN (or --merge a.json b.json …)")
    else:
        result = verify(options)
    if options.output:
        write_text(options.output, json.dumps(result, indent=1))
    print(json.dumps(result) if options.json else _table(result))
    return EQUAL if result["verdict"] == "equal" else DIFFERENT


def verify(options: argparse.Namespace) -> dict[str, Any]:
    """Run all stages; the JSON of their results."""
    tell = (lambda line: None) if options.quiet else (lambda line: print(line, file=sys.stderr))
    trained = load_trained(options.run)
    found = Verification(options.model)
    stage = found.stage("structure")
    checkpoint = read_index(Path(options.run) / "checkpoint")["files"]["weights"]["sha256"]
    try:
        subject = check_structure(options.model, trained.network, checkpoint, stage)
    except AxonnxError as refusal:
        stage.fail(str(refusal))
        return _result(found, options)
    tell("structure checked")
    check_operators(subject, found.stage("operators"))
    tell("operators checked")
    running = found.stage("free-running")
    data = _shard(_samples(trained, options), options.shard)
    found.comparisons, found.unrounded = compare_running(subject, _limited(data, options.samples), options.seed, tell)
    for entry in found.comparisons:
        if entry.differing:
            running.fail(str(entry.first))
    running.lines.append(f"{len(found.comparisons)} implementations against the collapsed module")
    tell("measuring accuracy")
    found.scores = measure_accuracy(subject, data, options.passes, options.seed, trained.bayesian, wilson_interval)
    return _result(found, options)


def merge(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Shards of one verification as one result."""
    if len({part["model"] for part in parts}) != 1:
        raise AxonnxError(f"these results are of different files: {sorted({part['model'] for part in parts})}")
    merged: dict[str, Any] = {**parts[0], "shard": None}
    merged["verdict"] = "equal" if all(part["verdict"] == "equal" for part in parts) else "different"
    merged["mismatches"] = sum(part["mismatches"] for part in parts)
    merged["compared"] = {key: sum(part["compared"][key] for part in parts) for key in parts[0]["compared"]}
    merged["first_divergence"] = next((p["first_divergence"] for p in parts if p["first_divergence"]), None)
    merged["implementations"] = [
        _merged_entries(entries) for entries in zip(*(p["implementations"] for p in parts), strict=True)
    ]
    merged["accuracy"] = [_merged_scores(entries) for entries in zip(*(p["accuracy"] for p in parts), strict=True)]
    merged["stages"] = [
        {
            "name": same[0]["name"],
            "ok": all(s["ok"] for s in same),
            "lines": _unique(line for s in same for line in s["lines"]),
        }
        for same in zip(*(part["stages"] for part in parts), strict=True)
    ]
    return merged


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "axonnx verify", description="Compare a file with the run it comes from, bit for bit."
    )
    parser.add_argument("model", nargs="?", help="an exported file")
    parser.add_argument("--run", help="the run folder it was exported from")
    parser.add_argument("--part", default="test", help="which part of the data set (default: %(default)s)")
    parser.add_argument("--samples", type=int, default=64, help="samples that every implementation runs (default: 64)")
    parser.add_argument("--limit", type=int, help="samples for the accuracy (default: the whole part)")
    parser.add_argument("--passes", type=int, default=8, help="noisy passes of the Bayesian predictive")
    parser.add_argument("--seed", type=int, default=0, help="of the noise of stochastic files")
    parser.add_argument("--shard", metavar="I/N", help="only every N-th sample, beginning with I (from 0)")
    parser.add_argument("--merge", nargs="+", metavar="JSON", help="put the results of shards together")
    parser.add_argument("--json", action="store_true", help="the result as one JSON object")
    parser.add_argument("-o", "--output", help="also write the JSON to this file")
    parser.add_argument("--quiet", action="store_true", help="no progress, only the result")
    return parser


def _samples(trained: Trained, options: argparse.Namespace) -> Sampled:
    if options.part not in trained.prepared.splits.parts:
        raise AxonnxError(f"the data set has no part {options.part!r}; it has {sorted(trained.prepared.splits.parts)}")
    return trained.data(options.part, options.limit)


def _shard(data: Sampled, shard: str | None) -> Sampled:
    if shard is None:
        return data
    try:
        first, count = (int(number) for number in shard.split("/"))
    except ValueError:
        raise AxonnxError(f"--shard {shard!r}; expected I/N, e.g. 0/4") from None
    if not 0 <= first < count:
        raise AxonnxError(f"--shard {shard!r}; I counts from 0 to N−1")
    timed = 1 if data and data[0][0].dim() > 4 else 0
    kept = []
    for x, labels in data:
        chosen = list(range(first, len(labels), count))
        if chosen:
            kept.append((x[:, chosen] if timed else x[chosen], labels[chosen]))
    return kept


def _limited(data: Sampled, samples: int) -> Sampled:
    kept, seen = [], 0
    for x, labels in data:
        take = min(len(labels), samples - seen)
        if take <= 0:
            break
        kept.append((x.narrow(1 if x.dim() > 4 else 0, 0, take), labels[:take]))
        seen += take
    return kept


def _result(found: Verification, options: argparse.Namespace) -> dict[str, Any]:
    totals = {key: sum(getattr(c, key) for c in found.comparisons) for key in ("spikes", "membranes", "logits")}
    divergences = [entry.as_dict()["first"] for entry in found.comparisons if entry.first is not None]
    divergences.sort(key=lambda first: math.inf if first["step"] is None else first["step"])  # spikes before logits
    plain = found.unrounded
    unrounded = None
    if plain is not None and plain.spikes:
        unrounded = {
            "equal_spikes": 1 - plain.spikes_differing / plain.spikes,
            "max_logit_difference": plain.max_logit_difference,
            "samples": plain.samples,
        }
    return {
        "format": 1,
        "model": found.model,
        "run": options.run,
        "shard": options.shard,
        "verdict": "equal" if found.ok else "different",
        "mismatches": sum(entry.differing for entry in found.comparisons),
        "compared": totals,
        "stages": [{"name": s.name, "ok": s.ok, "lines": s.lines} for s in found.stages],
        "implementations": [_implementation(entry) for entry in found.comparisons],
        "unrounded": unrounded,
        "accuracy": [_accuracy(entry) for entry in found.scores],
        "first_divergence": divergences[0] if divergences else None,
    }


def _implementation(entry: Any) -> dict[str, Any]:
    keys = ("name", "samples", "spikes", "membranes", "logits", "spikes_differing", "membranes_differing")
    return {key: getattr(entry, key) for key in keys} | {
        "logits_differing": entry.logits_differing,
        "max_logit_difference": entry.max_logit_difference,
    }


def _accuracy(entry: Score) -> dict[str, Any]:
    return {"name": entry.name, "right": entry.right, **entry.as_dict()}


def _merged_entries(entries: Sequence[dict[str, Any]]) -> dict[str, Any]:
    summed = {key: sum(e[key] for e in entries) for key in entries[0] if key not in ("name", "max_logit_difference")}
    worst = max(e["max_logit_difference"] for e in entries)
    return {"name": entries[0]["name"], **summed, "max_logit_difference": worst}


def _merged_scores(entries: Sequence[dict[str, Any]]) -> dict[str, Any]:
    right, samples = sum(e["right"] for e in entries), sum(e["samples"] for e in entries)
    nll = sum(e["nll"] * e["samples"] for e in entries) / samples
    interval = list(wilson_interval(right, samples))
    return {
        **entries[0],
        "right": right,
        "samples": samples,
        "accuracy": right / samples,
        "interval": interval,
        "nll": nll,
    }


def _unique(lines: Any) -> list[str]:
    return list(dict.fromkeys(lines))


def _table(result: dict[str, Any]) -> str:
    lines = []
    for stage in result["stages"]:
        lines.append(f"{'ok    ' if stage['ok'] else 'FAILED'} {stage['name']}")
        lines += [f"         {line}" for line in stage["lines"]]
    if result["implementations"]:
        lines += ["", f"{'implementation':<36}{'samples':>8}{'spikes':>12}{'membranes':>12}{'logits':>9}  max |Δlogit|"]
        for entry in result["implementations"]:
            cells = [f"{entry[f'{key}_differing']}/{entry[key]:,}" for key in ("spikes", "membranes", "logits")]
            lines.append(
                f"{entry['name']:<36}{entry['samples']:>8}{cells[0]:>12}{cells[1]:>12}{cells[2]:>9}"
                f"  {entry['max_logit_difference']:g}"
            )
    if result["unrounded"]:
        share = result["unrounded"]
        lines.append(
            f"(the training network before rounding to the grid: {100 * share['equal_spikes']:.4f} % of spikes equal, "
            f"max |Δlogit| {share['max_logit_difference']:.2g})"
        )
    if result["accuracy"]:
        lines.append("")
        for entry in result["accuracy"]:
            low, high = entry["interval"]
            lines.append(
                f"{entry['name']:<36}{100 * entry['accuracy']:>7.2f} %  ({100 * low:.1f} – {100 * high:.1f} %, "
                f"{entry['samples']} samples)"
            )
    return "\n".join([*lines, "", _verdict(result)])


def _verdict(result: dict[str, Any]) -> str:
    if result["verdict"] == "equal":
        compared = ", ".join(f"{count:,} {what}" for what, count in result["compared"].items())
        return f"verified: 0 mismatches in {compared}"
    first = result["first_divergence"]
    where = (
        "" if first is None else f"; first: layer {first['layer']!r}, step {first['step']}, neuron {first['neuron']}"
    )
    return f"NOT EQUAL: {result['mismatches']} mismatches{where}"
