"""The live panel: for which networks there is one, what it says where there is none, and that names stay text."""

from dataclasses import replace

import numpy as np
import pytest

from axonnx.runtime.binning import Binning, Sensor
from axonnx.runtime.format.contract import InputContract
from axonnx.runtime.report import panel as panel_module
from axonnx.runtime.report.material import Material
from axonnx.runtime.report.model_view import view_model
from axonnx.runtime.report.page import render
from axonnx.runtime.report.panel import MOST_NUMBERS, Example, Surface, _examples, surface, try_page

from ..engines.hand_made import contract, neuron_program
from .html_check import Page


def stated(shape, steps=4, kind="spiking", sensor=None, **more):
    binning = None if sensor is None else Binning(sensor=Sensor(width=sensor[0], height=sensor[1]), bins=4, bin_us=1000)
    entering = InputContract(name="events", shape=shape, steps=steps, binning=binning, **more)
    return contract((4,), 4, spiking=True).model_copy(update={"input": entering, "kind": kind})


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (stated((2, 6, 8), sensor=(8, 6)), Surface("camera", 8, 6)),
        (stated((2, 1, 700), sensor=(700, 1)), Surface("paint", 700, 1)),
        (stated((2, 6, 8)), Surface("camera", 8, 6)),
        (stated((2, 6, 8), centre=10), None),
        (stated((1, 6, 8), None, "binary"), Surface("image", 8, 6)),
        (stated((3, 6, 8), None, "binary"), Surface("image", 8, 6)),
        (stated((2, 6, 8), None, "binary"), None),
        (stated((23,)), None),
    ],
)
def test_what_one_draws_on_follows_from_the_contract(given, expected):
    assert surface(given) == expected


def test_a_network_that_is_too_large_is_left_out_with_the_command(model, monkeypatch):
    material = Material(view_model(model), "now")
    assert "function saccade" in render(material)
    monkeypatch.setattr(panel_module, "MOST_BYTES", 1000)
    page = render(material)
    assert "function saccade" not in page
    assert Page(page).faults == []
    assert "a report holds at most 1" in Page(page).text
    assert "axonnx compile tiny.onnx -o js --target js" in Page(page).text


def test_a_network_that_cannot_be_drawn_for_is_told():
    program = neuron_program(
        "LIF", 4, {name: np.float32(1).reshape(()) for name in ("threshold", "decay")}, False, True
    )
    page = Page(try_page(program))
    assert page.faults == []
    assert "neither a picture nor events, so it cannot be drawn" in page.text


def test_samples_that_a_page_has_no_room_for_are_left_out():
    few, many = np.ones((2, 3), np.uint8), np.ones((2, MOST_NUMBERS), np.uint8)
    assert _examples([Example("a", many)]) == []
    group, script = _examples([Example("<a>", few), Example("b", many)])
    assert group.count("<button") == 1
    assert "<a>" not in group
    assert "[[[0,1,1,1,2,1],[0,1,1,1,2,1]]]" in script


def test_names_of_files_classes_and_layers_stay_text(model):
    view = view_model(model)
    evil = "</script><img src=x onerror=alert(1)>"
    layers = tuple(replace(layer, name=evil) for layer in view.program.layers)
    hostile = view.contract.model_copy(update={"classes": (evil, *view.contract.classes[1:])})
    program = replace(view.program, name=evil, contract=hostile, layers=layers)
    page = Page(try_page(program))
    assert page.faults == []
    assert page.count("img") == 0
    assert page.count("script") == 1
