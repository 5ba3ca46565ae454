"""The layer table: what each layer is, what its weights are like, and what it does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from axonnx.report.facts.material import Material
from axonnx.report.facts.model_view import LayerView
from axonnx.report.html.markup import Html, element
from axonnx.report.html.numbers import DASH, count, number, percent, power_of_two, short
from axonnx.report.html.page_blocks import card, missing, section, table

HEAD = ("layer", "operator", "neurons", "threshold θ", "decay β", "grid", "weights", "zeros", "rate", "operations")


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
    lead = f"{count(sum(layer.neurons for layer in layers))} neurons and {count(_weights(layers))} weights."
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


def _weights(layers: Sequence[LayerView]) -> int:
    return sum(synapse.weights for layer in layers for synapse in layer.synapses)
