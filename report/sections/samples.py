"""The explorer: single samples from their events to the decision, one step at a time."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np

from axonnx.report.drawing.png import photograph, sprite
from axonnx.report.facts.material import Material
from axonnx.report.facts.measure import Sample
from axonnx.report.html.blocks import missing, section
from axonnx.report.html.markup import Html, element
from axonnx.report.html.numbers import percent
from axonnx.report.sections.sample_strips import activity, as_pictures, strips

MOST_STEPS = 400  # of a drawing
ODDS_SHOWN = 10  # classes
LONG_NAME = 10  # letters of a class that leave no room for a bar beside them


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
        element("div", strips(sample, material, step_ms) if timed else activity(sample, material), class_="right"),
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
    frames = as_pictures(sample.frames)
    height, width = frames.shape[-2:]
    if min(height, width) < 2:
        return None
    across = 100 / max(len(frames) - 1, 1)
    shape = f"background-size:{100 * len(frames)}% 100%;aspect-ratio:{width}/{height}"
    return f"background-image:var(--p{sample.number});{shape};background-position:calc({step}*{across:.6g}%) 0"


def _images(samples: list[Sample], timed: bool) -> str:
    """All pictures, each once, as properties that styles can name."""
    found = {sample.number: as_pictures(sample.frames) for sample in samples if _style(sample, "0")}
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
    widest = max(len(names[entry]) for entry in chosen)
    kind = "odds long" if widest > LONG_NAME else "odds"
    return element("ol", rows, class_=kind, style=f"--n:{widest + 2}ch", aria_label="Class probabilities")


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
