"""Every command that looks at N samples looks at the same ones, of all classes."""

import json

import numpy as np
import torch

from axonnx import evaluating
from axonnx.cli import main
from axonnx.loading import samples_for
from axonnx.runtime.measure.metrics import wilson_interval
from axonnx.runtime.measure.samples import choose_samples
from axonnx.runtime.program.compilation import compile_file
from axonnx.runtime.report.model_view import view_model
from axonnx.train.trained import open_run


def test_a_run_gives_the_chosen_samples_and_nothing_else_about_them_changes(run_folder):
    trained = open_run(str(run_folder))
    whole, some = trained.data("test", None), trained.data("test", 40)
    x, labels = (torch.cat(each, axis) for each, axis in zip(zip(*whole, strict=True), (1, 0), strict=True))
    chosen = choose_samples(labels, 40)
    assert torch.cat([found for _, found in some]).tolist() == labels[chosen].tolist()
    assert torch.equal(torch.cat([found for found, _ in some], 1), x[:, chosen])
    assert np.bincount(labels[chosen]).tolist() == [4] * 10


def test_a_profile_of_own_data_sorted_by_class_sees_all_classes(exported, tmp_path, capsys, monkeypatch):
    contract = compile_file(exported()).contract.input
    labels = np.repeat(np.arange(10), 6)
    np.savez(tmp_path / "own.npz", frames=np.zeros((60, contract.steps, *contract.shape), np.uint8), labels=labels)
    seen = []
    measure = evaluating.count

    def spy(engine, batches, *options):
        batches = list(batches)
        seen.extend(label for _, each in batches for label in each.tolist())
        return measure(engine, batches, *options)

    model = str(exported())
    capsys.readouterr()
    monkeypatch.setattr(evaluating, "count", spy)
    words = ["profile", model, "--data", str(tmp_path / "own.npz"), "--limit", "20", "--json"]
    assert main(words) == 0
    assert np.bincount(seen).tolist() == [2] * 10
    found = json.loads(capsys.readouterr().out)
    assert found["accuracy"] == 0.1  # no event: one class for all
    assert found["accuracy_interval"] == list(wilson_interval(2, 20))


def test_a_report_takes_the_samples_that_a_profile_takes(run_folder, exported):
    test = open_run(str(run_folder)).prepared.splits.test
    found = samples_for(run_folder, view_model(exported()).contract).choose(40)
    assert found.labels.tolist() == test.labels[choose_samples(test.labels, 40)].tolist()
