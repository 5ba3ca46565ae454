"""``python -m experiments``: it runs, goes on where it stopped, and draws again from what is stored."""

import json
from pathlib import Path

import pytest

from axonnx.train import sweeping
from axonnx.train.health import NonFiniteError
from experiments.__main__ import main
from experiments.measures import deployed, training
from experiments.plan import plan_names


@pytest.fixture(autouse=True)
def _own_folders(tmp_path, monkeypatch):
    monkeypatch.setattr("axonnx.train.run.draw_curves", lambda *_: False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("AXONNX_DATA", raising=False)
    monkeypatch.chdir(tmp_path)


def run(*words):
    return main(list(words))


@pytest.mark.parametrize("name", ["shd-regenerated", "estimator-bias", "vanishing-gradients", "uncertainty", "recipes"])
def test_every_kind_of_experiment_leaves_records_a_table_and_a_figure(name, tmp_path, capsys):
    assert run(name, "--scale", "quick", "-o", "here", "--quiet") == 0
    text = capsys.readouterr().out
    assert text.count("\n| ") >= 5
    assert "nan" not in text
    results = tmp_path / "here" / "results" / "quick"
    stored = json.loads((results / f"{name}.json").read_text())
    assert stored["scale"] == "quick"
    figure = (results / f"{name}.svg").read_bytes()
    assert figure.startswith(b"<?xml")
    (results / f"{name}.svg").unlink()
    assert run(name, "--scale", "quick", "-o", "here", "--draw") == 0
    assert (results / f"{name}.svg").read_bytes() == figure
    assert capsys.readouterr().out == text


def test_an_interrupted_experiment_goes_on_where_it_stopped(tmp_path, capsys, monkeypatch):
    assert run("granularity", "--scale", "quick", "-o", "whole", "--quiet") == 0
    kept, calls = training.measure, []

    def stops(job, runs):
        calls.append(job.case)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return kept(job, runs)

    monkeypatch.setattr(training, "measure", stops)
    assert run("granularity", "--scale", "quick", "-o", "parts") == 130
    assert run("granularity", "--scale", "quick", "-o", "parts") == 0
    told = capsys.readouterr().err
    assert told.count("done before") == 2
    assert len(calls) == 3 + 4
    whole, parts = (
        json.loads((tmp_path / out / "results" / "quick" / "granularity.json").read_text())["records"]
        for out in ("whole", "parts")
    )
    assert [without_time(record) for record in parts] == [without_time(record) for record in whole]


def without_time(record):
    return {key: value for key, value in record.items() if key != "seconds"}


def test_a_run_that_was_stopped_counts_as_no_figure(capsys, monkeypatch):
    """A network whose loss is not finite has no accuracy: it is named, and enters no mean and no verdict."""

    def stops(job, runs):
        if job.case == "neuron":
            raise NonFiniteError("epoch 1, batch 2: the loss is nan")
        return {"accuracy": 0.5 + 0.1 * job.seed, "epochs": [], "final": {}}

    monkeypatch.setattr(training, "measure", stops)
    monkeypatch.setattr("experiments.perform.draw", lambda *_: None)
    assert run("granularity", "--scale", "quick", "-o", "here") == 0
    told = capsys.readouterr()
    assert "neuron, seed 0: failed: epoch 1, batch 2: the loss is nan" in told.err
    assert "| neuron (2 of 2 stopped, not finite) | – |" in told.out
    assert "| layer | 55.0 ± 7.1 |" in told.out
    assert "One σ for a neuron" not in told.out
    assert "One σ for a weight" in told.out


def test_cases_that_train_alike_are_trained_once(tmp_path, monkeypatch):
    trained = []
    monkeypatch.setattr(sweeping, "train_run", counting(sweeping.train_run, trained))
    assert run("recipes", "--scale", "quick", "-o", "here", "--quiet") == 0
    assert len(trained) == 2 * 4  # sampled serves three of six recipes
    assert deployed.trained_run is training.trained_run


def counting(function, calls):
    def counted(config, folder, **options):
        calls.append(Path(folder).name)
        return function(config, folder, **options)

    return counted


def test_wrong_names_are_told_before_any_work(tmp_path, capsys):
    assert run("granularity", "recipe", "--scale", "quick", "-o", "here") == 2
    assert "Did you mean 'recipes'" in capsys.readouterr().err
    assert not (tmp_path / "here").exists()


def test_the_list_shows_every_experiment_with_its_scales(capsys):
    assert run() == 0
    text = capsys.readouterr().out
    for name in plan_names():
        assert f"{name}: " in text
    assert text.count("\n    quick") == len(plan_names())


def test_missing_data_is_told_as_in_training(capsys):
    assert run("shd-regenerated", "-o", "here", "--quiet") == 2
    assert "set AXONNX_DATA to the folder that holds the data" in capsys.readouterr().err
