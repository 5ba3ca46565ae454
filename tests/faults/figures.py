"""Forged or leaked figures: of the run's own metrics, of the file's contract, and of what they were measured on."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import onnx

from axonnx.runtime.format.contract import METADATA_KEY
from axonnx.runtime.measure.metrics import wilson_interval
from tests.faults.bench import Bench, Ended, ends


def restated(source: Path, target: Path, change: Callable[[dict], None]) -> Path:
    """A copy of a file whose contract says something else."""
    model = onnx.load(source)
    entry = next(entry for entry in model.metadata_props if entry.key == METADATA_KEY)
    contract = json.loads(entry.value)
    change(contract)
    entry.value = json.dumps(contract)
    onnx.save(model, target)
    return target


@ends(1, "the contract states for 'file'", quick=True)
def accuracy_of_the_contract_moved_by_four_samples(bench: Bench) -> Ended:
    """A forged accuracy whose count and interval fit it."""

    def forge(contract: dict) -> None:
        entry = contract["accuracy"][-1]
        entry["right"] += 4
        entry["accuracy"] = entry["right"] / entry["samples"]
        entry["interval"] = list(wilson_interval(entry["right"], entry["samples"]))

    return bench.verify(restated(bench.file, bench.new("forged.onnx"), forge), bench.run)
