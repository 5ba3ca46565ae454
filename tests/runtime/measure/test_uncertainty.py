"""Signals of uncertainty beside scikit-learn's area under the ROC curve and plain loops; sets of classes by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from axonnx.base.errors import AxonnxError
from axonnx.runtime.measure.uncertainty import COVERAGES, MADE, auroc, risks, sets_of, signal_of, signals_of

FEW_VALUES = st.lists(st.integers(0, 4), min_size=1, max_size=12)  # with many ties


@given(FEW_VALUES, FEW_VALUES)
def test_auroc_is_that_of_scikit_learn_with_ties(lower, higher):
    low, high = np.array(lower, float), np.array(higher, float)
    expected = roc_auc_score([0] * len(low) + [1] * len(high), np.concatenate([low, high]))
    assert auroc(low, high) == pytest.approx(expected, abs=1e-12)


def test_auroc_of_nothing_is_none():
    assert auroc(np.zeros(0), np.ones(3)) is None
    assert auroc(np.ones(3), np.zeros(0)) is None


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=1, max_size=12))
def test_risks_are_means_over_all_orders_of_equal_signals(rows):
    """A plain loop: what is answered before counts whole, of the group that is cut the mean share of errors."""
    uncertain, right = (np.array(column) for column in zip(*rows, strict=True))
    expected = []
    for count in range(1, len(rows) + 1):
        limit = sorted(uncertain)[count - 1]
        before = [not ok for value, ok in rows if value < limit]
        group = [not ok for value, ok in rows if value == limit]
        expected.append((sum(before) + (count - len(before)) * sum(group) / len(group)) / count)
    assert risks(uncertain.astype(float), right) == pytest.approx(expected)


def test_a_perfect_signal_and_its_opposite():
    right = np.array([True] * 8 + [False] * 2)
    good, bad = (signal_of(sign * np.arange(10.0), right, {"strange": np.full(4, 20.0)}) for sign in (1, -1))
    assert (good.errors, bad.errors) == (1.0, 0.0)
    assert good.unknown == {"strange": 1.0}
    assert good.risk[COVERAGES.index(0.8)] == 0.0
    assert good.risk[-1] == bad.risk[-1] == pytest.approx(0.2)
    assert good.aurc == pytest.approx((1 / 9 + 2 / 10) / 10)
    assert bad.aurc > 0.4


def test_signals_grow_with_doubt():
    p = np.array([[0.98, 0.01, 0.01], [0.4, 0.3, 0.3]])
    found = signals_of(p, np.array([0.0, 0.2]))
    assert list(found) == ["entropy", "maximum probability", "mutual information"]
    assert all(values[1] > values[0] for values in found.values())
    assert "mutual information" not in signals_of(p, None)


def test_sets_by_hand():
    possible = np.array([[[1, 1, 0], [1, 0, 0], [0, 1, 1]], [[1, 0, 0], [1, 0, 0], [0, 1, 1]]], bool)
    found = sets_of(possible, np.array([[0, 0, 1], [0, 0, 2]]), np.array([1, 0, 2]), 0.9)
    assert found.held == pytest.approx((1.0, 2 / 3))
    assert found.size == pytest.approx((5 / 3, 4 / 3))
    assert found.answered == pytest.approx((1 / 3, 2 / 3))
    assert found.right == (1.0, 0.5)
    assert found.interval[0] < 2 / 3 < found.interval[1]


@pytest.mark.parametrize("kind", MADE)
def test_unknown_input_has_the_counts_of_the_data_in_other_places(kind):
    frames = np.random.default_rng(0).integers(0, 4, (3, 5, 2, 4, 6), np.uint8)
    made = MADE[kind](frames, np.random.default_rng(1))
    assert (made.shape, made.dtype) == (frames.shape, frames.dtype)
    assert all(np.array_equal(np.sort(a, None), np.sort(b, None)) for a, b in zip(made, frames, strict=True))
    assert not np.array_equal(made, frames)
    if kind == "turned":
        assert np.array_equal(made[..., 0, 0], frames[..., -1, -1])
    if kind == "shuffled":
        assert all(any(np.array_equal(step, own) for own in frames[0]) for step in made[0])


def test_one_time_step_has_no_other_order():
    with pytest.raises(AxonnxError, match="these samples have one"):
        MADE["shuffled"](np.zeros((2, 1, 1, 2, 2), np.uint8), np.random.default_rng(0))
