"""Faults planted at every place that verification claims to cover: each ends with exit 1, and is located.

A fault of the code is planted before export and stays planted while the file is verified, as in life.
"""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest

from axonnx.cli import main
from axonnx.export import calibrate, ways
from axonnx.export.verify.stages import verify_file
from axonnx.runtime.binning.stream import Binner
from axonnx.runtime.format import outer_graph, results
from axonnx.runtime.format.contract import METADATA_KEY, AccuracyContract
from axonnx.runtime.measure.metrics import wilson_interval
from axonnx.runtime.measure.verify_result import VerifyResult
from axonnx.runtime.streams import decision as decisions

from .damage import FAULTS, Fault
from .test_verify_bites import change, edited

LITTLE = {"samples": 4, "limit": 40, "recordings": 2}
OPTIONS = {
    (): (),
    ("stochastic",): ("--collapse", "stochastic"),
    ("sampled",): ("--collapse", "sampled", "--members", "2"),
    ("pruned",): ("--prune", "0.5"),
}
SMALL = [
    "--optimiser.epochs",
    "1",
    "--data.bins",
    "15",
    "--model.network",
    "recurrent-snn",
    "--model.hidden",
    "[20, 16]",
    "--model.delays",
    "[0, 2]",
]


@pytest.fixture(scope="session")
def recurrent_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recurrent") / "run"
    assert main(["train", "digits-saccade", "--out", str(folder), "--quiet", *SMALL]) == 0
    return folder


def export(run: Path, path: Path, *options: str) -> Path:
    words = ["export", str(run), "-o", str(path), "--limit", "8", "--passes", "1", "--quiet"]
    assert main([*words, *options]) == 0
    return path


def lines(result: VerifyResult, stage: str) -> str:
    (found,) = [each for each in result.stages if each.name == stage]
    assert not found.ok, f"{stage} found nothing wrong: {found.lines}"
    return "\n".join(found.lines)


@pytest.mark.parametrize("name", FAULTS)
def test_a_wrong_collapse_is_caught_and_its_layer_named(name, run_folder, request, tmp_path, monkeypatch):
    fault: Fault = FAULTS[name]
    run = request.getfixturevalue("recurrent_run") if fault.recurrent else run_folder
    fault.plant(monkeypatch)
    path = export(run, tmp_path / "wrong.onnx", *OPTIONS[fault.options])
    result = verify_file(path, run, **LITTLE)
    assert result.verdict == "different"
    assert f"'{fault.layer}" in lines(result, fault.stage)


def test_a_pruned_stochastic_recurrent_network_is_not_refused(recurrent_run, tmp_path):
    path = export(recurrent_run, tmp_path / "right.onnx", "--collapse", "stochastic", "--prune", "0.3")
    result = verify_file(path, recurrent_run, **LITTLE)
    assert [stage.lines for stage in result.stages if not stage.ok] == []


# The contract: what a file says of itself


def restated(change_contract: Callable[[dict], None]) -> Callable[[onnx.ModelProto], None]:
    def edit(model: onnx.ModelProto) -> None:
        entry = next(entry for entry in model.metadata_props if entry.key == METADATA_KEY)
        contract = json.loads(entry.value)
        change_contract(contract)
        entry.value = json.dumps(contract)

    return edit


def _scale_bins(contract: dict, factor: int) -> None:
    contract["input"]["binning"]["bin_us"] *= factor


def _move_origin(contract: dict) -> None:
    binning = contract["input"]["binning"]
    binning["origin"] = "first" if binning["origin"] == "zero" else "zero"


def _forge_accuracy(contract: dict) -> None:
    entry = contract["accuracy"][-1]
    entry["accuracy"], entry["interval"] = 0.999, [0.99, 1.0]


def _forge_all_of_it(contract: dict) -> None:
    entry = contract["accuracy"][-1]
    entry["right"] = entry["samples"]
    entry["accuracy"], entry["interval"] = 1.0, list(wilson_interval(entry["right"], entry["samples"]))


TAMPERED: dict[str, tuple[Callable[[dict], None], str, str]] = {
    "class names reversed": (lambda c: c["classes"].reverse(), "structure", "contract.classes[0]"),
    "bins twice as long": (lambda c: _scale_bins(c, 2), "structure", "contract.input.binning.bin_us"),
    "bins seven times as long": (lambda c: _scale_bins(c, 7), "structure", "contract.input.binning.bin_us"),
    "another origin of time": (_move_origin, "structure", "contract.input.binning.origin"),
    "another centre": (lambda c: c["input"].update(centre=1), "structure", "contract.input.centre"),
    "accuracy forged": (_forge_accuracy, "accuracies", "states for 'file' 99.90 %"),
    "accuracy forged with its count": (_forge_all_of_it, "accuracies", "states for 'file' 100.00 %"),
    "accuracy left out": (lambda c: c["accuracy"].pop(0), "accuracies", "states the accuracies ['mean_field', "),
    "accuracy of fewer passes": (
        lambda c: c["accuracy"][0].update(draws=1), "accuracies", "states for 'bayesian' "
    ),
    "another data set": (lambda c: c["provenance"].update(data="mnist"), "structure", "contract.provenance.data"),
    "another threshold stated": (
        lambda c: c["layers"][0].update(threshold=5.0), "structure", "contract.layers[0].threshold"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TAMPERED)
def test_a_contract_that_the_run_does_not_give_is_caught_and_the_field_named(name, exported, run_folder, tmp_path):
    tamper, stage, text = TAMPERED[name]
    path = edited(exported(), tmp_path / "tampered.onnx", restated(tamper))
    result = verify_file(path, run_folder, **LITTLE)
    assert result.verdict == "different"
    assert text in lines(result, stage)


@pytest.mark.parametrize(
    "tamper", [lambda t: np.add(t, 2.0, out=t), lambda t: np.multiply(t, 1.9, out=t)], ids=["plus 2", "times 1.9"]
)
def test_thresholds_of_a_calibrated_file_are_matched_again(tamper, exported, run_folder, tmp_path):
    source = exported("--calibrate")
    assert verify_file(source, run_folder, **LITTLE).verdict == "equal"
    path = edited(source, tmp_path / "moved.onnx", change("hidden.0.neuron.threshold", tamper))
    result = verify_file(path, run_folder, **LITTLE)
    assert "hidden.0.neuron.threshold" in lines(result, "structure")
    assert "hidden.0.neuron.threshold" in lines(result, "collapse")


# The other end: from a recording to a decision


def test_bins_that_are_not_those_of_training_are_caught(exported, run_folder, monkeypatch):
    push = Binner.push

    def late(binner, events):
        moved = events.copy()
        moved["t"] += 3000
        return push(binner, moved)

    monkeypatch.setattr(Binner, "push", late)
    assert "other logits or another name than in training" in lines(
        verify_file(exported(), run_folder, **LITTLE), "recordings"
    )


def test_events_that_a_reader_loses_are_caught(exported, run_folder, monkeypatch):
    from axonnx.train.data.recordings import Place

    read = Place.read

    def forgetful(place):
        found = read(place)
        return replace(found, events=found.events[: len(found.events) // 2])

    monkeypatch.setattr(Place, "read", forgetful)
    assert "other logits" in lines(verify_file(exported(), run_folder, **LITTLE), "recordings")


def test_a_decision_with_the_wrong_name_is_caught(exported, run_folder, monkeypatch):
    monkeypatch.setattr(decisions.Decision, "label", property(lambda d: d.classes[d.winner - 1]))
    assert "another name than in training" in lines(verify_file(exported(), run_folder, **LITTLE), "recordings")


def test_decisions_worse_than_the_training_networks_are_part_of_the_verdict(exported, run_folder, monkeypatch):
    """Everything else blind: an engine that answers with another class is caught by its accuracy."""
    from axonnx.export.verify import accuracy

    of_engine = accuracy.of_engine

    def turned(engine, x, noise):
        seen = of_engine(engine, x, noise)
        return type(seen)(seen.name, seen.spikes, seen.membranes, np.roll(seen.logits, 1, -1))

    monkeypatch.setattr(accuracy, "of_engine", turned)
    assert "decides otherwise than the training network" in lines(
        verify_file(exported(), run_folder, **LITTLE), "decisions"
    )


def test_events_lost_between_two_pieces_are_caught(exported, run_folder, monkeypatch):
    push, whole = Binner.push, 1000  # recordings of digits have more events
    monkeypatch.setattr(Binner, "push", lambda b, events: push(b, events[1:] if len(events) < whole else events))
    assert "than in training" in lines(verify_file(exported(), run_folder, **LITTLE), "recordings")


def test_bins_that_are_wrong_on_their_borders_alone_are_caught(exported, run_folder, monkeypatch):
    """A microsecond moves no event of these recordings into another bin."""
    push = Binner.push

    def late(binner, events):
        moved = events.copy()
        moved["t"] += 1
        return push(binner, moved)

    monkeypatch.setattr(Binner, "push", late)
    assert "a session bins events on the borders" in lines(verify_file(exported(), run_folder, **LITTLE), "recordings")


# Code that export and verify share: what it says is done again, plainly


def _raise_rates(patch: pytest.MonkeyPatch) -> None:
    rates = calibrate.firing_rates

    def more(network, inputs, passes, seed):
        found = rates(network, inputs, passes, seed)
        return found if seed is None else {name: 1.6 * rate for name, rate in found.items()}

    patch.setattr(calibrate, "firing_rates", more)


def _invert_quantile(patch: pytest.MonkeyPatch) -> None:
    found = calibrate._threshold_for
    patch.setattr(calibrate, "_threshold_for", lambda m, rate, *rest: found(m, 1 - rate, *rest))


def _move_thresholds(patch: pytest.MonkeyPatch) -> None:
    found = calibrate.calibrate
    patch.setattr(calibrate, "calibrate", lambda *a, **k: {name: t + 0.3 for name, t in found(*a, **k).items()})


@pytest.mark.parametrize("plant", [_raise_rates, _invert_quantile, _move_thresholds])
def test_a_wrong_calibration_is_caught_and_its_layer_named(plant, run_folder, tmp_path, monkeypatch):
    plant(monkeypatch)
    path = export(run_folder, tmp_path / "wrong.onnx", "--calibrate")
    found = lines(verify_file(path, run_folder, **LITTLE), "collapse")
    assert re.search(r"layer 'hidden\.[01]\.neuron': with the file's thresholds its rates are ", found)


def _change_calls(patch: pytest.MonkeyPatch, change: Callable[[results.Call], results.Call]) -> None:
    calls = results.ensemble_calls
    for module in (results, outer_graph):
        patch.setattr(module, "ensemble_calls", lambda logits: [change(call) for call in calls(logits)])


WRONG_RESULTS: dict[str, Callable[[results.Call], results.Call]] = {
    "entropy": lambda call: call._replace(op="Identity") if call.op == "Neg" else call,
    "probabilities": lambda call: call._replace(attributes=(("axis", 0),)) if call.op == "Softmax" else call,
    "mutual_information": lambda call: call._replace(inputs=call.inputs[::-1]) if call.op == "Sub" else call,
}


@pytest.mark.parametrize("output", WRONG_RESULTS)
def test_wrong_results_of_an_ensemble_are_caught_and_the_output_named(output, run_folder, tmp_path, monkeypatch):
    _change_calls(monkeypatch, WRONG_RESULTS[output])
    path = export(run_folder, tmp_path / "wrong.onnx", *OPTIONS[("sampled",)])
    assert f"output '{output}' of the file is not what" in lines(verify_file(path, run_folder, **LITTLE), "engines")


def _better(entry: AccuracyContract) -> AccuracyContract:
    right = entry.samples
    return entry.model_copy(update={"right": right, "accuracy": 1.0, "interval": wilson_interval(right, entry.samples)})


def _surer(entry: AccuracyContract) -> AccuracyContract:
    return entry.model_copy(update={"nll": entry.nll / 2})


@pytest.mark.parametrize(
    ("way", "wrong"), [("file", _better), ("file", _surer), ("mean_field", _better), ("bayesian", _better)]
)
def test_a_wrong_count_in_the_code_that_measures_is_caught(way, wrong, run_folder, tmp_path, monkeypatch):
    score = ways.score
    monkeypatch.setattr(
        ways, "score", lambda name, *given: wrong(score(name, *given)) if name == way else score(name, *given)
    )
    path = export(run_folder, tmp_path / "wrong.onnx")
    assert f"'{way}' counted plainly: " in lines(verify_file(path, run_folder, **LITTLE), "accuracies")
