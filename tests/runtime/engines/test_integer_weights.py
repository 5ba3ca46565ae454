"""Weights as small integers: exactly the floats, and only where no sum of them can leave its width."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from axonnx.runtime.engines.table.narrow import BYTES, FINEST_UNIT, SHORTS, finest_unit, narrowed

UNITS = st.integers(0, FINEST_UNIT)


def numbers(largest):
    return arrays(np.int64, st.tuples(st.integers(1, 6), st.integers(1, 5)), elements=st.integers(-largest, largest))


@given(numbers(2**24 - 1), UNITS)
def test_the_unit_is_the_coarsest_that_all_weights_are_multiples_of(whole, unit):
    values = np.ldexp(whole.astype(np.float64), -unit).astype(np.float32)
    found = finest_unit(values)
    multiples = np.ldexp(values.astype(np.float64), found)
    assert np.array_equal(multiples, np.rint(multiples))
    assert found == 0 or (np.rint(multiples / 2) != multiples / 2).any()


@given(numbers(40_000), UNITS)
def test_integers_are_the_weights_and_their_sums_fit(whole, unit):
    rows = np.ldexp(whole.astype(np.float64), -unit).astype(np.float32)
    narrow = narrowed(rows)
    if narrow is None:
        assert np.abs(np.ldexp(rows.astype(np.float64), finest_unit(rows))).max() > np.iinfo(np.int16).max
        return
    assert np.array_equal(np.ldexp(narrow.numbers.astype(np.float64), -narrow.unit), rows)
    sums = np.abs(narrow.numbers.astype(np.int64)).sum(0).max()
    assert narrow.numbers.dtype == {SHORTS: np.int16, BYTES: np.int8}[narrow.stored]
    assert sums <= (2**15 - 1 if narrow.stored == BYTES else 2**24 - 1)


@pytest.mark.parametrize(
    ("largest", "inputs", "stored"),
    [
        (127, 258, BYTES),
        (127, 259, SHORTS),
        (129, 1, SHORTS),
        (32_767, 512, SHORTS),
        (32_767, 513, None),
        (32_769, 1, None),
    ],
)
def test_what_decides_is_the_largest_weight_and_the_largest_sum(largest, inputs, stored):
    found = narrowed(np.full((inputs, 1), largest, np.float32))
    assert (found and found.stored) == stored


def test_weights_on_no_grid_stay_floats():
    assert narrowed(np.array([[1.0, 2.0**-130]], np.float32)) is None
    assert narrowed(np.array([[0.1, 0.2]], np.float32)) is None
    assert narrowed(np.zeros((3, 2), np.float32)).stored == BYTES
