"""The drawing of a network: every synapse leads where the program leads it, and all that is drawn can be read."""

from pathlib import Path

import pytest

from axonnx.runtime.report.architecture import Box, Line, architecture_section, network_drawing
from axonnx.runtime.report.material import Material
from axonnx.runtime.report.model_view import sources, view_model, wires

from .html_check import Page

RELEASED = Path(__file__).parents[2] / "released" / "version-1"


def drawn(name):
    return [(wire.source, wire.target, wire.kind, wire.synapse) for wire in wires(view_model(RELEASED / name).program)]


def test_recurrent_layers_have_spikes_of_the_step_before():
    assert drawn("recurrent-int8.onnx") == [
        ("input", "hidden.0.neuron", "forward", "hidden.0.synapse"),
        ("hidden.0.neuron", "hidden.0.neuron", "recurrent", "hidden.0.neuron/Gemm"),
        ("hidden.0.neuron", "hidden.1.neuron", "forward", "hidden.1.synapse"),
        ("hidden.1.neuron", "hidden.1.neuron", "recurrent", "hidden.1.neuron/Gemm"),
        ("hidden.1.neuron", "readout", "forward", "readout/Gemm"),
    ]


def test_residual_sums_go_on_as_one_stream():
    first, second, third, last = (
        f"trunk.{name}" for name in ("blocks.0.neuron1", "blocks.1.neuron1", "neuron", "stem")
    )
    found = drawn("resnet-mfa.onnx")
    assert [wire[:3] for wire in found if wire[2] == "stream"] == [(first, second, "stream"), (second, third, "stream")]
    assert found[0] == ("input", first, "forward", last)


@pytest.mark.parametrize("path", sorted(RELEASED.glob("*.onnx")), ids=lambda path: path.stem)
def test_every_synapse_is_drawn_once_and_every_layer_has_its_box(path):
    view = view_model(path)
    synapses = [wire.synapse for wire in wires(view.program) if wire.synapse is not None]
    assert sorted(synapses) == sorted(view.synapses)
    page = Page(f"<!DOCTYPE html><html lang='en'><body>{architecture_section(Material(view, 'now'))}</body></html>")
    assert page.count("div", "box") == 1 + len(view.layers)
    ends = {(wire.source, wire.target, wire.kind) for wire in wires(view.program)}
    shown = {layer.name for layer in view.layers} | {"input"}
    assert page.count("p", "wire") + page.count("p", "other") == len(
        [each for each in ends if {each[0], each[1]} <= shown]
    )
    assert all(layer.name in page.text for layer in view.layers)


@pytest.mark.parametrize("path", sorted(RELEASED.parent.rglob("*.onnx")), ids=lambda path: path.stem)
def test_every_synapse_belongs_to_one_layer(path):
    """Also where a layer has two operators: synapses with a time constant of their own, and its neurons."""
    view = view_model(path)
    assert sorted(name for names in sources(view.program).values() for name in names) == sorted(view.synapses)


def test_connections_that_pass_a_box_have_lanes_of_their_own():
    boxes = [Box(name, "") for name in "abcd"]
    lines = [Line("a", "b", "forward"), Line("a", "c", "stream"), Line("b", "d", "forward", "9 weights")]
    page = Page(network_drawing("t", boxes, lines))
    lanes = [(tags["class"], tags["style"]) for name, tags in page.tags if name == "i"]
    assert lanes == [
        ("lane leaves stream", "--lane:0"),
        ("lane passes stream", "--lane:0"),
        ("lane leaves forward", "--lane:1"),
        ("lane arrives stream", "--lane:0"),
        ("lane passes forward", "--lane:1"),
        ("lane arrives forward", "--lane:1"),
    ]
    assert "↳ from a: a sum, unchanged" in page.text
    assert "↳ from b: 9 weights" in page.text


def test_names_from_a_file_cannot_break_the_page():
    boxes = [Box("input", "<script>", "a & b"), Box("x", "y" * 60, "", share=7.0)]
    drawing = network_drawing("<t>", boxes, [Line("input", "x", "forward", "<em>"), Line("x", "x", "recurrent")])
    assert "<script>" not in drawing
    assert "<em>" not in drawing
    assert "width:100%" in drawing
