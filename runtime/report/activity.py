"""The activity section: how often layers fire, what that costs, and where the energy goes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from axonnx.runtime.measure.profile_result import Energy, ProfileResult
from axonnx.runtime.report.charts import Bar, Series, bar_chart, count_axis, curves, linear_axis, rates, stacked_bar
from axonnx.runtime.report.markup import (
    Html,
    card,
    cards,
    count,
    element,
    energy,
    folded,
    missing,
    number,
    percent,
    section,
    short,
    size,
    table,
    tile,
)
from axonnx.runtime.report.material import Material

Value = TypeVar("Value")


def activity_section(material: Material) -> Html:
    """Show rates if they are known, and operations and energy from a profile."""
    profile = material.profile
    command = f"axonnx profile {material.name} --data {material.run_name} --json profile.json"
    lead = f"Profiled on {count(profile.samples)} samples, engine {profile.engine}." if profile else None
    return section(
        "activity",
        "Activity and energy",
        lead,
        _totals(profile) if profile is not None else None,
        cards(_rates(material), _operations(material), _over_time(material)),
        _energy(profile.energy) if profile is not None else None,
        None if profile is not None else missing("Energy, latency and footprint were not measured.", command),
    )


def _rates(material: Material) -> Html | None:
    found = _first_member(material.rates(), [layer.name for layer in material.model.layers])
    if not found:
        return None
    bars = [Bar(name, rate, percent(rate)) for name, rate in found.items()]
    axis = linear_axis(list(found.values()), zero=True)
    return bar_chart("Firing rate of each layer", bars, axis, unit="spikes per neuron and step")


def _over_time(material: Material) -> Html | None:
    series: Series = {}
    if material.profile is not None:
        series = {layer.name: list(layer.rate_over_time) for layer in material.profile.layers}
    elif material.measured is not None:
        series = {name: steps.tolist() for name, steps in material.measured.rates.items()}
    series = _first_member(series, [layer.name for layer in material.model.layers])
    lengths = {len(values) for values in series.values()}
    if len(lengths) != 1 or max(lengths) < 2:
        return None
    steps = max(lengths)
    across = [float(step) for step in range(1, steps + 1)]
    return curves("Firing rates over time", count_axis(1, steps, "step"), across, series, rates(series))


def _operations(material: Material) -> Html | None:
    names = [synapse.name for layer in material.model.layers for synapse in layer.synapses]
    found = _first_member(material.operations(), names)
    if not found:
        return None
    dense = {}
    if material.profile is not None:
        dense = {entry.name: entry.dense_operations for entry in material.profile.synapses}
    bars = []
    for name, done in found.items():
        full = dense.get(name)
        share = f" ({percent(done / full, 0)} of dense)" if full else ""
        bars.append(Bar(name, done, short(done) + share))
    axis = linear_axis(list(found.values()), zero=True)
    return bar_chart("Synaptic operations", bars, axis, unit="per inference")


def _first_member(found: Mapping[str, Value], names: Sequence[str]) -> dict[str, Value]:
    """Of an ensemble its first member alone; everything where names are not known."""
    return {name: value for name, value in found.items() if name in names} or dict(found)


def _totals(profile: ProfileResult) -> Html:
    totals = profile.totals
    tiles = [
        tile("Events in", short(totals.events_in), f"in {short(totals.active_inputs)} cells"),
        tile("Accumulates", short(totals.accumulates)),
        tile("Multiply-accumulates", short(totals.multiply_accumulates)),
        tile("Dense equivalent", short(totals.dense_operations)),
        tile("Membrane updates", short(totals.membrane_updates)),
        tile("Footprint", size(totals.footprint_bytes), f"state: {size(totals.state_bytes)}"),
        tile("Activation sparsity", percent(totals.activation_sparsity)),
        tile("Connection sparsity", percent(totals.connection_sparsity)),
    ]
    return element("dl", tiles, class_="tiles small")


def _energy(found: Energy) -> Html:
    total, hardware = found.total_nj, found.hardware
    shares = {name.replace("_", " "): value for name, value in found.parts if value}
    networks = [("dense, once" if each.passes == 1 else "dense, every step", each) for each in found.dense]
    bars = [Bar("this network", total, energy(total), strong=True)]
    bars += [Bar(name, each.parts.total, energy(each.parts.total)) for name, each in networks]
    verdicts = [[name, f"{each.activation_bits} bit", found.verdict(each)] for name, each in networks]
    costs: list[tuple[str, float | None]] = [
        ("accumulate", hardware.accumulate_pj),
        ("multiply-accumulate", hardware.multiply_accumulate_pj),
        ("membrane update", hardware.membrane_update_pj),
        ("byte read or written", found.memory_pj_per_byte),
    ]
    constants = [[name, "by the weight's width" if cost is None else f"{number(cost)} pJ"] for name, cost in costs]
    return card(
        element("h3", "Energy of one inference, estimated: ", energy(total)),
        stacked_bar("Energy by part", shares, total, {name: energy(value) for name, value in shares.items()}),
        bar_chart(
            "Against dense networks of the same shape",
            bars,
            linear_axis([total, *(each.parts.total for each in found.dense)], zero=True),
        ),
        table(["network", "activations", "fewer joules than it"], verdicts, "Verdicts", hide_caption=True),
        folded(
            f"Constants of the estimate ({hardware.name})",
            table(["operation", "energy"], constants, "Constants", hide_caption=True),
        ),
    )
