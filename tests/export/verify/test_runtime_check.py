"""What the runtime stage does again: plain probabilities, the stream that sessions hear, and early exit."""

import numpy as np
import pytest

from axonnx.export.verify import runtime_check
from axonnx.export.verify.runtime_check import Stream, plain_entropy, plain_probabilities
from axonnx.export.verify.structure import open_subject
from axonnx.runtime.model import load
from axonnx.runtime.streams.probabilities import entropy, mean_probabilities
from axonnx.train.trained import open_run


@pytest.fixture(scope="module")
def stream(run_folder, exported):
    path, trained = exported(), open_run(run_folder)
    subject = open_subject(path, trained)
    data = trained.prepared.splits.parts["test"]
    return Stream(subject, load(path), runtime_check._windows(data, subject.contract.input.binning), seed=3)


def test_probabilities_and_entropy_of_members():
    logits = np.random.default_rng(0).normal(size=(3, 5)).astype(np.float32) * 9
    p = plain_probabilities(logits)
    assert np.allclose(p, mean_probabilities(logits), atol=1e-12)
    assert plain_entropy(p) == pytest.approx(float(entropy(np.array(p))))
    assert plain_entropy([1.0, 0.0]) == 0.0


def test_every_bin_of_every_window_is_compared(stream):
    length = stream.subject.contract.input.binning.bins
    expected = list(stream._expected())
    assert [said.bin for said in expected] == list(range(runtime_check.WINDOWS * length))
    assert list(stream.faults()) == []
    assert stream.compared > len(expected)


def test_early_exit_ends_a_window_before_its_last_bin(stream):
    expected = list(stream._expected())
    stop_at, ended = stream._early(expected)
    assert len(ended) < len(expected)
    assert any(said.early for said in ended)
    for said in ended:
        assert said.early <= (max(plain_probabilities(said.logits)) >= stop_at)


@pytest.mark.parametrize("change", [{"final": True}, {"early": True}, {"bin": 1}])
def test_one_decision_that_differs_is_told_with_its_bin(stream, change):
    expected = list(stream._expected())
    wrong = [expected[0]._replace(**change), *expected[1:]]
    (line,) = stream._compare("this", stream._in_pieces(None), wrong)
    assert line.startswith("this: bin ")
    (line,) = stream._compare("this", stream._in_pieces(None)[:-1], expected)
    assert line == f"this: {len(expected) - 1} decisions; expected {len(expected)}"
