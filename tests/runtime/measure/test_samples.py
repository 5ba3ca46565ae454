"""A choice of samples: stratified, seeded, nested, the same everywhere."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from axonnx.base.errors import AxonnxError
from axonnx.runtime.measure.samples import choose_samples

SORTED_BY_CLASS = np.repeat(np.arange(10), 36)


def test_data_sorted_by_class_gives_every_class_its_share():
    assert np.bincount(SORTED_BY_CLASS[choose_samples(SORTED_BY_CLASS, 20)]).tolist() == [2] * 10
    assert np.bincount(SORTED_BY_CLASS[choose_samples(SORTED_BY_CLASS, 64)]).min() == 6


@given(st.lists(st.integers(0, 4), min_size=1, max_size=60), st.integers(1, 70), st.integers(0, 5))
def test_a_choice_is_stratified_and_nested(labels, count, seed):
    given, chosen = np.array(labels), choose_samples(labels, count, seed)
    assert len(chosen) == min(count, len(given))
    assert (np.diff(chosen) > 0).all()
    expected = np.bincount(given, minlength=5) * len(chosen) / len(given)
    assert (np.abs(np.bincount(given[chosen], minlength=5) - expected) < 2).all()
    assert set(chosen) <= set(choose_samples(labels, count + 1, seed))


@given(st.integers(1, 200))
def test_equal_classes_differ_by_one_sample_at_most(count):
    counts = np.bincount(SORTED_BY_CLASS[choose_samples(SORTED_BY_CLASS, count)], minlength=10)
    assert counts.max() - counts.min() <= 1


def test_a_large_class_takes_no_more_than_its_share_from_many_small_ones():
    labels = np.array([0] * 50 + list(range(1, 51)))
    assert 11 <= (labels[choose_samples(labels, 25)] == 0).sum() <= 14


def test_the_choice_is_written_down():
    """Figures of earlier versions stay comparable: these numbers never change."""
    assert choose_samples([0, 0, 0, 0, 1, 1, 1, 1], 4).tolist() == [2, 3, 4, 7]


def test_seeds_differ_and_all_is_all():
    assert choose_samples(SORTED_BY_CLASS, 30, 0).tolist() != choose_samples(SORTED_BY_CLASS, 30, 1).tolist()
    for enough in (None, 360, 1000):
        assert choose_samples(SORTED_BY_CLASS, enough).tolist() == list(range(360))
    assert choose_samples([], None).tolist() == []
    with pytest.raises(AxonnxError, match="a choice of 0 samples; expected 1 or more"):
        choose_samples(SORTED_BY_CLASS, 0)
