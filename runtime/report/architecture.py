"""What the network is made of: its layers and connections as a drawing, and a table of every layer.

The drawing is a list of boxes, so its text wraps and keeps its size on a phone. Connections that do not lead from one
box to the next run in lanes on the left, each drawn piece by piece beside the boxes that it passes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from axonnx.runtime.format.network_input import describe_input
from axonnx.runtime.program.instructions import Conv
from axonnx.runtime.report.markup import (
    DASH,
    Content,
    Html,
    card,
    count,
    element,
    missing,
    number,
    percent,
    power_of_two,
    section,
    short,
    table,
)
from axonnx.runtime.report.material import Material
from axonnx.runtime.report.model_view import INPUT, Kind, LayerView, ModelView, Wire, wires

LANES = 6  # beside the boxes; more connections at one place share a lane
LEAD = "From the input down. The bar in a box is the layer's firing rate."
KINDS = (
    "An arrow carries spikes of this time step through a synapse, ↺ spikes of the step before. A dashed line is a sum "
    "that continues past the neurons, as in residual networks. Operations are the weights added up in one inference."
)
HEAD = ("layer", "operator", "neurons", "threshold θ", "decay β", "grid", "weights", "zeros", "rate", "operations")


@dataclass(frozen=True)
class Box:
    """A layer in the drawing; ``share`` fills its bar."""

    key: str
    about: str
    right: str = ""
    below: str = ""
    share: float | None = None


@dataclass(frozen=True)
class Line:
    """A connection between two boxes, by their keys."""

    source: str
    target: str
    kind: Kind
    text: str = ""


def architecture_section(material: Material) -> Html:
    """Draw one box for each layer; of an ensemble, those of its first member."""
    model = material.model
    rates, operations = material.rates(), material.operations()
    entering = model.contract.input
    boxes = [Box(INPUT, describe_input(entering), right=f"up to {entering.x_max:g}")]
    boxes += [_layer_box(layer, rates.get(layer.name), operations) for layer in model.layers]
    known = {box.key for box in boxes}
    lines = _lines([wire for wire in wires(model.program) if {wire.source, wire.target} <= known], model)
    title = f"{material.name}: {len(model.layers)} layers"
    note = element("p", KINDS, class_="note")
    return section("architecture", "Architecture", LEAD, card(network_drawing(title, boxes, lines), note))


def _layer_box(layer: LayerView, rate: float | None, operations: Mapping[str, float]) -> Box:
    done = [operations[synapse.name] for synapse in layer.synapses if synapse.name in operations]
    shape = "×".join(str(size) for size in layer.stated.shape)
    neurons = f", {count(layer.neurons)} neurons" if len(layer.stated.shape) > 1 else ""
    return Box(
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
    if not isinstance(instruction, Conv):
        return pooled + weights
    kernel = "×".join(str(size) for size in model.program.constants[instruction.weight].shape[2:])
    stride = f", stride {instruction.strides[0]}" if instruction.strides != (1, 1) else ""
    return f"{pooled}{kernel}{stride}, {weights}"


def network_drawing(title: str, boxes: Sequence[Box], lines: Sequence[Line]) -> Html:
    """Draw boxes from the input down; each says what arrives at it from elsewhere than the box above."""
    rows = {box.key: row for row, box in enumerate(boxes)}
    passing = [line for line in lines if line.kind != "recurrent" and rows[line.target] - rows[line.source] != 1]
    lanes = _lanes([(rows[line.source], rows[line.target]) for line in passing])
    items = []
    for row, box in enumerate(boxes):
        pieces = [_piece(line, lane, row, rows) for line, lane in zip(passing, lanes, strict=True)]
        arriving = [line for line in lines if line.target == box.key]
        straight = [_straight(line) for line in arriving if line not in passing and line.kind != "recurrent"]
        others = [_other(line) for line in arriving if line in passing or line.kind == "recurrent"]
        items.append(element("li", pieces, straight, _box(box, others)))
    widest = max(lanes, default=-1) + 1
    return element("ol", items, class_="network", style=f"--lanes:{widest}", aria_label=title)


def _lanes(spans: Sequence[tuple[int, int]]) -> list[int]:
    """For each connection the lane nearest to the boxes that is free from its first row to its last."""
    ends: list[int] = []
    chosen = []
    for first, last in spans:
        top, bottom = min(first, last), max(first, last)
        lane = next((at for at, end in enumerate(ends) if end <= top), len(ends)) % LANES
        ends[lane : lane + 1] = [bottom]
        chosen.append(lane)
    return chosen


def _piece(line: Line, lane: int, row: int, rows: Mapping[str, int]) -> Html | None:
    """Return the piece of a connection beside one box: where it leaves, passes or arrives."""
    source, target = rows[line.source], rows[line.target]
    if not min(source, target) <= row <= max(source, target):
        return None
    place = "leaves" if row == source else "arrives" if row == target else "passes"
    return element("i", class_=f"lane {place} {line.kind}", style=f"--lane:{lane}", aria_hidden="true")


def _straight(line: Line) -> Html:
    return element("p", line.text or "a sum, unchanged", class_=f"wire {line.kind}")


def _other(line: Line) -> Html:
    before = "↺ spikes of the step before"
    start = {"recurrent": before if line.source == line.target else f"{before} from {line.source}"}
    what = line.text or ("" if line.kind == "recurrent" else "a sum, unchanged")
    told = start.get(line.kind, f"↳ from {line.source}") + (f": {what}" if what else "")
    return element("p", told, class_=f"other {line.kind}")


def _box(box: Box, others: Content) -> Html:
    filled = None if box.share is None else f"width:{100 * min(max(box.share, 0.0), 1.0):.3g}%"
    return element(
        "div",
        element("p", element("b", box.key), element("span", box.right) if box.right else None),
        element("p", element("span", box.about), element("span", box.below) if box.below else None),
        others,
        element("div", element("i", style=filled), class_="bar") if filled else None,
        class_="box",
    )


def layers_section(material: Material) -> Html:
    """One row for each layer."""
    rates, operations = material.rates(), material.operations()
    layers = material.model.layers
    rows = [_row(layer, rates, operations) for layer in layers]
    members = material.model.contract.collapse.members
    notes = [
        "Grid: weights and biases are multiples of it, so every order of additions gives the same bits. "
        "Rate: spikes per neuron and step. Operations: weights added up in one inference, active inputs only."
    ]
    if members > 1:
        notes.append(f"The first of {members} members; the others have the same layers.")
    weights = sum(synapse.weights for layer in layers for synapse in layer.synapses)
    lead = f"{count(sum(layer.neurons for layer in layers))} neurons and {count(weights)} weights."
    return section(
        "layers",
        "Layers",
        lead,
        card(table(HEAD, rows, "Layers", names=2, hide_caption=True), element("p", " ".join(notes), class_="note")),
        None if rates else missing("Rates were not measured.", f"axonnx report {material.name} --data samples.npz"),
    )


def _row(layer: LayerView, rates: Mapping[str, float], operations: Mapping[str, float]) -> list[str]:
    stated, weights = layer.stated, sum(synapse.weights for synapse in layer.synapses)
    zeros = sum(synapse.zeros for synapse in layer.synapses)
    done = [operations[synapse.name] for synapse in layer.synapses if synapse.name in operations]
    return [
        layer.name,
        stated.op,
        count(layer.neurons),
        _range(stated.threshold),
        _range(stated.decay),
        _grid(layer),
        count(weights),
        percent(zeros / weights) if weights else DASH,
        percent(rates.get(layer.name)),
        short(sum(done)) if done else DASH,
    ]


def _range(value: float | tuple[float, float] | None) -> str:
    if isinstance(value, tuple):
        return number(value[0]) if value[0] == value[1] else f"{number(value[0])} – {number(value[1])}"
    return number(value)


def _grid(layer: LayerView) -> str:
    grids = sorted({synapse.grid for synapse in layer.synapses if synapse.grid is not None})
    return " – ".join(power_of_two(-grid) for grid in dict.fromkeys((grids[-1], grids[0]))) if grids else DASH
