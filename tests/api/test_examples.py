"""The examples of the docstrings, run as they stand in a folder with a run, a file and a recording."""

import doctest
import inspect

import numpy as np
import pytest

import axonnx

WITHOUT = {"Progress", "completion_script", "run_demo"}  # minutes, or no value to show
WITHOUT |= {
    "LightningLogger",
    "MLflow",
    "TensorBoard",
    "WandB",
}  # need other packages: see tests/train/test_callbacks.py
NAMES = sorted(name for name in dir(axonnx) if not name.startswith("__") and name not in WITHOUT)
METHODS = [(axonnx.Run, name) for name in ("train", "resume", "export", "verify", "evaluate", "report")] + [
    (axonnx.Model, name)
    for name in (
        "predict", "stream", "evaluate", "profile", "verify", "compile", "report", "inspect", "save", "run", "session",
        "stepper",
    )
]  # fmt: skip
NEEDED = {"import_network": "snntorch"}
SHORT = {"optimiser.epochs": 1, "model.hidden": [8, 8], "eval_samples": 1}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What the examples name: the run ``digits``, the file ``digits.onnx`` and ``recording.npz``."""
    place = tmp_path_factory.mktemp("examples")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        axonnx.Run.train("digits-saccade", "digits", settings=SHORT).export("digits.onnx", passes=1, limit=20)
        test = axonnx.load_data("digits-saccade")
        axonnx.write_events("recording.npz", test[0], test.sensor)
        yield place


def examples(thing, name):
    """The docstring's examples."""
    found = doctest.DocTestParser().get_doctest(inspect.getdoc(thing), {"axonnx": axonnx, "np": np}, name, None, 0)
    assert found.examples, f"{name} has no example"
    return found


def failures(test):
    """What went wrong, as doctest tells it."""
    said = []
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS)
    runner.run(test, out=said.append)
    return "".join(said)


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_has_an_example_that_runs(folder, name, monkeypatch):
    pytest.importorskip(NEEDED.get(name, "numpy"))
    monkeypatch.chdir(folder)
    assert failures(examples(getattr(axonnx, name), name)) == ""


@pytest.mark.parametrize(("noun", "name"), METHODS)
def test_every_method_of_the_two_nouns_has_an_example_that_runs(folder, noun, name, monkeypatch):
    monkeypatch.chdir(folder)
    assert failures(examples(getattr(noun, name), name)) == ""


def test_a_wrong_example_is_found():
    wrong = doctest.DocTestParser().get_doctest(">>> 1 + 1\n3\n", {}, "wrong", None, 0)
    assert "Expected" in failures(wrong)
