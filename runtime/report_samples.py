"""The explorer: single samples from their events to the decision, one step at a time."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from axonnx.runtime.report_blocks import missing, section
from axonnx.runtime.report_markup import Html, element
from axonnx.runtime.report_material import Material
from axonnx.runtime.report_measure import Sample
from axonnx.runtime.report_numbers import percent
from axonnx.runtime.report_png import photograph, sprite
from axonnx.runtime.report_strips import decision, events_over_time, membrane, raster, spread, strip, time_axis

CELLS = 250_000  # of all rasters together: keeps a page small
MOST_ROWS, FEWEST_ROWS, MOST_STEPS, MOST_LAYERS, TRACED_LAYERS, TRACED = 128, 16, 400, 6, 3, 3
ODDS_SHOWN, COLOURED = 10, 5


def samples_section(material: Material) -> Html:
    """All chosen samples; the page shows one at a time."""
    measured = material.measured
    title, anchor = "From events to decisions", "samples"
    if measured is None or not measured.shown:
        command = f"axonnx report {material.name} --run {material.run_name}"
        return section(anchor, title, None, missing("No samples were run.", command))
    shown = [_merged(sample, MOST_STEPS) for sample in measured.shown]
    buttons = [_button(sample, material, at == 0) for at, sample in enumerate(shown)]
    panels = [_panel(sample, material, at == 0) for at, sample in enumerate(shown)]
    lead = f"{len(shown)} samples of {measured.source}, computed by this file in the reference engine."
    picker = element("div", buttons, class_="picker", role="group", aria_label="Sample")
    return section(anchor, title, lead, picker, panels)


def _button(sample: Sample, material: Material, first: bool) -> Html:
    names = material.model.contract.classes
    wrong = sample.label is not None and sample.label != sample.winner
    told = names[sample.winner] if not wrong or sample.label is None else f"{names[sample.label]} ✗"
    return element(
        "button",
        told,
        type="button",
        data_sample=str(sample.number),
        aria_pressed="true" if first else "false",
        title=f"sample {sample.number}" + (", decided wrongly" if wrong else ""),
        class_="wrong" if wrong else None,
    )


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
    frames = _pictures(sample.frames)
    height, width = frames.shape[-2:]
    if min(height, width) < 2:
        return None
    uri = sprite(frames) if timed else photograph(frames[0])
    about = f"{'Events' if timed else 'Image'} of sample {sample.number}"
    style = f"background-image:url({uri});background-size:{100 * len(frames)}% 100%;aspect-ratio:{width}/{height};"
    moving = f"background-position:calc(var(--t)*{100 / max(len(frames) - 1, 1):.6g}%) 0"
    return element("div", role="img", aria_label=about, class_="picture", style=style + moving)


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
    return element("ol", rows, class_="odds", aria_label="Class probabilities")


def _strips(sample: Sample, material: Material, step_ms: float | None) -> list[Html | None]:
    layers = list(sample.spikes)[: len(material.model.layers)]
    shown = [layers[at] for at in spread(len(layers), MOST_LAYERS)]
    measured = material.measured
    assert measured is not None
    room = CELLS // (len(sample.probabilities) * max(1, len(shown)) * len(measured.shown))
    rows = min(MOST_ROWS, max(FEWEST_ROWS, room))
    strips = [_input(sample, rows)]
    strips += [raster(_about(name, sample.spikes[name]), sample.spikes[name], rows) for name in shown]
    traced = [name for name in shown if name in sample.membranes]
    for name in (traced[at] for at in spread(len(traced), TRACED_LAYERS)):
        strips += _membranes(name, sample, material)
    names = material.model.contract.classes
    strips.append(decision("Decision: class probabilities", sample.probabilities, names, COLOURED))
    strips.append(time_axis(len(sample.probabilities), step_ms))
    return strips


def _input(sample: Sample, rows: int) -> Html:
    frames = _pictures(sample.frames)
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
        title = f"{name}, membrane of neuron {neuron}: {int(spikes[:, neuron].sum())} spikes"
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
    """What stands in the place of strips where there is no time: one column of active neurons for each layer."""
    found = []
    for name in list(sample.spikes)[: len(material.model.layers)]:
        active = sample.spikes[name][0]
        side = int(np.ceil(np.sqrt(min(len(active), 4096) * 4)))
        rows = -(-min(len(active), 4096) // side)
        cells = "".join(f"M{at % side}.1 {at // side}.5h.8" for at in np.flatnonzero(active[:4096]).tolist())
        path = element("path", d=cells, class_="spikes", style="stroke-width:4px")
        about = f"{name}: {int(active.sum()):,} of {len(active):,} neurons active"
        found.append(strip(about, [path], side, rows, max(12, 6 * rows)))
    return found


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


def _pictures(frames: NDArray[np.integer]) -> NDArray[np.integer]:
    """Frames [T, …] as [T, C, H, W]."""
    return frames if frames.ndim == 4 else frames.reshape(len(frames), 1, 1, -1)
