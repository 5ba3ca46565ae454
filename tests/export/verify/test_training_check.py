"""A witness that says something else than data, checkpoint or figures: each is told with its place."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from axonnx.base.errors import AxonnxError
from axonnx.export.verify import training_check
from axonnx.export.verify.structure import Findings
from axonnx.export.verify.training_check import NONE, check_training
from axonnx.train.checkpoint import Position, add_witness, load_witness, save_checkpoint
from axonnx.train.run import train_run
from axonnx.train.trained import open_run
from tests.train.tiny_runs import tiny_config, write_data


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("witness")
    return train_run(tiny_config(write_data(folder / "data.npz"), variant__name="mfa"), folder / "run").folder


@pytest.fixture
def run(trained, tmp_path):
    return Path(shutil.copytree(trained, tmp_path / "run"))


def told(run: Path, limit: int | None = None) -> Findings:
    found = Findings()
    check_training(open_run(run), limit, found)
    return found


def witness_with(run: Path, change, **circumstances: str) -> Findings:
    held, then = load_witness(run / "checkpoint")
    change(held)
    add_witness(run / "checkpoint", held, {**then, **circumstances})
    return told(run)


def add(name: str, place: int | tuple[int, ...], number: float):
    """A change of one number of a witness."""

    def change(held):
        held[name][place] += number

    return change


def test_a_run_is_what_its_training_process_saw(run):
    found = told(run)
    assert found.ok
    assert "cannot be computed again, as their networks are gone" in found.lines[0]
    assert "0 differ" in found.lines[1]
    assert "spikes and membranes of 2 layers" in found.lines[2]
    assert told(run, 5).ok


@pytest.mark.parametrize(
    ("name", "place", "number", "words"),
    [
        ("labels", 2, 1, "label of sample"),
        ("labels", 2, 9, "which there is not"),
        ("truth/train", 7, -1, "label of sample 7 of 'train'"),
        ("learned/labels", 0, 1, "of 'train' is"),
        ("learned/input", (3, 1), 1, "time step 3 is not what was learned"),
        ("input/values", 0, 1.0, "cell ["),
        ("float32/logits", (1, 2), 1e-6, "logit '2' of sample"),
        ("decided/test", (4, 0), 1e-6, "decision of sample 4 of 'test'"),
        ("rates/train", 0, 0.1, "other firing rates"),
    ],
)
def test_one_number_that_differs_is_told_with_its_place(run, name, place, number, words):
    found = witness_with(run, add(name, place, number))
    assert not found.ok
    assert any(words in line for line in found.lines), found.lines


@pytest.mark.parametrize("what", ["spikes", "membranes"])
def test_one_step_of_a_layer_that_differs_is_told_with_its_place(run, what):
    held, _ = load_witness(run / "checkpoint")
    name = sorted(key for key in held if key.startswith(f"float32/{what}/"))[-1]
    found = witness_with(run, add(name, (3, 5), 1))
    assert f"layer {name.split('/')[-1]!r}, time step 3, sample {int(held['samples'][5])} of 'test': its {what}" in str(
        found.lines
    )


@pytest.mark.parametrize("right", [False, True])
def test_a_part_sorted_by_people_may_begin_with_hard_or_easy_ones(run, right, monkeypatch):
    """Decisions made again are compared with those of the same samples, not with the share of the whole part."""
    held, _ = load_witness(run / "checkpoint")
    decided, labels = held["decided/test"].numpy(), held["truth/test"].numpy()
    chosen = np.flatnonzero((decided.argmax(1) == labels) == right)
    assert 0 < len(chosen) < len(labels)
    size = len(labels) // 2
    first = np.concatenate([chosen, np.setdiff1d(np.arange(len(labels)), chosen)])
    batches = [first[: min(len(chosen), size)], first[min(len(chosen), size) :]]
    monkeypatch.setattr(training_check, "batches_of", lambda *_: batches)
    assert not any("made again" in line and "are right" in line for line in told(run, 1).lines)


def test_on_another_processor_doubles_decide(run):
    def rounded(held):
        for name in held:
            if name.startswith("float32/") or "64/membranes/" in name or "noise/membranes/" in name:
                held[name] += 1

    elsewhere = witness_with(run, rounded, torch="1.0")
    assert elsewhere.ok
    assert "trained elsewhere (torch 1.0, now" in elsewhere.lines[0]
    held, _ = load_witness(run / "checkpoint")
    spikes = next(name for name in held if name.startswith("float64/spikes/"))
    assert not witness_with(run, add(spikes, (1, 1), 1)).ok
    assert not witness_with(run, rounded, torch=torch.__version__).ok


@pytest.mark.parametrize(
    ("part", "key", "value"),
    [("test", "nll", 0.01), ("train", "accuracy", 0.99), ("test", "confusion", [[1]]), ("test_bayesian", "ece", "low")],
)
def test_a_forged_figure_is_told_beside_its_decisions(run, part, key, value):
    path = run / "metrics.json"
    figures = json.loads(path.read_text())
    figures[part][key] = value
    path.write_text(json.dumps(figures))
    found = told(run)
    assert any(f"metrics.json states for {part!r} {key}" in line for line in found.lines), found.lines
    path.write_text("[]")
    assert "metrics.json cannot be read" in str(told(run).lines)


def test_figures_of_another_part_are_told(run):
    path = run / "metrics.json"
    figures = json.loads(path.read_text())
    path.write_text(json.dumps({"test": figures["train"]}))
    lines = str(told(run).lines)
    assert "metrics.json states figures of ['test']" in lines
    assert "metrics.json states for 'test' samples" in lines


def test_an_unfinished_run_has_no_witness(run):
    trained = open_run(run)
    optimiser = torch.optim.Adam(trained.network.parameters())
    digest = trained.prepared.splits.digest
    save_checkpoint(run / "checkpoint", trained.network, optimiser, Position(2, {}, "", digest))
    found = told(run)
    assert found.ok
    assert found.lines == [NONE]


def test_a_witness_that_lacks_something_is_refused(run):
    with pytest.raises(AxonnxError, match="its witness does not hold"):
        witness_with(run, lambda held: held.pop("learned/labels"))
