"""Charts: an SVG that stretches with the page, and labels in HTML around it that keep their size.

Marks are drawn in a field of 1000 × 1000 that is stretched to the room there is. Strokes do not stretch, and a dot is
a stroke of no length with round ends, so it stays round.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from axonnx.report.drawing.axes import Axis
from axonnx.report.html.markup import Content, Html, element, joined

FIELD = 1000.0


@dataclass(frozen=True)
class Key:
    """An entry of a legend."""

    name: str
    colour: int
    dashed: bool = False


def chart(
    title: str,
    x: Axis,
    y: Axis,
    marks: Sequence[Html],
    *,
    keys: Sequence[Key] = (),
    height: int = 200,
    note: Content = None,
    square: bool = False,
) -> Html:
    """A figure with axes, a grid behind the marks, a legend and a note."""
    grid = [_rule(0, FIELD, at, at, "grid") for at in ((1 - y.at(tick)) * FIELD for tick in y.ticks)]
    drawing = field(title, [*grid, *marks])
    y_labels = [element("span", y.write(tick), style=f"bottom:{100 * y.at(tick):.2f}%") for tick in y.ticks]
    x_labels = [element("span", x.write(tick), style=f"left:{100 * x.at(tick):.2f}%") for tick in x.ticks]
    widest = max((len(y.write(tick)) for tick in y.ticks), default=0)
    return element(
        "figure",
        element("figcaption", element("b", title), _unit(y.label)),
        element(
            "div",
            element("div", y_labels, class_="y", aria_hidden="true"),
            element("div", drawing, class_="field"),
            element("div", x_labels, class_="x", aria_hidden="true"),
            element("div", x.label, class_="x-name") if x.label else None,
            class_="plot square" if square else "plot",
            style=f"--h:{height}px;--w:{max(2, widest)}ch",
        ),
        legend(keys),
        element("p", note, class_="note") if note else None,
        class_="chart",
    )


def field(title: str, marks: Iterable[Html], width: float = FIELD, height: float = FIELD) -> Html:
    """An SVG that stretches, with a title for screen readers."""
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
    """What the colours mean."""
    if not keys:
        return None
    items = [element("li", element("i", class_=f"key c{k.colour}{' dash' if k.dashed else ''}"), k.name) for k in keys]
    return element("ul", items, class_="legend")


def line(x: Axis, y: Axis, points: Iterable[tuple[float, float]], colour: int, *, dashed: bool = False) -> Html:
    """A line through points; what cannot be shown leaves a gap."""
    commands, pen = [], "M"
    for across, up in points:
        if not (x.shows(across) and y.shows(up)):
            pen = "M"
            continue
        commands.append(f"{pen}{place(x, across)} {place(y, up, flip=True)}")
        pen = "L"
    if not commands:
        return Html("")
    return element("path", d="".join(commands), class_=f"line c{colour}{' dash' if dashed else ''}")


def dots(x: Axis, y: Axis, points: Iterable[tuple[float, float, str]], colour: int) -> Html:
    """Round dots, each with a text that shows when it is pointed at."""
    return joined(
        element("path", element("title", text), d=_spot(x, y, across, up), class_=f"dot c{colour}")
        for across, up, text in points
        if x.shows(across) and y.shows(up)
    )


def upright(x: Axis, value: float, kind: str = "mark") -> Html:
    """A vertical line through the whole field."""
    at = x.at(value) * FIELD
    return _rule(at, at, 0, FIELD, kind)


def place(axis: Axis, value: float, flip: bool = False) -> str:
    """A coordinate in the field, as short as it can be; drawings never leave the field by far."""
    share = min(max(axis.at(value), -1.0), 2.0)
    return f"{(1 - share if flip else share) * FIELD:.1f}".removesuffix(".0")


def _spot(x: Axis, y: Axis, across: float, up: float) -> str:
    return f"M{place(x, across)} {place(y, up, flip=True)}h0"


def _rule(x1: float, x2: float, y1: float, y2: float, kind: str) -> Html:
    return element("line", x1=x1, x2=x2, y1=y1, y2=y2, class_=kind)


def _unit(label: str) -> Html | None:
    return element("small", label) if label else None
