"""Horizontal bars: one for each name, with intervals where they are known; and parts of a whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from axonnx.report.drawing.axes import Axis
from axonnx.report.drawing.chart import FIELD, Key, field, legend
from axonnx.report.html.markup import Content, Html, element
from axonnx.report.html.numbers import known
from axonnx.report.html.page_blocks import colour


@dataclass(frozen=True)
class Bar:
    """A value, how it is written, and the interval it lies in."""

    name: str
    value: float | None
    text: str
    interval: tuple[float, float] | None = None
    strong: bool = False
    colour: int = 0


def bar_chart(title: str, bars: Sequence[Bar], axis: Axis, *, unit: str = "", note: Content = None) -> Html:
    """Bars from the low end of the axis, each with its name above and its value beside."""
    return element(
        "figure",
        element("figcaption", element("b", title), element("small", unit) if unit else None),
        element("ol", [_bar(bar, axis, title) for bar in bars], class_="bars"),
        element("p", note, class_="note") if note else None,
        class_="chart",
    )


def stacked_bar(title: str, parts: Mapping[str, float], whole: float, texts: Mapping[str, str]) -> Html:
    """Parts of a whole in a row, and what they are."""
    marks, at = [], 0.0
    for number, (name, value) in enumerate(parts.items()):
        width = FIELD * value / whole if whole > 0 else 0.0
        marks.append(_block(at, width, f"{name}: {texts[name]}", f"fill c{colour(number)}"))
        at += width
    keys = [Key(f"{name} {texts[name]}", colour(number)) for number, name in enumerate(parts)]
    drawing = element("div", field(title, marks), class_="track tall")
    return element("div", drawing, legend(keys), class_="stack")


def _bar(bar: Bar, axis: Axis, title: str) -> Html:
    marks = [_block(0, FIELD, "", "rail")]
    if bar.value is not None and known(bar.value):
        marks.append(_block(0, _at(axis, bar.value), "", f"fill c{bar.colour or int(bar.strong)}"))
    if bar.interval is not None and all(known(end) for end in bar.interval):
        low, high = (_at(axis, end) for end in bar.interval)
        whisker = f"M{low:.1f} 500H{high:.1f}M{low:.1f} 250V750M{high:.1f} 250V750"
        marks.append(element("path", d=whisker, class_="whisker"))
    text = f"{title}: {bar.name} {bar.text}"
    return element(
        "li",
        element("span", bar.name, class_="name"),
        element("span", bar.text, class_="text"),
        element("div", field(text, marks), class_="track"),
        class_="strong" if bar.strong else None,
    )


def _at(axis: Axis, value: float) -> float:
    return min(max(axis.at(value), 0.0), 1.0) * FIELD


def _block(x: float, width: float, text: str, kind: str) -> Html:
    title = element("title", text) if text else None
    return element("rect", title, x=x, y=0, width=max(width, 0.0), height=FIELD, class_=kind)
