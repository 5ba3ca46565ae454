"""Strips: drawings of one sample over time, all with the same axis, one above the other.

The field of a strip is as many units wide as there are steps, so that one line, moved by one unit a step, points at
the same moment in all of them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from axonnx.report.drawing.axes import linear_axis
from axonnx.report.drawing.chart import Key, field, legend
from axonnx.report.html.markup import Content, Html, element
from axonnx.report.html.numbers import number

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
    """A strip with its title above, labels beside it, and the line that marks the chosen moment."""
    pointer = element("line", x1=0.5, x2=0.5, y1=0, y2=units, class_="cursor") if cursor else Html("")
    drawing = field(title, [*marks, pointer], steps, units)
    return element(
        "div",
        element("p", title),
        element("div", drawing, side, class_="band" if cursor else "band still", style=f"height:{height}px"),
        class_="strip",
    )


def raster(title: str, spikes: Spikes, rows: int) -> Html:
    """A dash for each spike [T, neurons]; of many neurons, ``rows`` that stand for all."""
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


def membrane(title: str, values: Floats, threshold: float | None, spikes: Spikes, colour: int) -> Html:
    """One neuron's membrane [T], its threshold, and a dot where it fired."""
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
        side.append(element("span", f"θ {number(threshold)}", style=f"top:{height(threshold):.1f}%", class_="at"))
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
    """Marks under the last strip: milliseconds where they are known, steps otherwise."""
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
