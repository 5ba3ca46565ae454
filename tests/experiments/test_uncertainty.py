"""Entropy, disagreement, rejection and the separation of known from unknown."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from axonnx.runtime.streams.probabilities import entropy, mutual_information
from experiments.measures.uncertainty import _accuracy_at, _auroc

LOGITS = arrays(np.float64, array_shapes(min_dims=3, max_dims=3, max_side=5), elements=st.floats(-30, 30))


def softmax(logits):
    raised = np.exp(logits - logits.max(-1, keepdims=True))
    return raised / raised.sum(-1, keepdims=True)


@given(LOGITS)
def test_disagreement_is_between_zero_and_the_entropy(logits):
    p = softmax(logits)
    total, between = entropy(p.mean(0)), mutual_information(p)
    assert (between >= -1e-12).all()
    assert (between <= total + 1e-12).all()
    assert (total <= np.log(p.shape[-1]) + 1e-12).all()


def test_passes_that_agree_have_nothing_between_them():
    p = np.tile(softmax(np.array([[1.0, 2.0, 0.5]])), (4, 1, 1))
    assert mutual_information(p) == pytest.approx(0.0, abs=1e-15)


def test_separation():
    low, high = np.array([0.1, 0.2]), np.array([0.3, 0.9, 0.4])
    assert _auroc(low, high) == 1.0
    assert _auroc(high, low) == 0.0
    assert _auroc(np.zeros(3), np.zeros(2)) is None


def test_rejecting_the_unsure_leaves_the_right():
    uncertain, right = np.array([0.9, 0.1, 0.2, 0.8]), np.array([False, True, True, False])
    assert _accuracy_at(uncertain, right, 1.0) == 0.5
    assert _accuracy_at(uncertain, right, 0.5) == 1.0
