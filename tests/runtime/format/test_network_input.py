"""Counts that are scaled to a sum: whole numbers, the same in Python's fractions, in frames and in streams."""

import json
from fractions import Fraction
from math import floor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from axonnx.base.errors import AxonnxError
from axonnx.runtime.binning import Binning, Sensor
from axonnx.runtime.format.contract import InputContract
from axonnx.runtime.format.network_input import scale_counts, to_input
from axonnx.runtime.streams.frame_files import as_steps

COUNTS = st.lists(st.integers(0, 255), min_size=4, max_size=4)


def contract(**changed):
    return InputContract(**{"name": "x", "shape": (4,), "steps": 2, "scaled_to": 60, "shift": 2, **changed})


@given(first=COUNTS, second=COUNTS, total=st.sampled_from([1, 2, 7, 60, 255, 4096, 2**24]))
def test_each_frame_is_scaled_by_itself_and_rounded_half_up(first, second, total):
    found = scale_counts(np.array([first, second], np.uint8)[:, None], total)
    for frame, counts in zip(found[:, 0].tolist(), (first, second), strict=True):
        n = sum(counts)
        assert frame == [min(255, floor(Fraction(c * total, n) + Fraction(1, 2))) if n else 0 for c in counts]


def test_by_hand():
    assert scale_counts(np.array([[[1, 1, 2, 0]]]), 2).tolist() == [[[1, 1, 1, 0]]]  # halves go up
    assert scale_counts(np.zeros((1, 1, 4)), 2).tolist() == [[[0, 0, 0, 0]]]
    x = to_input(np.array([[[1, 0, 3, 0]], [[0, 0, 0, 9]]]), contract())
    assert x.tolist() == [[[3.75, 0.0, 11.25, 0.0]], [[0.0, 0.0, 0.0, 15.0]]]


def test_only_files_that_scale_or_end_bins_with_events_say_so():
    binning = Binning(sensor=Sensor(width=4, polarities=1), bins=2, bin_us=10)
    plain = contract(scaled_to=None, binning=binning)
    assert not {"scaled_to", "most_events"} & (set(plain.model_dump()) | set(json.loads(binning.model_dump_json())))
    stated = contract(binning=binning.model_copy(update={"most_events": 3}))
    assert InputContract.model_validate_json(stated.model_dump_json()) == stated
    assert (stated.scaled_to, stated.binning.most_events) == (60, 3)


def test_negative_counts_and_other_centres_are_refused():
    with pytest.raises(AxonnxError, match="integers from 0 to 255"):
        as_steps(np.array([[[1, 0, 0, 0], [0, -1, 0, 0]]]), contract(), "here")
    for wrong in ({"centre": 3}, {"largest": 300}):
        with pytest.raises(ValueError, match="scaled counts begin at 0 and end at 255"):
            contract(**wrong)
    with pytest.raises(ValueError, match="at least 2 µs"):
        Binning(sensor=Sensor(width=4), bins=2, bin_us=1, most_events=3)
