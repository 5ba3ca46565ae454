"""Charts: an SVG that stretches with the page, and labels in HTML around it that keep their size.

Marks are drawn in a field of 1000 × 1000 that is stretched to the available room. Strokes do not stretch, and a dot is
a stroke of no length with round ends, so it stays round.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from axonnx.base.palette import SERIES, groups_of_series
from axonnx.runtime.report.markup import Content, Html, element, joined, known, number

Write = Callable[[float], str]


@dataclass(frozen=True)
class Axis:
    """A stretch of values, its label and its ticks."""

    low: float
    high: float
    label: str = ""
    log: bool = False
    ticks: tuple[float, ...] = ()
    write: Write = field(default=number)

    def at(self, value: float) -> float:
        """Where a value lies: 0 at the low end, 1 at the high one."""
        low, high, here = (math.log10(v) if self.log else v for v in (self.low, self.high, value))
        return (here - low) / (high - low)

    def shows(self, value: float) -> bool:
        """Whether the axis can show ``value``: a finite number, positive on a logarithmic axis."""
        return math.isfinite(value) and (not self.log or value > 0)


def linear_axis(
    values: Iterable[float], label: str = "", *, zero: bool = False, write: Write = number, wanted: int = 4
) -> Axis:
    """Return an axis over all finite values, its ends on round ones; of nothing, from 0 to 1."""
    finite = [value for value in values if math.isfinite(value)] or [0.0, 1.0]
    low, high = min(finite), max(finite)
    if zero:
        low, high = min(low, 0.0), max(high, 0.0)
    if low == high:
        low, high = (low - 0.5, high + 0.5) if low or not zero else (0.0, 1.0)
    step = round_step((high - low) / wanted)
    low, high = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
    return Axis(low, high, label, ticks=_multiples(low, high, step), write=write)


def log_axis(values: Iterable[float], label: str = "") -> Axis:
    """Return an axis of powers of ten over all positive values."""
    positive = [value for value in values if math.isfinite(value) and value > 0] or [1.0]
    first, last = math.floor(math.log10(min(positive))), math.ceil(math.log10(max(positive)))
    last = max(last, first + 1)
    stride = max(1, math.ceil((last - first) / 5))
    ticks = tuple(10.0**power for power in range(first, last + 1, stride))
    return Axis(10.0**first, 10.0**last, label, log=True, ticks=ticks)


def share_axis(label: str = "", low: float = 0.0) -> Axis:
    """From ``low`` to all of it, in per cent."""
    step = next(step for step in (0.02, 0.05, 0.1, 0.25) if (1 - low) / step <= 5 + 1e-9)
    return Axis(low, 1.0, label, ticks=_multiples(low, 1.0, step), write=lambda value: f"{100 * value:.4g} %")


def count_axis(first: int, last: int, label: str) -> Axis:
    """Whole numbers, as epochs or time steps."""
    step = max(1, int(round_step(max(last - first, 1) / 6)))
    inner = [value for value in range(0, last + 1, step) if first < value <= last]
    if inner and inner[0] - first < step / 2:
        inner = inner[1:]
    low, high = (first, last) if first != last else (first - 0.5, first + 0.5)
    return Axis(low, high, label, ticks=(float(first), *map(float, inner)), write=lambda value: f"{value:.0f}")


def round_step(rough: float) -> float:
    """1, 2, 2.5 or 5 times a power of ten, at or above ``rough``."""
    power = 10.0 ** math.floor(math.log10(rough))
    return next(power * lead for lead in (1, 2, 2.5, 5, 10) if power * lead >= rough * (1 - 1e-9))


def _multiples(low: float, high: float, step: float) -> tuple[float, ...]:
    first = math.ceil(low / step - 1e-9)
    return tuple(step * at for at in range(first, math.floor(high / step + 1e-9) + 1))


FIELD = 1000.0


@dataclass(frozen=True)
class Key:
    """An entry of a legend."""

    name: str
    colour: int


def chart(
    title: str,
    x: Axis,
    y: Axis,
    marks: Sequence[Html],
    *,
    keys: Sequence[Key] = (),
    height: int = 200,
    note: Content = None,
) -> Html:
    """Return a figure with axes, a grid behind the marks, a legend and a note."""
    grid = [_rule(0, FIELD, at, at, "grid") for at in ((1 - y.at(tick)) * FIELD for tick in y.ticks)]
    drawing = canvas(title, [*grid, *marks])
    y_labels = [element("span", y.write(tick), style=f"bottom:{100 * y.at(tick):.2f}%") for tick in y.ticks]
    x_labels = [element("span", x.write(tick), style=f"left:{100 * x.at(tick):.2f}%") for tick in x.ticks]
    widest = max((len(y.write(tick)) for tick in y.ticks), default=0)
    plot = element(
        "div",
        element("div", y_labels, class_="y", aria_hidden="true"),
        element("div", drawing, class_="field"),
        element("div", x_labels, class_="x", aria_hidden="true"),
        element("div", x.label, class_="x-name") if x.label else None,
        class_="plot",
        style=f"--h:{height}px;--w:{max(2, widest)}ch",
    )
    return figure(title, plot, legend(keys), unit=y.label, note=note)


def figure(title: str, *content: Content, unit: str = "", note: Content = None, kind: str = "chart") -> Html:
    """Return a figure with its title and unit above, and a note below."""
    caption = element("figcaption", element("b", title), element("small", unit) if unit else None)
    return element("figure", caption, content, element("p", note, class_="note") if note else None, class_=kind)


def canvas(title: str, marks: Iterable[Html], width: float = FIELD, height: float = FIELD) -> Html:
    """Return an SVG that stretches, with a title for screen readers."""
    return element(
        "svg",
        element("title", title),
        marks,
        viewBox=f"0 0 {width:g} {height:g}",
        preserveAspectRatio="none",
        role="img",
        aria_label=title,
    )


def legend(keys: Sequence[Key]) -> Html | None:
    """Return what the colours mean."""
    if not keys:
        return None
    items = [element("li", element("i", class_=f"key c{k.colour}"), k.name) for k in keys]
    return element("ul", items, class_="legend")


def line(x: Axis, y: Axis, points: Iterable[tuple[float, float]], colour: int) -> Html:
    """Return a line through points; what cannot be shown leaves a gap."""
    commands, pen = [], "M"
    for across, up in points:
        if not (x.shows(across) and y.shows(up)):
            pen = "M"
            continue
        commands.append(f"{pen}{place(x, across)} {place(y, up, flip=True)}")
        pen = "L"
    if not commands:
        return Html("")
    return element("path", d="".join(commands), class_=f"line c{colour}")


def dots(x: Axis, y: Axis, points: Iterable[tuple[float, float, str]], colour: int) -> Html:
    """Round dots, each with a text that shows when it is pointed at."""
    return joined(
        element(
            "path", element("title", text), d=f"M{place(x, at)} {place(y, up, flip=True)}h0", class_=f"dot c{colour}"
        )
        for at, up, text in points
        if x.shows(at) and y.shows(up)
    )


def upright(x: Axis, value: float) -> Html:
    """Return a vertical line through the whole field."""
    at = x.at(value) * FIELD
    return _rule(at, at, 0, FIELD, "mark")


def place(axis: Axis, value: float, flip: bool = False) -> str:
    """Return a coordinate in the field, as short as it can be; drawings never leave the field by far."""
    share = min(max(axis.at(value), -1.0), 2.0)
    return f"{(1 - share if flip else share) * FIELD:.1f}".removesuffix(".0")


def _rule(x1: float, x2: float, y1: float, y2: float, kind: str) -> Html:
    return element("line", x1=x1, x2=x2, y1=y1, y2=y2, class_=kind)


@dataclass(frozen=True)
class Bar:
    """A value, how it is written, and the interval it lies in."""

    name: str
    value: float | None
    text: str
    interval: tuple[float, float] | None = None
    strong: bool = False


def bar_chart(title: str, bars: Sequence[Bar], axis: Axis, *, unit: str = "", note: Content = None) -> Html:
    """Draw bars from the low end of the axis, each with its name above and its value beside it.

    Bars are blue; where some are strong, the others are grey.
    """
    strong = any(bar.strong for bar in bars)
    drawn = element("ol", [_bar(bar, axis, title, bar.strong or not strong) for bar in bars], class_="bars")
    return figure(title, drawn, unit=unit, note=note)


def stacked_bar(title: str, parts: Mapping[str, float], whole: float, texts: Mapping[str, str]) -> Html:
    """Parts of a whole in a row, and what they are."""
    assert len(parts) <= SERIES, "a bar of more parts than there are colours"
    marks, at = [], 0.0
    for colour, (name, value) in enumerate(parts.items(), 1):
        width = FIELD * value / whole if whole > 0 else 0.0
        marks.append(_block(at, width, f"{name}: {texts[name]}", f"fill c{colour}"))
        at += width
    keys = [Key(f"{name} {texts[name]}", colour) for colour, name in enumerate(parts, 1)]
    drawing = element("div", canvas(title, marks), class_="track tall")
    return element("div", drawing, legend(keys), class_="stack")


def _bar(bar: Bar, axis: Axis, title: str, blue: bool) -> Html:
    marks = [_block(0, FIELD, "", "rail")]
    if bar.value is not None and known(bar.value):
        marks.append(_block(0, _at(axis, bar.value), "", f"fill c{int(blue)}"))
    if bar.interval is not None and all(known(end) for end in bar.interval):
        low, high = (_at(axis, end) for end in bar.interval)
        whisker = f"M{low:.1f} 500H{high:.1f}M{low:.1f} 250V750M{high:.1f} 250V750"
        marks.append(element("path", d=whisker, class_="whisker"))
    text = f"{title}: {bar.name} {bar.text}"
    return element(
        "li",
        element("span", bar.name, class_="name"),
        element("span", bar.text, class_="text"),
        element("div", canvas(text, marks), class_="track"),
        class_="strong" if bar.strong else None,
    )


def _at(axis: Axis, value: float) -> float:
    return min(max(axis.at(value), 0.0), 1.0) * FIELD


def _block(x: float, width: float, text: str, kind: str) -> Html:
    title = element("title", text) if text else None
    return element("rect", title, x=x, y=0, width=max(width, 0.0), height=FIELD, class_=kind)


Series = dict[str, list[float]]
DOTS_UP_TO = 60


def curves(
    title: str,
    x: Axis,
    across: Sequence[float],
    series: Series,
    y: Axis,
    *,
    note: Content = None,
    marks: Sequence[float] = (),
) -> Html:
    """Draw series over the same values ``across`` as lines, with dots that say their value.

    More than ``SERIES`` lines become several charts with the same axes, one below the other.
    """
    groups = groups_of_series(list(series))
    charts, done = [], 0
    for names in groups:
        part = "" if len(groups) == 1 else f" ({done + 1} to {done + len(names)} of {len(series)})"
        drawn = [upright(x, mark) for mark in marks]
        for colour, name in enumerate(names, 1):
            points = list(zip(across, series[name], strict=True))
            drawn.append(line(x, y, points, colour))
            if len(points) <= DOTS_UP_TO:
                spots = [(a, v, f"{name}, {x.label} {x.write(a)}: {y.write(v)}") for a, v in points if math.isfinite(v)]
                drawn.append(dots(x, y, spots, colour))
        keys = [Key(name, colour) for colour, name in enumerate(names, 1)]
        done += len(names)
        last = note if done == len(series) else None
        charts.append(chart(title + part, x, y, drawn, keys=keys, note=last))
    return joined(charts)


def finite(series: Series) -> list[float]:
    """All finite values."""
    return [value for values in series.values() for value in values if math.isfinite(value)]


def shares(series: Series) -> Axis:
    """Return an axis for proportions, that begins where nothing would be cut off and ends at one."""
    values = finite(series)
    low = min(values, default=0.0)
    return share_axis(low=next((start for start in (0.9, 0.5) if low > start + (1 - start) * 0.1), 0.0))


def rates(series: Series, label: str = "") -> Axis:
    """Return an axis for firing rates: from zero to the highest."""
    return linear_axis(finite(series), label, zero=True, write=lambda value: f"{100 * value:.3g} %")


def positive(series: Series) -> Axis:
    """Return an axis for magnitudes: of powers of ten where they span more than one."""
    values = [value for value in finite(series) if value > 0]
    wide = bool(values) and max(values) / min(values) > 30
    return log_axis(values) if wide else linear_axis(values, zero=True)


def nothing(title: str, why: str) -> Html:
    """In the place of a chart that has nothing to show."""
    return figure(title, element("p", why, class_="missing"))
