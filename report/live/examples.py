"""Samples that a reader can run at a click: their frames as short lists of what is not zero."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from axonnx.report.html.markup import Html, element

MOST_NUMBERS = 40_000  # of all examples together: keeps a page small


class Example(NamedTuple):
    """A sample under the name of its class."""

    name: str
    frames: NDArray[np.integer]  # [T, …]


def examples_of(samples: Iterable[Example]) -> list[Html]:
    """Buttons and the frames behind them; samples that a page has no room for are left out."""
    lists: list[list[list[int]]] = []
    buttons: list[Html] = []
    room = MOST_NUMBERS
    for name, frames in samples:
        sparse = [_sparse(frame) for frame in frames]
        room -= sum(map(len, sparse))
        if room < 0:
            break
        told = f"Run a sample of class {name} of the test data"
        buttons.append(element("button", name, type="button", data_example=len(lists), aria_label=told, title=told))
        lists.append(sparse)
    if not lists:
        return []
    data = Html(json.dumps(lists, separators=(",", ":")))
    group = element("div", element("span", "Samples:"), buttons, class_="buttons", role="group", aria_label="Samples")
    return [group, element("script", data, type="application/json", class_="examples")]


def _sparse(frame: NDArray[np.integer]) -> list[int]:
    """Place, value, place, value, … of what is not zero."""
    flat = frame.ravel()
    places = np.flatnonzero(flat)
    pairs: list[int] = np.stack([places, flat[places]], axis=1).ravel().tolist()
    return pairs
