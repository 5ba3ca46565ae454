"""What one sample does in the network, drawn: its events, spikes, membranes and the decision, one above the other."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from axonnx.report.drawing.strips import decision, evenly, events_over_time, membrane, raster, strip, time_axis
from axonnx.report.facts.material import Material
from axonnx.report.facts.measure import Sample
from axonnx.report.html.markup import Html, element
from axonnx.report.html.numbers import percent

CELLS = 160_000  # of all rasters together: keeps a page small
MOST_ROWS, FEWEST_ROWS, FEW_LAYERS, MOST_LAYERS = 128, 4, 3, 6
TRACED_LAYERS, TRACED = 3, 3  # layers with membranes, and neurons of each
COLOURED = 5  # classes
IMAGE_COLUMNS, IMAGE_NEURONS = 64, 4096


def strips(sample: Sample, material: Material, step_ms: float | None) -> list[Html]:
    """Input, rasters of some layers, membranes of some neurons, decision, and the time they share."""
    layers = [layer.name for layer in material.model.layers if layer.name in sample.spikes]
    shown = [layers[at] for at in evenly(len(layers), MOST_LAYERS)]
    measured = material.measured
    assert measured is not None
    room = CELLS // (len(sample.probabilities) * max(1, len(shown)) * len(measured.shown))
    rows = min(MOST_ROWS if len(shown) <= FEW_LAYERS else MOST_ROWS // 2, max(FEWEST_ROWS, room))
    strips = [_input(sample, rows)]
    strips += [raster(_about(name, sample.spikes[name]), sample.spikes[name], rows) for name in shown]
    traced = [name for name in shown if name in sample.membranes]
    for name in (traced[at] for at in evenly(len(traced), TRACED_LAYERS)):
        strips += _membranes(name, sample, material)
    names = material.model.contract.classes
    strips.append(decision("Decision: class probabilities", sample.probabilities, names, COLOURED))
    strips.append(time_axis(len(sample.probabilities), step_ms))
    return strips


def _input(sample: Sample, rows: int) -> Html:
    frames = as_pictures(sample.frames)
    events = int(np.abs(frames.astype(np.int64)).sum())
    if min(frames.shape[-2:]) >= 2:
        return events_over_time(f"Input: {events:,} events", frames)
    return raster(f"Input: {events:,} events on {frames[0].size} channels", frames.reshape(len(frames), -1) != 0, rows)


def _about(name: str, spikes: NDArray[np.bool_]) -> str:
    return f"{name}: {spikes.sum():,} spikes of {spikes.shape[1]:,} neurons, rate {percent(float(spikes.mean()))}"


def _membranes(name: str, sample: Sample, material: Material) -> list[Html]:
    spikes, values = sample.spikes[name], sample.membranes[name]
    thresholds = material.model.thresholds(name)
    found = []
    for at, neuron in enumerate(telling_neurons(spikes, values)):
        theta = None if thresholds is None else float(thresholds[neuron])
        title = f"{name}, neuron {neuron}: membrane, {int(spikes[:, neuron].sum())} spikes"
        found.append(membrane(title, values[:, neuron], theta, spikes[:, neuron], at + 1))
    return found


def telling_neurons(spikes: NDArray[np.bool_], values: NDArray[np.float32]) -> list[int]:
    """The busiest neuron, one in the middle of those that fire, and the one that came closest without firing."""
    counts = spikes.sum(0)
    firing = np.flatnonzero(counts)[np.argsort(-counts[counts > 0], kind="stable")]
    silent = np.flatnonzero(counts == 0)
    chosen = [int(firing[0]), int(firing[len(firing) // 2])] if len(firing) else []
    if len(silent):
        chosen.append(int(silent[values[:, silent].max(0).argmax()]))
    return list(dict.fromkeys(chosen))[:TRACED]


def activity(sample: Sample, material: Material) -> list[Html]:
    """What stands in the place of strips where there is no time: the active neurons of each layer."""
    found = []
    for name in (layer.name for layer in material.model.layers if layer.name in sample.spikes):
        active = sample.spikes[name][0]
        shown = active[:IMAGE_NEURONS]
        columns = min(IMAGE_COLUMNS, len(shown))
        rows = -(-len(shown) // columns)
        cells = "".join(f"M{at % columns}.1 {at // columns}.5h.8" for at in np.flatnonzero(shown).tolist())
        path = element("path", d=cells, class_="spikes", style="stroke-width:6px")
        more = "" if len(shown) == len(active) else f" ({len(shown):,} of them shown)"
        about = f"{name}: {int(active.sum()):,} of {len(active):,} neurons active{more}"
        found.append(strip(about, [path], columns, rows, 9 * rows, cursor=False))
    return found


def as_pictures(frames: NDArray[np.integer]) -> NDArray[np.integer]:
    """Frames [T, …] as [T, C, H, W]."""
    return frames if frames.ndim == 4 else frames.reshape(len(frames), 1, 1, -1)
