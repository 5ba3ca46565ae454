"""The examples of the docstrings, run as they stand in a folder with a run, a file and a recording."""

import doctest
import inspect

import numpy as np
import pytest

import axonnx
from axonnx.runtime.model import Model
from axonnx.runtime.readers import write_npz
from axonnx.train.data.sets.registry import load_data_set

NAMES = sorted(name for name in axonnx.__all__ if not name.startswith("__"))
METHODS = ("predict", "run", "session", "stepper")
NEEDED = {"import_network": "snntorch"}
SHORT = {"optimiser.epochs": 1, "model.hidden": [8, 8], "eval_samples": 1}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What the examples name: the run ``digits``, the file ``digits.onnx`` and ``recording.npz``."""
    place = tmp_path_factory.mktemp("examples")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        axonnx.train_run("digits-saccade", "digits", settings=SHORT)
        axonnx.export_run("digits", "digits.onnx", passes=1, limit=20)
        test = load_data_set("digits-saccade").test
        write_npz("recording.npz", test[0], test.sensor)
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


@pytest.mark.parametrize("name", METHODS)
def test_every_way_to_run_a_model_has_an_example_that_runs(folder, name, monkeypatch):
    monkeypatch.chdir(folder)
    assert failures(examples(getattr(Model, name), name)) == ""


def test_a_wrong_example_is_found():
    wrong = doctest.DocTestParser().get_doctest(">>> 1 + 1\n3\n", {}, "wrong", None, 0)
    assert "Expected" in failures(wrong)
