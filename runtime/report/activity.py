"""The activity section: how often layers fire, what that costs, and where the energy goes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from axonnx.runtime.measure.profile_result import Energy, ProfileResult
from axonnx.runtime.report.charts import Bar, Series, bar_chart, count_axis, curves, linear_axis, rates, stacked_bar
from axonnx.runtime.report.markup import Html, card, cards, element, folded, missing, section, table, tile
from axonnx.runtime.report.material import Material
from axonnx.runtime.report.numbers import count, energy, number, percent, short, size

Value = TypeVar("Value")


def activity_section(material: Material) -> Html:
    """Show rates if they are known, and operations and energy from a profile."""
    profile = material.profile
    command = f"axonnx profile {material.name} --run {material.run_name} -o profile.json"
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
        tile("Events in", short(totals.events_in)),
        tile("Accumulates", short(totals.accumulates)),
        tile("Multiply-accumulates", short(totals.multiply_accumulates)),
        tile("Dense equivalent", short(totals.dense_operations)),
        tile("Membrane updates", short(totals.membrane_updates)),
        tile("Footprint", size(totals.footprint_bytes)),
        tile("Activation sparsity", percent(totals.activation_sparsity)),
        tile("Connection sparsity", percent(totals.connection_sparsity)),
    ]
    return element("dl", tiles, class_="tiles small")


def _energy(found: Energy) -> Html:
    total, dense, hardware = found.total_nj, found.dense_nj, found.hardware
    shares = {
        "accumulates": found.parts.accumulates,
        "multiply-accumulates": found.parts.multiply_accumulates,
        "membrane updates": found.parts.membrane_updates,
    }
    bars = [Bar("this network", total, energy(total), strong=True), Bar("dense", dense, _dense(dense, total))]
    constants = [
        ["accumulate", f"{number(hardware.accumulate_pj)} pJ"],
        ["multiply-accumulate", f"{number(hardware.multiply_accumulate_pj)} pJ"],
        ["membrane update", f"{number(hardware.membrane_update_pj)} pJ"],
    ]
    return card(
        element("h3", "Energy of one inference, estimated: ", energy(total)),
        stacked_bar("Energy by part", shares, total, {name: energy(value) for name, value in shares.items()}),
        bar_chart("Against a dense network of the same shape", bars, linear_axis([total, dense], zero=True)),
        folded(
            f"Constants of the estimate ({hardware.name})",
            table(["operation", "energy"], constants, "Constants", hide_caption=True),
        ),
    )


def _dense(dense: float, total: float) -> str:
    times = f", {dense / total:.1f} × as much" if total > 0 else ""
    return energy(dense) + times
