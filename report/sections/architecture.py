"""The architecture: layers, shapes, rates and operations, and what leads where, as one drawing."""

from __future__ import annotations

from collections.abc import Mapping

from axonnx.report.drawing.network_drawing import Box, Line, network_drawing
from axonnx.report.facts.material import Material
from axonnx.report.facts.model_view import INPUT, Kind, LayerView, ModelView, Wire, wires
from axonnx.report.html.markup import Html, element
from axonnx.report.html.numbers import count, percent, short
from axonnx.report.html.page_blocks import card, section
from axonnx.runtime.format.network_input import describe_input
from axonnx.runtime.program.instructions import Conv

LEAD = "From the input down; the bar in a box is its firing rate."
KINDS = (
    "Solid: spikes of this step through a synapse. Curved on the right: spikes of the step before. Dashed: a sum that "
    "goes on past the neurons, as in residual networks. Operations are weights added up in one inference."
)


def architecture_section(material: Material) -> Html:
    """One box for each layer; of an ensemble, those of its first member."""
    model = material.model
    rates, operations = material.rates(), material.operations()
    boxes = [_input(model), *(_box(layer, rates.get(layer.name), operations) for layer in model.layers)]
    known = {box.key for box in boxes}
    lines = _lines([wire for wire in wires(model.program) if {wire.source, wire.target} <= known], model)
    title = f"{material.name}: {len(model.layers)} layers"
    note = element("p", KINDS, class_="note")
    return section("architecture", "Architecture", LEAD, card(network_drawing(title, boxes, lines), note))


def _input(model: ModelView) -> Box:
    entering = model.contract.input
    largest = f"up to {entering.x_max:g}"
    return Box(INPUT, "input", describe_input(entering), right=largest)


def _box(layer: LayerView, rate: float | None, operations: Mapping[str, float]) -> Box:
    done = [operations[synapse.name] for synapse in layer.synapses if synapse.name in operations]
    shape = "×".join(str(size) for size in layer.stated.shape)
    neurons = f", {count(layer.neurons)} neurons" if len(layer.stated.shape) > 1 else ""
    return Box(
        layer.name,
        layer.name,
        f"{layer.stated.op}, {shape}{neurons}",
        right="" if rate is None else f"rate {percent(rate)}",
        below=f"{short(sum(done))} operations" if done else "",
        share=rate,
    )


def _lines(found: list[Wire], model: ModelView) -> list[Line]:
    """One line for all synapses between the same two layers: means and variances of a stochastic file go together."""
    texts: dict[tuple[str, str, Kind], list[str]] = {}
    for wire in found:
        texts.setdefault((wire.source, wire.target, wire.kind), []).append(_text(wire, model))
    return [Line(*ends, " + ".join(text for text in each if text)) for ends, each in texts.items()]


def _text(wire: Wire, model: ModelView) -> str:
    if wire.synapse is None:
        return ""
    weights = f"{short(model.synapses[wire.synapse].weights)} weights"
    instruction = next(i for i in model.program.instructions if i.name == wire.synapse)
    pooled = "pooled, " if wire.pooled else ""
    if wire.kind == "recurrent":
        return short(model.synapses[wire.synapse].weights)
    if not isinstance(instruction, Conv):
        return pooled + weights
    kernel = "×".join(str(size) for size in model.program.constants[instruction.weight].shape[2:])
    stride = f", stride {instruction.strides[0]}" if instruction.strides != (1, 1) else ""
    return f"{pooled}{kernel}{stride}, {weights}"
