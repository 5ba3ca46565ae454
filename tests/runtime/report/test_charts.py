"""Axes and drawings, with nothing, with one value, and with values that are none."""

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from axonnx.base.palette import SERIES
from axonnx.runtime.report.charts import (
    Bar,
    bar_chart,
    count_axis,
    curves,
    line,
    linear_axis,
    log_axis,
    positive,
    rates,
    round_step,
    share_axis,
    shares,
    stacked_bar,
)
from axonnx.runtime.report.material import PartMetrics, RunFiles
from axonnx.runtime.report.samples import decision, evenly, membrane, raster, time_axis
from axonnx.runtime.report.summary import training_section

from .html_check import Page

NAN = math.nan
ordinary = st.floats(-1e12, 1e12, allow_nan=False).filter(lambda value: value == 0 or abs(value) > 1e-9)


@given(st.lists(ordinary, min_size=1, max_size=6))
def test_a_linear_axis_holds_all_values_and_its_ticks(values):
    axis = linear_axis(values)
    assert all(-1e-6 <= axis.at(shown) <= 1 + 1e-6 for shown in (*values, *axis.ticks))
    assert 1 <= len(axis.ticks) <= 8


@given(st.lists(st.floats(1e-30, 1e30), min_size=1, max_size=6))
def test_a_log_axis_holds_all_values(values):
    axis = log_axis(values)
    assert all(-1e-9 <= axis.at(value) <= 1 + 1e-9 for value in values)
    assert 2 <= len(axis.ticks) <= 6


@pytest.mark.parametrize("axis", [linear_axis([]), linear_axis([NAN]), linear_axis([0.0], zero=True), log_axis([0.0])])
def test_an_axis_of_nothing_is_one_still(axis):
    assert axis.low < axis.high
    assert axis.ticks


def test_steps_are_round():
    assert [round_step(rough) for rough in (0.9, 1.0, 1.1, 2.2, 3.0, 7.0)] == [1.0, 1.0, 2.0, 2.5, 5.0, 10.0]


def test_shares_end_at_one():
    assert share_axis(low=0.9).ticks[-1] == pytest.approx(1.0)
    assert [share_axis().write(tick) for tick in share_axis().ticks] == ["0 %", "25 %", "50 %", "75 %", "100 %"]


def test_epochs_are_whole_numbers():
    assert count_axis(1, 20, "epoch").ticks == (1.0, 5.0, 10.0, 15.0, 20.0)
    assert count_axis(1, 1, "epoch").at(1) == 0.5


def test_a_line_has_a_gap_where_there_is_no_number():
    x, y = count_axis(1, 5, ""), linear_axis([0.0, 1.0])
    drawn = line(x, y, zip(range(1, 6), [0.0, 0.5, NAN, 1.0, math.inf], strict=True), 1)
    assert drawn.count("M") == 2
    assert drawn.count("L") == 1
    assert "nan" not in drawn
    assert "inf" not in drawn


def test_a_line_of_nothing_is_nothing():
    assert line(count_axis(1, 2, ""), linear_axis([]), [(1, NAN)], 1) == ""


def test_zero_has_no_place_on_a_log_axis():
    series = {"a": [100.0, 0.0, 0.01]}
    assert positive(series).log
    drawn = curves("t", count_axis(1, 3, "epoch"), [1, 2, 3], series, positive(series))
    assert Page(drawn).count("path", "dot") == 2


@pytest.mark.parametrize("number", [1, 6, 7, 15, 26])
def test_more_series_than_colours_are_charts_of_their_own(number):
    series = {f"s{at}": [0.1, 0.2] for at in range(number)}
    drawn = curves("t", count_axis(1, 2, ""), [1, 2], series, rates(series), note="once")
    figures = drawn.split("<figure")[1:]
    assert len(figures) == -(-number // SERIES)
    assert all(Page(f"<figure{figure}").count("path", "line") <= SERIES for figure in figures)
    page = Page(drawn)
    assert page.faults == []
    assert page.count("path", "line") == page.count("li") == number
    assert page.text.count("once") == 1


def test_accuracies_begin_where_nothing_is_cut_off():
    assert shares({"a": [0.97, 0.99]}).low == 0.9
    assert shares({"a": [0.7, 0.99]}).low == 0.5
    assert shares({"a": [0.1, NAN]}).low == 0.0
    assert shares({}).low == 0.0


def test_bars_of_unknown_values_are_named_and_empty():
    page = Page(bar_chart("t", [Bar("<a>", None, "–"), Bar("b", NAN, "–", (NAN, 1.0))], share_axis()))
    assert page.faults == []
    assert page.count("rect", "fill") == 0
    assert "<a>" in page.text


def test_parts_of_nothing_have_no_width():
    assert 'width="0"' in stacked_bar("t", {"a": 0.0}, 0.0, {"a": "0 J"})


def test_a_raster_draws_each_spike_once():
    spikes = np.zeros((5, 4), bool)
    spikes[1, 2] = spikes[4, 0] = True
    drawn = raster("t", spikes, 10)
    assert "M1 2h.8M4 0h.8" in drawn


def test_a_raster_of_many_neurons_shows_some_and_says_so():
    assert "(16 of them shown)" in raster("t", np.ones((2, 1000), bool), 16)


@given(st.integers(1, 500), st.integers(1, 500))
def test_a_even_choice_is_ascending_and_keeps_both_ends(total, wanted):
    chosen = evenly(total, wanted)
    assert chosen == sorted(set(chosen))
    assert len(chosen) == min(total, wanted)
    assert chosen[0] == 0
    assert chosen[-1] == total - 1 or wanted == 1


def test_a_membrane_at_rest_can_be_drawn():
    page = Page(membrane("t", np.zeros(4, np.float32), 0.0, np.zeros(4, bool), 1))
    assert page.faults == []
    assert page.count("line", "threshold") == 1


def test_a_membrane_without_threshold_has_no_line():
    assert Page(membrane("t", np.ones(4, np.float32), None, np.zeros(4, bool), 1)).count("line", "threshold") == 0


def test_the_decision_colours_the_likeliest_classes():
    probabilities = np.array([[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]])
    page = Page(decision("t", probabilities, ["a", "b", "<c>"], 2))
    assert page.count("path", "c1") == page.count("path", "c2") == 1
    assert page.count("path", "thin") == 1
    assert "<c>" in page.text


def test_time_is_written_in_milliseconds_where_known():
    assert Page(time_axis(30, 10.0)).text.split() == ["0", "ms", "50", "100", "150", "200", "250"]
    assert Page(time_axis(10, None)).text.split() == ["0", "2", "4", "6", "8"]


def test_a_run_of_one_epoch_is_drawn():
    rows = ({"epoch": "1", "phase": "train", "loss": "0.5", "train_accuracy": "0.9", "rate/a": "0.1"},)
    page = Page(training_section(RunFiles(path=Path("run"), rows=rows)))
    assert page.faults == []
    assert page.count("path", "dot") == 3
    assert "results.csv has no values for this chart" in page.text  # gradients


def test_values_of_training_that_are_none_leave_gaps():
    rows = tuple(
        {"epoch": str(e), "loss": loss, "test_accuracy": ""} for e, loss in enumerate(["1", "nan", "x", "2"], 1)
    )
    page = Page(training_section(RunFiles(path=Path("run"), rows=rows, metrics={"test": PartMetrics(accuracy=NAN)})))
    assert page.count("path", "dot") == 2
    assert page.faults == []


def test_a_run_without_epochs_says_so():
    assert "no finished epoch" in Page(training_section(RunFiles(path=Path("run")))).text


def test_fine_tuning_is_marked():
    rows = tuple({"epoch": str(e), "phase": phase, "loss": "1"} for e, phase in enumerate(["a", "a", "b"], 1))
    page = Page(training_section(RunFiles(path=Path("run"), rows=rows)))
    assert page.count("line", "mark") == 1
    assert "fine-tuning begins" in page.text
