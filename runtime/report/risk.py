"""The certainty section: what is gained by not answering everything, and whether sets of classes hold the true one."""

from __future__ import annotations

from axonnx.runtime.measure.uncertainty import COVERAGES, Sets, Signal, sets_of, signal_of, signals_of
from axonnx.runtime.report.charts import count_axis, curves, linear_axis, rates, share_axis, shares
from axonnx.runtime.report.markup import Html, cards, missing, percent, section
from axonnx.runtime.report.material import Material
from axonnx.runtime.report.measure import Measured


def certainty_section(material: Material) -> Html:
    """Risk over coverage for each signal; coverage and size of the file's sets after each time step."""
    if material.model.contract.units is not None:
        return section("certainty", "Certainty", "Real values have no classes to be sure of.")
    measured = material.measured
    if measured is None or measured.right is None:
        command = f"axonnx report {material.name} --run {material.run_name}"
        return section("certainty", "Certainty", None, missing("Certainty is judged on samples with labels.", command))
    signals = {
        name: signal_of(values, measured.right, {})
        for name, values in signals_of(measured.final, measured.disagreement).items()
    }
    sets = _sets(material, measured)
    pictures = [_risk(signals), *([] if sets is None else [_held(sets), _size(sets)])]
    return section("certainty", "Certainty", _lead(sets), cards(*pictures))


def _sets(material: Material, measured: Measured) -> Sets | None:
    stated = material.model.contract.certainty
    if stated is None or measured.possible is None or measured.labels is None:
        return None
    winners = measured.probabilities.argmax(-1).swapaxes(0, 1)
    return sets_of(measured.possible.swapaxes(0, 1), winners, measured.labels, stated.coverage)


def _lead(sets: Sets | None) -> str:
    if sets is None:
        return "This file states no coverage, so it has no sets of possible classes and never abstains."
    low, high = sets.interval
    right = sets.right[-1]
    told = "" if right is None else f", {percent(right)} of these rightly"
    return (
        f"Sets that state {percent(sets.coverage, 0)} hold the true class of {percent(sets.held[-1])} of the samples "
        f"({percent(low)} to {percent(high)}). {percent(sets.answered[-1])} are answered{told}; the network abstains "
        f"from the others."
    )


def _risk(signals: dict[str, Signal]) -> Html:
    series = {name: list(signal.risk) for name, signal in signals.items()}
    areas = ", ".join(f"{name} {percent(signal.aurc, 2)}" for name, signal in signals.items())
    note = f"The surest samples are answered first. Mean risk over all coverages: {areas}."
    x, y = share_axis("share answered"), rates(series, "wrong")
    return curves("Risk and coverage", x, COVERAGES, series, y, note=note)


def _held(sets: Sets) -> Html:
    steps = list(range(1, len(sets.held) + 1))
    series = {"holds the true class": list(sets.held), "answered": list(sets.answered)}
    x = count_axis(1, len(steps), "time steps")
    note = f"The file states {percent(sets.coverage, 0)} at the end of each time step."
    return curves("Sets of classes", x, steps, series, shares(series), note=note)


def _size(sets: Sets) -> Html:
    steps = list(range(1, len(sets.size) + 1))
    series = {"classes": list(sets.size)}
    x, y = count_axis(1, len(steps), "time steps"), linear_axis(sets.size, "classes in a set", zero=True)
    return curves("Size of the sets", x, steps, series, y, note="1: the network answers, with one class.")
