"""Line charts of series that share an axis."""

from __future__ import annotations

import math
from collections.abc import Sequence

from axonnx.report.drawing.axes import Axis, linear_axis, log_axis, share_axis
from axonnx.report.drawing.chart import Key, chart, dots, line, upright
from axonnx.report.html.markup import Content, Html, element
from axonnx.report.html.page_blocks import SERIES, colour

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
    height: int = 200,
) -> Html:
    """All series over the same values ``across``, each a line with dots that say their value."""
    drawn: list[Html] = [upright(x, mark) for mark in marks]
    keys = []
    for number, (name, values) in enumerate(series.items()):
        points = list(zip(across, values, strict=True))
        keys.append(Key(name, colour(number), dashed=number >= SERIES))
        drawn.append(line(x, y, points, colour(number), dashed=number >= SERIES))
        if len(points) <= DOTS_UP_TO:
            spots = [(a, v, f"{name}, {x.label} {x.write(a)}: {y.write(v)}") for a, v in points if math.isfinite(v)]
            drawn.append(dots(x, y, spots, colour(number)))
    return chart(title, x, y, drawn, keys=keys, note=note, height=height)


def finite(series: Series) -> list[float]:
    """All finite values."""
    return [value for values in series.values() for value in values if math.isfinite(value)]


def shares(series: Series, label: str = "") -> Axis:
    """An axis for proportions, that begins where nothing would be cut off and ends at one."""
    values = finite(series)
    low = min(values, default=0.0)
    return share_axis(label, next((start for start in (0.9, 0.5) if low > start + (1 - start) * 0.1), 0.0))


def rates(series: Series, label: str = "") -> Axis:
    """An axis for firing rates: from zero to the highest."""
    return linear_axis(finite(series), label, zero=True, write=lambda value: f"{100 * value:.3g} %")


def positive(series: Series, label: str = "") -> Axis:
    """An axis for magnitudes: of powers of ten where they span more than one."""
    values = [value for value in finite(series) if value > 0]
    wide = bool(values) and max(values) / min(values) > 30
    return log_axis(values, label) if wide else linear_axis(values, label, zero=True)


def nothing(title: str, why: str) -> Html:
    """In the place of a chart that has nothing to show."""
    caption = element("figcaption", element("b", title))
    return element("figure", caption, element("p", why, class_="missing"), class_="chart")
