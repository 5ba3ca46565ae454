"""Figures of merit against values worked out by hand, and against scikit-learn where it has them."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import brier_score_loss, confusion_matrix, log_loss

from axonnx.base.errors import AxonnxError
from axonnx.runtime.measure.metrics import bootstrap_intervals, expected_calibration_error, metrics_of, wilson_interval


def random_predictions(seed: int, samples: int = 200, classes: int = 5):
    generator = np.random.default_rng(seed)
    return generator.dirichlet(np.ones(classes), samples), generator.integers(classes, size=samples)


def test_by_hand():
    p = np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.5, 0.25, 0.25], [0.0, 0.0, 1.0]])
    found = metrics_of(p, np.array([0, 2, 0, 2]))
    assert found.samples == 4
    assert found.accuracy == 0.75  # the second is taken for class 1
    assert found.nll == pytest.approx(-(np.log(0.7) + np.log(0.3) + np.log(0.5) + np.log(1.0)) / 4)
    assert found.brier == pytest.approx(((0.09 + 0.04 + 0.01) + (0.01 + 0.36 + 0.49) + (0.25 + 0.125) + 0) / 4)
    assert found.confusion == [[2, 0, 0], [0, 0, 0], [0, 1, 1]]
    # Confidences 0.7, 0.6, 0.5 and 1 fall into four bins of one: |1−0.7| + |0−0.6| + |1−0.5| + |1−1|, over 4.
    assert found.ece == pytest.approx((0.3 + 0.6 + 0.5 + 0.0) / 4)


def test_samples_of_one_bin_of_confidence_are_averaged_before_the_gap_is_taken():
    confidence = np.array([0.81, 0.83, 0.82, 0.84, 0.21])
    right = np.array([True, True, False, True, False])
    expected = (4 * abs(0.75 - 0.825) + 1 * 0.21) / 5
    assert expected_calibration_error(confidence, right) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("confidence", "together"),
    [
        ((0.801, 0.865), True),
        ((0.81, 0.88), False),
        ((0.934, 1.0), True),
        ((0.0, 0.066), True),
        ((0.066, 0.067), False),
    ],
)
def test_there_are_fifteen_equal_bins_of_confidence(confidence, together):
    """One right and one wrong sample: their gaps are added before the modulus where they share a bin."""
    first, second = confidence
    expected = abs((1 - first) - second) / 2 if together else ((1 - first) + second) / 2
    assert expected_calibration_error(np.array(confidence), np.array([True, False])) == pytest.approx(expected)


def test_a_calibrated_oracle_has_no_calibration_error():
    assert metrics_of(np.eye(3), np.arange(3)).ece == 0.0
    halves = np.array([[0.5, 0.5]] * 10)
    assert metrics_of(halves, np.arange(10) % 2).ece == 0.0


@pytest.mark.parametrize("seed", range(5))
def test_against_scikit_learn(seed):
    p, labels = random_predictions(seed)
    found, known = metrics_of(p, labels), range(p.shape[1])
    assert found.nll == pytest.approx(log_loss(labels, p, labels=known), rel=1e-12)
    assert found.brier == pytest.approx(brier_score_loss(labels, p, labels=known, scale_by_half=False), rel=1e-12)
    assert found.confusion == confusion_matrix(labels, p.argmax(1), labels=known).tolist()
    assert found.accuracy == (p.argmax(1) == labels).mean()


def test_a_share_lies_in_its_interval_at_both_ends():
    for trials in range(1, 200):
        assert wilson_interval(0, trials)[0] == 0.0
        assert wilson_interval(trials, trials)[1] == 1.0


@given(st.integers(0, 2**31), st.integers(1, 60), st.integers(2, 12))
def test_bounds_that_always_hold(seed, samples, classes):
    found = metrics_of(*random_predictions(seed, samples, classes))
    low, high = found.accuracy_interval
    assert 0 <= low <= found.accuracy <= high <= 1
    assert 0 <= found.ece <= 1
    assert 0 <= found.brier <= 2
    assert found.nll >= 0
    assert np.sum(found.confusion) == samples
    assert np.trace(found.confusion) == round(found.accuracy * samples)


def test_a_class_that_was_ruled_out_costs_much_but_not_infinitely_much():
    found = metrics_of(np.array([[1.0, 0.0]]), np.array([1]))
    assert 700 < found.nll < 710
    assert json.loads(json.dumps(found.as_dict()))["nll"] == found.nll


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [  # R's prop.test(correct = FALSE), and Newcombe 1998, table I
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
        (20, 20, 0.8389, 1.0),
    ],
)
def test_the_wilson_interval_has_the_published_values(successes, trials, low, high):
    assert wilson_interval(successes, trials) == pytest.approx((low, high), abs=5e-5)


def test_the_interval_narrows_with_the_square_root_of_the_trials():
    widths = [np.diff(wilson_interval(n // 2, n))[0] for n in (1000, 4000)]
    assert widths[0] / widths[1] == pytest.approx(2, rel=1e-2)


def test_labels_of_few_bits_count_as_well():
    p, labels = random_predictions(0, 400, 20)
    assert metrics_of(p, labels.astype(np.uint8)) == metrics_of(p, labels)


@pytest.mark.parametrize(
    ("p", "labels"),
    [
        (np.zeros((0, 3)), np.zeros(0, int)),
        (np.ones((2, 3)) / 3, np.array([0])),
        (np.ones(3) / 3, np.array([0, 1, 2])),
    ],
)
def test_what_has_no_figures_is_refused(p, labels):
    with pytest.raises(AxonnxError, match=r"expected \[N, classes\] with N > 0"):
        metrics_of(p, labels)


@pytest.mark.parametrize("label", [-1, 3])
def test_a_label_without_a_class_is_refused(label):
    with pytest.raises(AxonnxError, match="for 3 classes"):
        metrics_of(np.ones((2, 3)) / 3, np.array([0, label]))


def test_no_trials_have_no_interval():
    with pytest.raises(AxonnxError, match="0 trials"):
        wilson_interval(0, 0)


def test_bootstrap_intervals_of_means_are_as_wide_as_their_standard_error():
    p, labels = random_predictions(1, 800)
    found, intervals = metrics_of(p, labels), bootstrap_intervals(p, labels)
    for name, each in (("nll", -np.log(p[np.arange(800), labels])), ("brier", ((p - np.eye(5)[labels]) ** 2).sum(1))):
        low, high = intervals[name]
        assert low < getattr(found, name) < high
        assert high - low == pytest.approx(2 * 1.96 * each.std() / np.sqrt(800), rel=0.1)  # 1,000 resamples


def test_the_bootstrap_corrects_the_calibration_error_of_few_samples():
    random = np.random.default_rng(0)
    top = random.uniform(0.5, 1.0, 300)
    labels = (random.random(300) >= top).astype(int)  # calibrated: the ECE of all there could be is 0
    p = np.stack([top, 1 - top], 1)
    low, high = bootstrap_intervals(p, labels)["ece"]
    assert 0 <= low < high < metrics_of(p, labels).ece + 0.03
    assert low < 0.02 < metrics_of(p, labels).ece


def test_bootstrap_intervals_repeat_with_their_seed():
    p, labels = random_predictions(2, 50)
    assert bootstrap_intervals(p, labels, 3) == bootstrap_intervals(p, labels, 3) != bootstrap_intervals(p, labels, 4)
