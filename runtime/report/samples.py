"""The explorer: single samples from their events to the decision, one step at a time."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from axonnx.runtime.report.charts import Key, canvas, legend, linear_axis
from axonnx.runtime.report.markup import Content, Html, element, missing, number, odds, percent, player, section
from axonnx.runtime.report.material import Material
from axonnx.runtime.report.measure import Sample
from axonnx.runtime.report.pictures import photograph, sprite
from axonnx.runtime.streams.decision import values_text

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
    if _real(material):
        told = _values(sample.probabilities[-1], material)
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
    """Return the step with the most events just behind it."""
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
            player(steps, steps, "Time step") if timed else None,
            None if _real(material) else _odds(sample, material),
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


def _real(material: Material) -> bool:
    """Whether the network gives real values, and no classes."""
    return material.model.contract.units is not None


def _values(values: NDArray[np.floating], material: Material) -> str:
    contract = material.model.contract
    return values_text(dict(zip(contract.classes, values.tolist(), strict=True)), contract.units or ())


def _told(sample: Sample, material: Material) -> Html:
    names = material.model.contract.classes
    if _real(material):
        found = element("b", _values(sample.probabilities[-1], material))
        true = [] if sample.truth is None else [", true: ", element("b", _values(sample.truth, material))]
        return element("p", "Found: ", found, true, class_="told")
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
    """Return the picture of a step, out of the row of all of them; nothing where samples are no pictures."""
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


def _odds(sample: Sample, material: Material) -> Html:
    names = material.model.contract.classes
    peaks = sample.probabilities.max(0)
    if sample.label is not None:
        peaks[sample.label] = 2.0  # the true class is always among them
    rows = []
    for entry in sorted(np.argsort(-peaks, kind="stable")[:ODDS_SHOWN].tolist()):
        kind = ("won" if entry == sample.winner else "") + (" true" if entry == sample.label else "")
        rows.append((entry, names[entry], float(sample.probabilities[-1, entry]), kind or None))
    return odds(rows, "Class probabilities")


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
    if _real(material):
        quiet = np.zeros(len(sample.probabilities), np.bool_)
        units = material.model.contract.units or ()
        for at, (name, unit) in enumerate(zip(names, units, strict=True)):
            true = None if sample.truth is None else float(sample.truth[at])
            title = f"{name}{unit and f' in {unit}'}, after each step"
            found.append(membrane(title, sample.probabilities[:, at], true, quiet, at + 1, "true"))
    else:
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
    """Return the busiest neuron, one in the middle of those that fire, and the one that came closest without firing."""
    counts = spikes.sum(0)
    firing = np.flatnonzero(counts)[np.argsort(-counts[counts > 0], kind="stable")]
    silent = np.flatnonzero(counts == 0)
    chosen = [int(firing[0]), int(firing[len(firing) // 2])] if len(firing) else []
    if len(silent):
        chosen.append(int(silent[values[:, silent].max(0).argmax()]))
    return list(dict.fromkeys(chosen))[:TRACED]


def _activity(sample: Sample, material: Material) -> list[Html]:
    """Return what stands in the place of strips where there is no time: the active neurons of each layer."""
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


TALL = 100.0  # units of a strip that shows values
MANY = 60  # steps from which dots are smaller
Spikes = NDArray[np.bool_]
Floats = NDArray[np.float32] | NDArray[np.float64]


def strip(
    title: str,
    marks: Sequence[Html],
    steps: int,
    units: float,
    height: int,
    *,
    side: Content = None,
    cursor: bool = True,
) -> Html:
    """Return a strip with its title above, labels beside it, and the line that marks the chosen moment."""
    pointer = element("line", x1=0.5, x2=0.5, y1=0, y2=units, class_="cursor") if cursor else Html("")
    drawing = canvas(title, [*marks, pointer], steps, units)
    return element(
        "div",
        element("p", title),
        element("div", drawing, side, class_="band" if cursor else "band still", style=f"height:{height}px"),
        class_="strip",
    )


def raster(title: str, spikes: Spikes, rows: int) -> Html:
    """Return a dash for each spike [T, neurons]; of many neurons, ``rows`` that stand for all."""
    shown = evenly(spikes.shape[1], rows)
    height = int(min(192, max(40, 1.5 * len(shown))))
    dashes = "".join(f"M{step} {row}h.8" for step, row in np.argwhere(spikes[:, shown]).tolist())
    stroke = max(1.1, 0.72 * height / len(shown))
    style = f"stroke-width:{stroke:.1f}px"
    path = element("path", d=dashes, class_="spikes", transform="translate(.1 .5)", style=style)
    more = "" if len(shown) == spikes.shape[1] else f" ({len(shown)} of them shown)"
    return strip(title + more, [path], len(spikes), len(shown), height)


def events_over_time(title: str, frames: NDArray[np.integer]) -> Html:
    """Events of each step [T, C, H, W] as bars, one colour for each polarity."""
    counts = np.abs(frames.astype(np.int64)).sum((2, 3))  # [T, C]
    ordered = counts[:, ::-1] if counts.shape[1] == 2 else counts.sum(1, keepdims=True)
    largest = max(1, int(ordered.sum(1).max()))
    marks, below = [], np.zeros(len(counts))
    for kind in range(ordered.shape[1]):
        top = below + ordered[:, kind] * (TALL / largest)
        path = "".join(
            f"M{step}.1 {TALL - low:.1f}V{TALL - high:.1f}h.8V{TALL - low:.1f}z"
            for step, (low, high) in enumerate(zip(below, top, strict=True))
            if high > low
        )
        marks.append(element("path", d=path, class_=f"fill c{kind + 1}"))
        below = top
    return strip(title, marks, len(counts), TALL, 64, side=element("span", f"{largest:,}", style="top:0"))


def membrane(
    title: str, values: Floats, threshold: float | None, spikes: Spikes, colour: int, level: str = "θ"
) -> Html:
    """One neuron's membrane [T], its threshold (or another ``level``), and a dot where it fired."""
    ends = [float(values.min()), float(values.max()), 0.0, *([] if threshold is None else [threshold])]
    low, high = min(ends), max(ends)
    scale = TALL * 0.84 / ((high - low) or 1.0)

    def height(value: float) -> float:
        return TALL * 0.92 - (value - low) * scale

    marks = [] if threshold is None else [_level(height(threshold), len(values), "threshold")]
    path = "".join(f"{'L' if at else 'M'}{at}.5 {height(float(v)):.1f}" for at, v in enumerate(values))
    fired = "".join(f"M{at}.5 {height(float(values[at])):.1f}h0" for at in np.flatnonzero(spikes))
    marks += [element("path", d=path, class_=f"line c{colour}"), _dots(fired, colour, len(values))]
    side = []
    if threshold is not None:
        side.append(element("span", f"{level} {number(threshold)}", style=f"top:{height(threshold):.1f}%", class_="at"))
    return strip(title, marks, len(values), TALL, 58, side=side)


def decision(title: str, probabilities: Floats, names: Sequence[str], wanted: int) -> Html:
    """How likely each class is after each step [T, classes]; the likeliest in colour."""
    leading = np.argsort(-probabilities.max(0), kind="stable")[:wanted].tolist()
    order = [*(c for c in range(probabilities.shape[1]) if c not in leading), *leading[::-1]]
    paths = []
    for entry in order:
        points = [f"{at}.5 {_share(float(p)):.1f}" for at, p in enumerate(probabilities[:, entry])]
        kind = f"c{leading.index(entry) + 1}" if entry in leading else "c0 thin"
        paths.append(element("path", element("title", names[entry]), d="M" + "L".join(points), class_=f"line {kind}"))
    levels = [_level(_share(share), len(probabilities), "grid") for share in (0.0, 0.5, 1.0)]
    side = [element("span", f"{100 * s:g} %", style=f"top:{_share(s):.1f}%", class_="at") for s in (0.0, 0.5, 1.0)]
    keys = [Key(names[entry], at + 1) for at, entry in enumerate(leading)]
    drawing = strip(title, [*levels, *paths], len(probabilities), TALL, 120, side=side)
    return element("div", drawing, legend(keys))


def time_axis(steps: int, step_ms: float | None) -> Html:
    """Draw marks under the last strip: milliseconds if they are known, else steps."""
    whole = steps * (step_ms or 1.0)
    marks = [tick for tick in linear_axis([0.0, whole], wanted=6).ticks if tick < 0.97 * whole]
    unit = " ms" if step_ms else ""
    texts = [(tick, number(tick) + ("" if tick else unit)) for tick in marks]
    spans = [element("span", text, style=f"left:{100 * tick / whole:.1f}%") for tick, text in texts]
    return element("div", spans, class_="ticks", aria_hidden="true")


def evenly(total: int, wanted: int) -> list[int]:
    """``wanted`` numbers below ``total`` at equal distances, or all of them."""
    if total <= wanted:
        return list(range(total))
    return [round(at * (total - 1) / max(wanted - 1, 1)) for at in range(max(wanted, 1))]


def _dots(path: str, colour: int, steps: int) -> Html:
    return element("path", d=path, class_=f"dot c{colour}{' small' if steps > MANY else ''}")


def _share(value: float) -> float:
    """Where a proportion lies in a strip, with a little room above and below."""
    return TALL * (0.95 - 0.9 * value)


def _level(at: float, steps: int, kind: str) -> Html:
    return element("line", x1=0, x2=steps, y1=at, y2=at, class_=kind)
