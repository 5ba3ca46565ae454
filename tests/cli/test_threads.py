"""``--threads``: who gets how many."""

import os
import sys

import pytest
import torch

from axonnx import model as models
from axonnx.cli import main
from axonnx.cli.options import set_torch_threads
from axonnx.runtime.model import load


@pytest.fixture
def given(monkeypatch):
    """The numbers that torch was given, in order; this process keeps its own."""
    numbers: list[int] = []
    monkeypatch.setattr(torch, "set_num_threads", numbers.append)
    return numbers


@pytest.mark.parametrize(("usable", "half"), [(1, 1), (2, 1), (3, 1), (8, 4)])
def test_the_default_leaves_half_of_the_processors_to_others(monkeypatch, given, usable, half):
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(usable)), raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    set_torch_threads(None)
    assert given == [half]


def test_the_environment_holds_where_no_number_is_given(monkeypatch, given):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    set_torch_threads(None)
    assert given == []
    set_torch_threads(5)
    assert given == [5]


@pytest.mark.parametrize("words", [["train", "no-such"], ["export", "no-such"], ["verify", "no-such", "--run", "x"]])
def test_verbs_with_torch_hand_it_on(given, words):
    assert main([*words, "--threads", "7"]) == 2  # for want of the file; threads are set before
    assert given == [7]


@pytest.mark.parametrize(("verb", "source"), [("run", []), ("eval", ["--data"])])
def test_verbs_without_torch_hand_it_to_the_engine(monkeypatch, files, tmp_path, verb, source):
    seen = []

    def loaded(path, engine, count):
        seen.append(count)
        return load(path, engine, count)

    monkeypatch.setattr(models.runtime, "load", loaded)
    words = [verb, str(files["plain"]), *source, str(tmp_path / "none.npz")]  # wrong use, found after loading
    assert main([*words, "--threads", "3"]) == 2
    assert main(words) == 2
    assert seen == [3, 1]


@pytest.mark.parametrize("number", ["0", "1.5", "two"])
def test_a_number_that_is_none_is_refused(number, capsys):
    with pytest.raises(SystemExit) as end:
        main(["run", "a.onnx", "b.npz", "--threads", number])
    assert end.value.code == 2
    assert "expected a whole number from 1 on" in capsys.readouterr().err
