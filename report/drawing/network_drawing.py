"""A network as a drawing: a box for each layer, from the input down, and what leads from one to the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from axonnx.report.html.markup import Html, element

WIDTH, BOX, HEIGHT, ROW, TOP = 760, 380, 54, 92, 8
LEFT, RIGHT = (WIDTH - BOX) / 2, (WIDTH + BOX) / 2
INSET, LANE, LANES, LONGEST = 12, 22, 6, 34


@dataclass(frozen=True)
class Box:
    """A layer: what stands in it on the left and on the right, and how full its bar is."""

    key: str
    name: str
    about: str
    right: str = ""
    below: str = ""
    share: float | None = None


@dataclass(frozen=True)
class Line:
    """A connection between two boxes, by their keys."""

    source: str
    target: str
    kind: Literal["forward", "recurrent", "stream"]
    text: str = ""


def network_drawing(title: str, boxes: Sequence[Box], lines: Sequence[Line]) -> Html:
    """An SVG whose text can be read and searched."""
    rows = {box.key: row for row, box in enumerate(boxes)}
    height = TOP + ROW * (len(boxes) - 1) + HEIGHT + TOP
    arcs = [line for line in lines if line.kind != "recurrent" and rows[line.target] - rows[line.source] != 1]
    lanes = {id(line): lane % LANES for lane, line in enumerate(arcs)}
    marks = [_line(line, rows, lanes.get(id(line))) for line in lines]
    drawing = element(
        "svg",
        element("title", title),
        element("desc", "; ".join(f"{line.source} to {line.target}: {line.text or line.kind}" for line in lines)),
        _arrow(),
        marks,
        [_box(box, row) for row, box in enumerate(boxes)],
        viewBox=f"0 0 {WIDTH} {height}",
        role="img",
        aria_label=title,
    )
    return element("div", drawing, class_="network", style=f"aspect-ratio:{WIDTH}/{height}")


def _box(box: Box, row: int) -> Html:
    top = TOP + ROW * row
    share = 0.0 if box.share is None else min(max(box.share, 0.0), 1.0)
    rail, bar = _bar(top, 1.0, "rail"), _bar(top, share, "fill c1")
    return element(
        "g",
        element("rect", x=LEFT, y=top, width=BOX, height=HEIGHT, rx=8, class_="box"),
        element("text", _cut(box.name), x=LEFT + INSET, y=top + 20, class_="strong"),
        element("text", box.about, x=LEFT + INSET, y=top + 38),
        element("text", box.right, x=RIGHT - INSET, y=top + 20, class_="end") if box.right else None,
        element("text", box.below, x=RIGHT - INSET, y=top + 38, class_="end") if box.below else None,
        [] if box.share is None else [rail, bar],
    )


def _cut(name: str) -> str:
    """The end of a long name tells more than its beginning."""
    return name if len(name) <= LONGEST else "…" + name[1 - LONGEST :]


def _bar(top: float, share: float, kind: str) -> Html:
    return element("rect", x=LEFT + INSET, y=top + 45, width=(BOX - 2 * INSET) * share, height=4, rx=2, class_=kind)


def _line(line: Line, rows: dict[str, int], lane: int | None) -> Html:
    start, end = TOP + ROW * rows[line.source], TOP + ROW * rows[line.target]
    if line.kind == "recurrent":
        middle = end + HEIGHT / 2
        far = f"{RIGHT + 46:g}"
        path = f"M{RIGHT:g} {middle + 12:g}C{far} {middle + 26:g} {far} {middle - 26:g} {RIGHT:g} {middle - 12:g}"
        return element("g", _path(path, line.kind), _text(line.text, RIGHT + 40, middle + 4))
    if lane is None:
        x = WIDTH / 2
        return element("g", _path(f"M{x:g} {start + HEIGHT:g}V{end:g}", line.kind), _text(line.text, x + 10, end - 14))
    out, leave, arrive = LEFT - 24 - LANE * lane, start + HEIGHT * 0.7, end + HEIGHT * 0.3
    path = f"M{LEFT:g} {leave:g}C{out:g} {leave:g} {out:g} {arrive:g} {LEFT:g} {arrive:g}"
    return element("g", _path(path, line.kind), _text(line.text, LEFT - 12, arrive - 8, "end"))


def _path(d: str, kind: str) -> Html:
    return element("path", d=d, class_=f"wire {kind}", marker_end="url(#tip)")


def _text(text: str, x: float, y: float, kind: str = "") -> Html | None:
    return element("text", text, x=x, y=y, class_=f"soft {kind}".strip()) if text else None


def _arrow() -> Html:
    tip = element("path", d="M0 0L8 4L0 8z", class_="tip")
    size: dict[str, int] = {"markerWidth": 8, "markerHeight": 8, "refX": 7, "refY": 4}
    marker = element("marker", tip, id="tip", viewBox="0 0 8 8", markerUnits="userSpaceOnUse", orient="auto", **size)
    return element("defs", marker)
