"""Probabilities, doubts and early exit, by hand."""

import numpy as np
import pytest

from axonnx.runtime.measure.profile import early_exit
from axonnx.runtime.streams.probabilities import (
    behind_the_best,
    entropy,
    exit_steps,
    is_sure,
    joint_logits,
    mean_probabilities,
    mutual_information,
    possible_classes,
    softmax,
)

# [T = 3, N = 2, classes = 2]: the first sample is sure at the second step, and wrong at the first; the other never is.
OVER_TIME = np.array([[[0.6, 0.4], [0.5, 0.5]], [[0.2, 0.8], [0.45, 0.55]], [[0.1, 0.9], [0.6, 0.4]]])


def test_a_tie_with_the_limit_is_sure():
    assert is_sure(np.array([0.2, 0.8]), 0.8)
    assert not is_sure(np.array([0.2, 0.8]), np.nextafter(0.8, 1.0))


def test_a_window_ends_at_its_first_sure_step_or_at_its_last():
    assert exit_steps(OVER_TIME, 0.8).tolist() == [1, 2]
    assert exit_steps(OVER_TIME, 0.0).tolist() == [0, 0]


def test_early_exit_counts_what_was_decided_then():
    found = early_exit(OVER_TIME, np.array([1, 0]), 0.8)
    assert (found.stop_at, found.accuracy, found.mean_steps) == (0.8, 1.0, 2.5)
    assert early_exit(OVER_TIME, np.array([1, 0]), 0.0).accuracy == 0.5  # [0.6, 0.4] says 0 of the first


def test_members_that_agree_have_no_mutual_information_and_opposites_have_log_two():
    sure = np.array([[[1.0, 0.0]], [[0.0, 1.0]]])
    assert mutual_information(sure) == pytest.approx(np.log(2), abs=1e-15)
    assert mutual_information(sure[[0, 0]]).tolist() == [0.0]
    assert entropy(np.array([0.5, 0.5])) == pytest.approx(np.log(2), abs=1e-15)


def test_logits_of_one_network_are_its_own_and_of_an_ensemble_those_of_its_mean():
    members = np.array([[0.0, 1.0, -2.0], [3.0, 0.5, 0.0]], np.float32)
    assert np.array_equal(joint_logits(members[:1]), members[0])
    assert softmax(joint_logits(members)) == pytest.approx(mean_probabilities(members), abs=1e-6)


def test_a_temperature_is_a_power_and_moves_no_decision():
    members = np.array([[0.0, 1.0, -2.0], [3.0, 0.5, 0.0]], np.float32)
    for given in (members[:1], members):
        plain = mean_probabilities(given)
        for scale in (0.25, 3.0):
            expected = plain**scale / (plain**scale).sum()
            assert mean_probabilities(given, scale) == pytest.approx(expected, rel=1e-12)
        assert mean_probabilities(given, 1.0).tolist() == plain.tolist()


def test_classes_are_possible_up_to_the_margin_and_the_winner_always():
    one = np.array([[2.0, 1.5, -1.0]], np.float32)
    assert possible_classes(one, 0.5).tolist() == [True, True, False]  # exactly on the margin
    assert possible_classes(one, np.nextafter(0.5, 0.0)).tolist() == [True, False, False]
    assert possible_classes(np.float32([[1.0, 1.0, 0.0]]), 0.0).tolist() == [True, True, False]
    # The sums prefer the second class, the mean probabilities the first one: both are possible.
    split = np.array([[9.0, 0.0], [0.0, 1.0], [-9.0, 0.0]], np.float32) + np.float32([0.0, 0.2])
    assert behind_the_best(split)[0] > 0
    winner = int(joint_logits(split).argmax())
    assert possible_classes(split, 0.0)[winner]
    over_batch = possible_classes(np.stack([one, one], 1), 0.5)
    assert over_batch.tolist() == [[True, True, False]] * 2
