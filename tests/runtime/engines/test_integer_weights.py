"""Weights as small integers: exactly the floats, and only where no sum of them can leave its width."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from axonnx.runtime.codegen.rows import BYTES, FLOATS, SHORTS
from axonnx.runtime.codegen.weights import COARSEST_UNIT, FINEST_UNIT, finest_unit, narrowed

UNITS = st.integers(0, FINEST_UNIT)


def numbers(largest):
    return arrays(np.int64, st.tuples(st.integers(1, 6), st.integers(1, 5)), elements=st.integers(-largest, largest))


@given(numbers(2**24 - 1), UNITS)
def test_the_unit_is_the_coarsest_that_all_weights_are_multiples_of(whole, unit):
    values = np.ldexp(whole.astype(np.float64), -unit).astype(np.float32)
    found = finest_unit(values)
    multiples = np.ldexp(values.astype(np.float64), found)
    assert np.array_equal(multiples, np.rint(multiples))
    assert found == COARSEST_UNIT or (np.rint(multiples / 2) != multiples / 2).any()


@given(numbers(40_000), UNITS)
def test_integers_are_the_weights_and_their_sums_fit(whole, unit):
    rows = np.ldexp(whole.astype(np.float64), -unit).astype(np.float32)
    stored, found, integers = narrowed(rows[None])
    if stored == FLOATS:
        assert np.abs(np.ldexp(rows.astype(np.float64), finest_unit(rows))).max() > np.iinfo(np.int16).max
        assert np.array_equal(integers[0], rows)
        return
    assert np.array_equal(np.ldexp(integers[0].astype(np.float64), -found), rows)
    sums = np.abs(integers[0].astype(np.int64)).sum(0).max()
    assert integers.dtype == {SHORTS: np.int16, BYTES: np.int8}[stored]
    assert sums <= 2**24 - 1


@pytest.mark.parametrize(
    ("largest", "inputs", "stored"),
    [
        (127, 132_104, BYTES),
        (127, 132_105, FLOATS),
        (129, 1, SHORTS),
        (32_767, 512, SHORTS),
        (32_767, 513, FLOATS),
        (32_769, 1, FLOATS),
    ],
)
def test_what_decides_is_the_largest_weight_and_the_largest_sum(largest, inputs, stored):
    assert narrowed(np.full((1, inputs, 1), largest, np.float32))[0] == stored


def test_weights_on_no_grid_stay_floats():
    assert narrowed(np.array([[[1.0, 2.0**-130]]], np.float32))[0] == FLOATS
    assert narrowed(np.array([[[0.1, 0.2]]], np.float32))[0] == FLOATS
    assert narrowed(np.zeros((1, 3, 2), np.float32))[0] == BYTES
