"""The explorer: single samples from their events to the decision, one step at a time."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from axonnx.report.drawing.png import photograph, sprite
from axonnx.report.drawing.strips import decision, evenly, events_over_time, membrane, raster, strip, time_axis
from axonnx.report.facts.material import Material
from axonnx.report.facts.measure import Sample
from axonnx.report.html.markup import Html, element
from axonnx.report.html.numbers import percent
from axonnx.report.html.page_blocks import missing, odds, section

MOST_STEPS = 400  # of a drawing
CELLS = 160_000  # of all rasters together: keeps a page small
MOST_ROWS, FEWEST_ROWS, FEW_LAYERS, MOST_LAYERS = 128, 4, 3, 6
TRACED_LAYERS, TRACED = 3, 3  # layers with membranes, and neurons of each
COLOURED = 5  # classes
IMAGE_COLUMNS, IMAGE_NEURONS = 64, 4096
ODDS_SHOWN = 10  # classes


def samples_section(material: Material) -> Html:
    """All chosen samples; the page shows one at a time."""
    measured = material.measured
    anchor, timed = "samples", material.model.contract.input.steps is not None
    title = f"From {'events' if timed else 'images'} to decisions"
    if measured is None or not measured.shown:
        command = f"axonnx report {material.name} --run {material.run_name}"
        return section(anchor, title, None, missing("No samples were run.", command))
    shown = [_merged(sample, MOST_STEPS) for sample in measured.shown]
    buttons = [_button(sample, material, at == 0) for at, sample in enumerate(shown)]
    panels = [_panel(sample, material, at == 0) for at, sample in enumerate(shown)]
    lead = f"{len(shown)} of the {measured.source}, run through this file, step by step."
    picker = element("div", buttons, class_="picker", role="group", aria_label="Sample")
    images = _images(shown, timed)
    return section(anchor, title, lead, element("div", picker, panels, style=images or None))


def _button(sample: Sample, material: Material, first: bool) -> Html:
    names = material.model.contract.classes
    wrong = sample.label is not None and sample.label != sample.winner
    told = names[sample.winner] if not wrong or sample.label is None else f"{names[sample.label]} ✗"
    style = _style(sample, str(_busiest(sample)))
    return element(
        "button",
        element("span", class_="thumb", style=style) if style else None,
        told,
        type="button",
        data_sample=str(sample.number),
        aria_pressed="true" if first else "false",
        title=f"sample {sample.number}" + (", decided wrongly" if wrong else ""),
        class_="wrong" if wrong else None,
    )


def _busiest(sample: Sample) -> int:
    """The step with the most events just behind it."""
    counts = np.abs(sample.frames.astype(np.int64)).reshape(len(sample.frames), -1).sum(1)
    return int(np.convolve(counts, np.ones(3))[: len(counts)].argmax())


def _panel(sample: Sample, material: Material, first: bool) -> Html:
    steps = len(sample.probabilities)
    timed = material.model.contract.input.steps is not None
    step_ms = _step_ms(material, steps)
    return element(
        "article",
        element(
            "div",
            _told(sample, material),
            _picture(sample, timed),
            _player(steps) if timed else None,
            _odds(sample, material),
            class_="left",
        ),
        element("div", _strips(sample, material, step_ms) if timed else _activity(sample, material), class_="right"),
        element("script", _numbers(sample), type="application/json", class_="probabilities"),
        class_="card sample on" if first else "card sample",
        id=f"sample-{sample.number}",
        data_steps=steps,
        data_ms=step_ms,
        style=f"--t:{steps - 1}",
        aria_label=f"Sample {sample.number}",
    )


def _told(sample: Sample, material: Material) -> Html:
    names = material.model.contract.classes
    decided = [element("b", names[sample.winner]), f" with {percent(float(sample.probabilities[-1].max()))}"]
    if sample.label is None:
        return element("p", "Decided: ", decided, class_="told")
    right = sample.label == sample.winner
    verdict = element("span", "right" if right else "wrong", class_="badge good" if right else "badge bad")
    return element(
        "p", "True class ", element("b", names[sample.label]), ", decided ", decided, " ", verdict, class_="told"
    )


def _picture(sample: Sample, timed: bool) -> Html | None:
    style = _style(sample, "var(--t)")
    about = f"{'Events' if timed else 'Image'} of sample {sample.number}"
    return element("div", role="img", aria_label=about, class_="picture", style=style) if style else None


def _style(sample: Sample, step: str) -> str | None:
    """The picture of a step, out of the row of all of them; nothing where samples are no pictures."""
    frames = _as_pictures(sample.frames)
    height, width = frames.shape[-2:]
    if min(height, width) < 2:
        return None
    across = 100 / max(len(frames) - 1, 1)
    shape = f"background-size:{100 * len(frames)}% 100%;aspect-ratio:{width}/{height}"
    return f"background-image:var(--p{sample.number});{shape};background-position:calc({step}*{across:.6g}%) 0"


def _images(samples: list[Sample], timed: bool) -> str:
    """All pictures, each once, as properties that styles can name."""
    found = {sample.number: _as_pictures(sample.frames) for sample in samples if _style(sample, "0")}
    uris = {number: sprite(frames, len(found)) if timed else photograph(frames[0]) for number, frames in found.items()}
    return ";".join(f"--p{number}:url({uri})" for number, uri in uris.items())


def _player(steps: int) -> Html:
    return element(
        "div",
        element("button", "▶", type="button", class_="play", aria_label="Play"),
        element("input", type="range", min=0, max=steps - 1, value=steps - 1, aria_label="Time step"),
        element("output", f"step {steps} of {steps}"),
        class_="player",
    )


def _odds(sample: Sample, material: Material) -> Html:
    names = material.model.contract.classes
    peaks = sample.probabilities.max(0)
    if sample.label is not None:
        peaks[sample.label] = 2.0  # the true class is always among them
    chosen = sorted(np.argsort(-peaks, kind="stable")[:ODDS_SHOWN].tolist())
    rows = []
    for entry in chosen:
        share = float(sample.probabilities[-1, entry])
        bar = element("span", element("i", style=f"width:{100 * share:.1f}%"), class_="bar")
        true = " true" if entry == sample.label else ""
        won = "won" if entry == sample.winner else ""
        text = element("span", percent(share, 0), class_="share")
        rows.append(
            element("li", element("span", names[entry]), bar, text, data_class=entry, class_=won + true or None)
        )
    return odds([names[entry] for entry in chosen], rows, "Class probabilities")


def _numbers(sample: Sample) -> Html:
    """Probabilities in thousandths, for the bars to follow the chosen step."""
    return Html(json.dumps((sample.probabilities * 1000).round().astype(int).tolist(), separators=(",", ":")))


def _merged(sample: Sample, most: int) -> Sample:
    """Neighbouring steps put together where there are more than a screen has room for."""
    steps = len(sample.probabilities)
    size = -(-steps // most)
    if size == 1:
        return sample
    starts = np.arange(0, steps, size)
    return replace(
        sample,
        frames=np.add.reduceat(sample.frames.astype(np.int64), starts, axis=0),
        probabilities=sample.probabilities[np.minimum(starts + size, steps) - 1],
        spikes={name: np.logical_or.reduceat(s, starts, axis=0) for name, s in sample.spikes.items()},
        membranes={name: np.maximum.reduceat(m, starts, axis=0) for name, m in sample.membranes.items()},
    )


def _step_ms(material: Material, shown: int) -> float | None:
    entering = material.model.contract.input
    if entering.binning is None or entering.steps is None:
        return None
    return entering.binning.bin_us / 1000 * -(-entering.steps // MOST_STEPS) if shown else None


def _strips(sample: Sample, material: Material, step_ms: float | None) -> list[Html]:
    """Input, rasters of some layers, membranes of some neurons, decision, and the time they share."""
    layers = [layer.name for layer in material.model.layers if layer.name in sample.spikes]
    shown = [layers[at] for at in evenly(len(layers), MOST_LAYERS)]
    measured = material.measured
    assert measured is not None
    room = CELLS // (len(sample.probabilities) * max(1, len(shown)) * len(measured.shown))
    rows = min(MOST_ROWS if len(shown) <= FEW_LAYERS else MOST_ROWS // 2, max(FEWEST_ROWS, room))
    found = [_input(sample, rows)]
    found += [raster(_about(name, sample.spikes[name]), sample.spikes[name], rows) for name in shown]
    traced = [name for name in shown if name in sample.membranes]
    for name in (traced[at] for at in evenly(len(traced), TRACED_LAYERS)):
        found += _membranes(name, sample, material)
    names = material.model.contract.classes
    found.append(decision("Decision: class probabilities", sample.probabilities, names, COLOURED))
    found.append(time_axis(len(sample.probabilities), step_ms))
    return found


def _input(sample: Sample, rows: int) -> Html:
    frames = _as_pictures(sample.frames)
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


def _activity(sample: Sample, material: Material) -> list[Html]:
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


def _as_pictures(frames: NDArray[np.integer]) -> NDArray[np.integer]:
    """Frames [T, …] as [T, C, H, W]."""
    return frames if frames.ndim == 4 else frames.reshape(len(frames), 1, 1, -1)
