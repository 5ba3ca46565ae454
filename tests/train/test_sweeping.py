"""``axonnx sweep``: every combination and seed, the best by validation, the same with any number of workers."""

import json

import numpy as np
import pytest

from axonnx.base.errors import AxonnxError
from axonnx.cli import main
from axonnx.cli.options import settings_of
from axonnx.runtime.measure.result_files import read_result
from axonnx.train import sweeping
from axonnx.train.sweeping import SweepPoint, SweepResult, SweepRun, best_of, sweep_runs

TINY = """
device = "cpu"
eval_samples = 1
[data]
name = "{data}"
[model]
network = "spiking-mlp"
hidden = [6]
[variant]
name = "mfa"
[optimiser]
epochs = 2
batch_size = 8
"""


@pytest.fixture(autouse=True)
def _own_folders(tmp_path, monkeypatch):
    monkeypatch.setattr("axonnx.train.run.draw_curves", lambda *_: False)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def tiny(tmp_path):
    """A configuration of sixty noisy sequences: class k is bright in row k."""
    generator, labels = np.random.default_rng(0), np.arange(60) % 3
    share = np.full((60, 1, 1, 4, 4), 0.2)
    share[np.arange(60), 0, 0, labels] = 0.7
    np.savez(
        tmp_path / "frames.npz", frames=(generator.random((60, 5, 1, 4, 4)) < share).astype(np.uint8), labels=labels
    )
    path = tmp_path / "tiny.toml"
    path.write_text(TINY.format(data=tmp_path / "frames.npz"))
    return str(path)


AXES = ["--set", "optimiser.weight_rate=1e-4,0.05", "--set", "model.hidden=[4],[6,5]"]


def run(*words):
    return main(["sweep", *words])


def test_a_sweep_has_a_table_a_figure_and_a_best_run(tiny, tmp_path, capsys):
    assert run(tiny, *AXES, "--seeds", "2", "--out", "here", "--quiet") == 0
    text = capsys.readouterr().out
    result = read_result(SweepResult, tmp_path / "here" / "sweep.json")
    assert len(result.points) == 4
    assert [len(point.runs) for point in result.points] == [2] * 4
    assert result.axes == {"optimiser.weight_rate": (1e-4, 0.05), "model.hidden": ([4], [6, 5])}
    assert result.best.accuracy == max(point.accuracy for point in result.points)
    assert result.best.settings["optimiser.weight_rate"] == 0.05
    assert f"best run    {result.best_run}" in text
    assert "a stratified 20% of the training part" in text
    assert "no test data had a say" in text
    assert text.count("\n* ") == 1
    figure = (tmp_path / "here" / "sweep.svg").read_text()
    assert figure.startswith("<?xml")
    metrics = json.loads((tmp_path / result.best_run / "metrics.json").read_text())
    assert metrics["validation"]["samples"] == 10  # a fifth of 48 that are no test data
    assert metrics["test"]["accuracy"] == result.test_accuracy


def test_results_do_not_depend_on_the_number_of_workers_and_an_interrupted_sweep_goes_on(
    tiny, tmp_path, capsys, monkeypatch
):
    words = (tiny, *AXES[:2], "--seeds", "2")
    assert run(*words, "--out", "alone", "--json") == 0
    assert run(*words, "--out", "pair", "--json", "--jobs", "2") == 0
    kept, calls = sweeping.measure, []

    def stops(job, runs):
        calls.append(job.name)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return kept(job, runs)

    monkeypatch.setattr(sweeping, "measure", stops)
    assert run(*words, "--out", "parts", "--json") == 130
    assert run(*words, "--out", "parts", "--json") == 0
    assert len(calls) == 2 + 3
    texts = [(tmp_path / out / "sweep.json").read_text().replace(f"/{out}/", "/") for out in ("alone", "pair", "parts")]
    assert texts[0] == texts[1] == texts[2]
    figures = [(tmp_path / out / "sweep.svg").read_bytes() for out in ("alone", "pair")]
    assert figures[0] == figures[1]


def point(rate, *accuracies, nll=0.5):
    runs = tuple(SweepRun(seed=n, folder=f"{rate}-{n}", accuracy=a, nll=nll) for n, a in enumerate(accuracies))
    mean = sum(accuracies) / len(accuracies)
    return SweepPoint(settings={"rate": rate}, runs=runs, accuracy=mean, std=None, nll=nll)


def test_the_best_has_the_highest_mean_then_the_lowest_nll_then_comes_first():
    points = [point(1, 0.9, 0.5), point(2, 0.75, 0.85), point(3, 0.8, 0.8), point(4, 0.8, 0.8, nll=0.4)]
    best, run_ = best_of(points)
    assert (best.settings["rate"], run_.folder) == (4, "4-0")
    best, run_ = best_of(points[:2])
    assert (best.settings["rate"], run_.folder) == (2, "2-1")
    stopped = SweepPoint(
        settings={}, runs=(SweepRun(seed=0, folder="", accuracy=None, nll=None, failed="nan"),), accuracy=None,
        std=None, nll=None,
    )  # fmt: skip
    assert best_of([stopped, points[0]])[0] is points[0]
    with pytest.raises(AxonnxError, match="every run was stopped: nan"):
        best_of([stopped])


def test_values_are_read_as_settings_are():
    words = ["a.b=1e-3,0.1", "c=st,iwst", "d=[1],[2,3]", "e=auto,0.5", "f=true", 'g="x, y"']
    assert settings_of([f"--{word}" for word in words], many=True) == {
        "a.b": [1e-3, 0.1], "c": ["st", "iwst"], "d": [[1], [2, 3]], "e": ["auto", 0.5], "f": [True], "g": ["x, y"],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--set", "optimiser.wait_rate=1,2"], "weight_rate"),
        (["--set", "optimiser.epochs"], "expected a setting and its values"),
        (["--set", "optimiser.epochs=1,1"], "each once"),
        (["--set", "seed=1,2"], "how many seeds"),
        (["--set", "a=1", "--set", "a=2"], "given twice"),
    ],
)
def test_wrong_sweeps_are_told_before_any_work(tiny, tmp_path, capsys, words, text):
    assert run(tiny, *words, "--out", "here") == 2
    assert text in capsys.readouterr().err
    assert not (tmp_path / "here").exists()


def test_a_validation_part_of_ones_own_is_kept(tiny, tmp_path):
    axes = {"data.validation.share": [0.5]}
    result = sweep_runs(tiny, axes, tmp_path / "here")
    assert result.chosen_on.startswith("the validation part, as")
    metrics = json.loads((tmp_path / result.best_run / "metrics.json").read_text())
    assert metrics["validation"]["samples"] == 24
