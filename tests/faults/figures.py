"""Forged or leaked figures: of the run's own metrics, of the file's contract, and of what they were measured on."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from pathlib import Path

import numpy as np
import onnx
import pytest

from axonnx.runtime.format.contract import METADATA_KEY
from axonnx.runtime.measure.metrics import wilson_interval
from axonnx.train.evaluate import Predictions
from axonnx.train.run_folder import RunFolder
from axonnx.train.trained import Trained
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


def forged(bench: Bench, change: Callable[[dict], None]) -> Ended:
    """The verification of a run whose metrics.json says something else."""
    run = bench.copy()
    figures = json.loads((run / "metrics.json").read_text("utf-8"))
    change(figures)
    (run / "metrics.json").write_text(json.dumps(figures), "utf-8")
    return bench.verify(bench.file, run)


@ends(1, "metrics.json states for 'test' nll 0.01", quick=True)
def an_nll_of_one_hundredth(bench: Bench) -> Ended:
    """One number of metrics.json is forged."""
    return forged(bench, lambda figures: figures["test"].update(nll=0.01))


@ends(1, "metrics.json states for 'test' accuracy")
def an_accuracy_moved_by_four_samples(bench: Bench) -> Ended:
    """Forged with its interval and its confusion, so that all fit each other."""

    def change(figures: dict) -> None:
        entry = figures["test"]
        right = round(entry["accuracy"] * entry["samples"]) + 4
        entry["accuracy"] = right / entry["samples"]
        entry["accuracy_interval"] = list(wilson_interval(right, entry["samples"]))
        for row in entry["confusion"][:4]:
            wrong = next(at for at, count in enumerate(row) if count and row is not entry["confusion"][at])
            row[wrong] -= 1
            row[entry["confusion"].index(row)] += 1

    return forged(bench, change)


@ends(1, "metrics.json states for 'test' samples", quick=True)
def figures_of_the_training_part_called_those_of_the_test(bench: Bench) -> Ended:
    """A file of honest figures under another name."""
    return forged(bench, lambda figures: figures.update(test=figures["train"]))


def rewritten(bench: Bench, name: str, change: Callable[[bytes], bytes]) -> Ended:
    """The verification of a run of which a file that training wrote was changed."""
    run = bench.copy()
    (run / name).write_bytes(change((run / name).read_bytes()))
    return bench.verify(bench.file, run)


def _better(text: bytes) -> bytes:
    rows = list(csv.DictReader(StringIO(text.decode())))
    rows[0]["test_accuracy"] = "0.97"
    out = StringIO()
    writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode()


@ends(1, "results.csv, epoch 1: test_accuracy is 0.97", quick=True)
def a_row_of_results_forged(bench: Bench) -> Ended:
    """The accuracy of an epoch, which the report draws."""
    return rewritten(bench, "results.csv", _better)


@ends(1, "results.csv is not the one that the training process wrote", quick=True)
def an_epoch_added_to_the_results(bench: Bench) -> Ended:
    """One more row, as if training had gone on."""
    return rewritten(bench, "results.csv", lambda text: text + text.splitlines(keepends=True)[-1])


@ends(1, "curves.png is not the picture that the training process drew", quick=True)
def curves_drawn_again(bench: Bench) -> Ended:
    """A picture of other curves."""
    return rewritten(bench, "curves.png", lambda picture: picture + b"\0")


@ends(1, "results.csv states test_accuracy 0.97")
def a_training_process_that_writes_better_results(bench: Bench) -> Ended:
    """The rows and their witness agree; the decisions say otherwise."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        write = RunFolder.write_results
        patch.setattr(
            RunFolder, "write_results", lambda self, rows: write(self, [{**row, "test_accuracy": 0.97} for row in rows])
        )

    run = bench.train(plant=plant)
    return bench.verify(bench.export(run), run)


def predicted(change: Callable[[dict[str, Predictions]], None]) -> Callable[[pytest.MonkeyPatch], None]:
    """The final predictions of the training process are changed before anything is made of them."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        from axonnx.train import run

        final = run.final_predictions

        def changed(*given):
            found = final(*given)
            change(found)
            return found

        patch.setattr(run, "final_predictions", changed)

    return plant


@ends(1, "the training process decided 1437")
def a_training_process_that_tests_on_what_it_learned(bench: Bench) -> Ended:
    """Its test figures are of the training part, and its witness says so."""
    run = bench.train(plant=predicted(lambda found: found.update(test=found["train"])))
    return bench.verify(bench.export(run), run)


@ends(1, "label of sample")
def evaluation_labels_permuted(bench: Bench) -> Ended:
    """The labels behind the test figures are in another order than the samples."""

    def permute(found: dict[str, Predictions]) -> None:
        labels = np.random.default_rng(0).permutation(found["test"].labels)
        found["test"] = replace(found["test"], labels=labels)

    run = bench.train(plant=predicted(permute))
    return bench.verify(bench.export(run), run)


@ends(1, "decision of sample 7 of 'test'")
def one_decision_turned_right_in_the_training_process(bench: Bench) -> Ended:
    """Figures and decisions fit each other, but not the network."""

    def turn(found: dict[str, Predictions]) -> None:
        rows = found["test"].probabilities.copy()
        rows[7] = np.eye(rows.shape[1], dtype=rows.dtype)[found["test"].labels[7]]
        found["test"] = replace(found["test"], probabilities=rows)

    run = bench.train(plant=predicted(turn))
    return bench.verify(bench.export(run), run, "--limit", "360")


@ends(1, "threshold")
def thresholds_calibrated_on_the_test_part(bench: Bench) -> Ended:
    """The export looks at samples that the file's accuracy is measured on."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        data = Trained.data
        patch.setattr(Trained, "data", lambda self, part, limit: data(self, "test", limit))

    return bench.verify(bench.export(bench.run, "--calibrate", plant=plant), bench.run)
