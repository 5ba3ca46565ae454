"""The warning about a collapse that is worse than another way to run the same network."""

import pytest

from axonnx.cli.build import advice
from axonnx.runtime.format.contract import AccuracyContract


def scored(**right: int) -> list[AccuracyContract]:
    draws = {"bayesian": 8}
    return [
        AccuracyContract(
            way=way,
            draws=draws.get(way, 1),
            right=count,
            samples=1000,
            accuracy=count / 1000,
            interval=(0.0, 1.0),
            nll=1.0,
        )
        for way, count in right.items()
    ]


def test_nothing_is_said_where_nothing_is_lost():
    assert advice(scored(bayesian=900, mean_field=880, file=890), "mfa", False) is None
    assert advice(scored(bayesian=700, mean_field=880, file=880), "mfa", False) is None


def test_a_small_loss_is_a_note_and_more_than_five_points_a_warning():
    note = advice(scored(bayesian=950, mean_field=900, file=900), "mfa", False)
    assert note.startswith(
        "the collapse costs accuracy: this file has 90.0 %, bayesian (8 passes) 95.0 % (5.0 points less). "
    )
    assert "Try --calibrate" in note
    warning = advice(scored(bayesian=950, mean_field=899, file=899), "mfa", True)
    assert warning.startswith(
        "warning: this collapse is a bad choice: this file has 89.9 %, bayesian (8 passes) 95.0 % (5.1"
    )
    assert "--calibrate" not in warning
    assert "--noise.anneal 0.5" in warning


@pytest.mark.parametrize("mode", ["sampled", "stochastic"])
def test_noise_that_was_never_trained_is_told_to_be_left_out(mode):
    text = advice(scored(bayesian=550, mean_field=781, file=237), mode, False)
    assert "23.7 %, mean-field, as trained 78.1 % (54.4 points less)" in text
    assert "export with --collapse mfa" in text
    assert "--noise.temper 0.01" in text


def test_a_collapse_that_keeps_noise_is_named_where_it_is_better_than_the_file_without():
    text = advice(scored(bayesian=900, mean_field=873, sampled=864, stochastic=889, file=873), "mfa", False)
    assert "(2.7 points less). --collapse stochastic has 88.9 %. Try --calibrate" in text
    alike = advice(scored(bayesian=900, mean_field=873, sampled=880, stochastic=883, file=873), "mfa", False)
    assert "--collapse" not in alike
    noisy = advice(scored(bayesian=900, mean_field=873, sampled=899, stochastic=860, file=860), "stochastic", False)
    assert "--collapse sampled" not in noisy


def test_what_pruning_and_rounding_cost_has_a_remedy_of_its_own():
    text = advice(scored(mean_field=900, unreduced=901, file=700), "mfa", False)
    assert text.endswith("Prune less, or store weights in more bits")
