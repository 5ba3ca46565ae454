"""Random numbers of augmentation: what they depend on, and that they are as uniform as they claim."""

import numpy as np
import pytest

from axonnx.base.errors import AxonnxError
from axonnx.train.data.draws import WORDS, Draws, places


def test_a_sample_has_its_draws_in_whatever_company():
    alone = Draws(3, 5, np.array([7])).unit[0]
    others = Draws(3, 5, np.array([1, 7, 4])).unit
    assert np.array_equal(others[1], alone)
    assert not np.isin(others[[0, 2]], alone).any()


def test_seed_epoch_and_sample_each_count():
    keys = [(3, 5, 7), (4, 5, 7), (3, 6, 7), (3, 5, 8), (3 + 2**32, 5, 7)]
    found = {Draws(seed, epoch, np.array([sample])).unit.tobytes() for seed, epoch, sample in keys}
    assert len(found) == len(keys)


def test_draws_are_uniform_and_do_not_go_together():
    unit = Draws(0, 0, np.arange(20_000)).unit
    assert unit.shape == (20_000, WORDS)
    assert (unit > 0).all()
    assert (unit < 1).all()
    assert np.abs(unit.mean(0) - 0.5).max() < 5 / np.sqrt(12 * len(unit))
    assert np.abs(np.corrcoef(unit.T) - np.eye(WORDS)).max() < 5 / np.sqrt(len(unit))


def test_whole_numbers_reach_both_ends_evenly():
    drawn = Draws(0, 0, np.arange(7000)).whole(0, 3)
    assert np.bincount(drawn + 3, minlength=7).min() > 850
    assert set(drawn.tolist()) == set(range(-3, 4))
    assert not Draws(0, 0, np.arange(9)).whole(0, 0).any()


def test_a_seed_that_the_counter_cannot_hold_is_refused():
    with pytest.raises(AxonnxError, match="seed is"):
        Draws(2**64, 0, np.array([0]))


def test_places_by_hand():
    yes, no, same, still = np.array([True]), np.array([False]), np.ones(1), np.zeros(1, np.int64)
    assert places(4, no, same, still).tolist() == [[0, 1, 2, 3]]
    assert places(4, yes, same, still).tolist() == [[3, 2, 1, 0]]
    assert places(4, yes, same, still + 2).tolist() == [[5, 4, 3, 2]]
    assert places(5, no, same * 1.5, still).tolist() == [[-1, 0, 2, 4, 5]]  # 2 ± 3 and 2 ± 1.5, ties to even
