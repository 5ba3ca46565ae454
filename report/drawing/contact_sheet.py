"""Samples of a data set side by side, a row for each class, as one SVG file: what a network is going to see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from axonnx.report.drawing.png import data_uri, picture_levels
from axonnx.report.html.markup import Html, element, svg_file

SIDE, GAP, HEAD, NAMES, LONGEST = 128, 12, 44, 132, 16
LOOK = """
text{font:13px system-ui,sans-serif;fill:#1c1e21}.soft{fill:#666c75}.ground{fill:#fbfbfa}.screen{fill:#e9ecf1}
image{image-rendering:pixelated}
@media(prefers-color-scheme:dark){text{fill:#e8eaed}.soft{fill:#9aa2ad}.ground{fill:#14181d}.screen{fill:#22272f}}
"""

Counts = NDArray[np.integer]


def contact_sheet(title: str, samples: Mapping[str, Sequence[Counts]]) -> str:
    """The text of an SVG file: for each class its samples, counts of events [C, H, W]."""
    columns = max(map(len, samples.values()))
    width = NAMES + columns * (SIDE + GAP) + GAP
    height = HEAD + len(samples) * (SIDE + GAP)
    head = f"{title}: events from the middle of samples (blue: brighter, orange: darker)"
    rows = [_row(name, row, frames) for row, (name, frames) in enumerate(samples.items())]
    named = f"{title}: samples of {', '.join(samples)}"
    return svg_file(named, LOOK, width, height, element("text", head, x=GAP, y=27), rows)


def _row(name: str, row: int, frames: Sequence[Counts]) -> Html:
    y = HEAD + row * (SIDE + GAP)
    short = name if len(name) <= LONGEST else name[: LONGEST - 1] + "…"
    label = element("text", short, element("title", name), x=GAP, y=y + SIDE / 2, class_="soft")
    return element("g", label, [_sample(frame, column, y) for column, frame in enumerate(frames)])


def _sample(frame: Counts, column: int, y: float) -> Html:
    levels = picture_levels(np.abs(frame.astype(np.float64))[np.newaxis], SIDE)[0]
    scale = SIDE / max(levels.shape)
    size = {"width": levels.shape[1] * scale, "height": levels.shape[0] * scale}
    place = {"x": NAMES + column * (SIDE + GAP) + (SIDE - size["width"]) / 2, "y": y + (SIDE - size["height"]) / 2}
    image = element("image", href=data_uri(levels), preserveAspectRatio="none", **place, **size)
    return element("g", element("rect", rx=6, class_="screen", **place, **size), image)
