"""The colours of every picture: the report, the server's page, SVG files and the figures of matplotlib.

Blue stands for what happened as it should, for brighter pixels and for the first series; orange for what differs, for
darker pixels and for the second. Signs and words say the same, so no reader depends on a colour.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, TypeVar

from axonnx.base.errors import AxonnxError
from axonnx.base.files import replacing

Item = TypeVar("Item")

SERIES = 6  # series of one figure at most; more of them become several figures side by side

# Each colour has a name and two values, for light and for dark pages. c1 to c6 are the series: simulated for the three
# kinds of colour blindness, any two of them stay at least 20 ΔE apart, and all have three times the contrast of ground.
COLOURS: dict[str, tuple[str, str]] = {
    "bg": ("#f5f6f8", "#0f141b"),
    "card": ("#ffffff", "#171e28"),
    "sunk": ("#f0f2f5", "#111820"),
    "text": ("#1a2230", "#e5eaf1"),
    "muted": ("#586373", "#9ba8b9"),
    "line": ("#dfe3e9", "#2b3543"),
    "accent": ("#1f57c9", "#82aaff"),
    "accent-bg": ("#e8effc", "#16263f"),
    "alert": ("#9a4a00", "#ffb066"),
    "alert-bg": ("#fff1e0", "#33240f"),
    "c0": ("#a9b3c1", "#5c6a7d"),
    "c1": ("#2f6fde", "#6ea0ff"),
    "c2": ("#e06e00", "#ff9a3d"),
    "c3": ("#004d40", "#7ee8c7"),
    "c4": ("#c2569b", "#b48ead"),
    "c5": ("#3a0ca3", "#d81b60"),
    "c6": ("#5c2d00", "#ffffb0"),
}
LIGHT = {name: pair[0] for name, pair in COLOURS.items()}
DARK = {name: pair[1] for name, pair in COLOURS.items()}

# Settings for ``matplotlib.rc_context``.
FIGURE_STYLE = {
    "axes.prop_cycle": f"cycler('color', {[LIGHT[f'c{number}'] for number in range(1, SERIES + 1)]})",
    "axes.grid": True,
    "axes.axisbelow": True,
    "figure.facecolor": LIGHT["card"],
    "axes.facecolor": LIGHT["card"],
    "savefig.facecolor": LIGHT["card"],
    "text.color": LIGHT["text"],
    "axes.labelcolor": LIGHT["text"],
    "axes.titlecolor": LIGHT["text"],
    "axes.titlesize": "medium",
    "axes.edgecolor": LIGHT["muted"],
    "xtick.color": LIGHT["muted"],
    "ytick.color": LIGHT["muted"],
    "grid.color": LIGHT["line"],
    "hatch.color": LIGHT["card"],
    "legend.frameon": False,
    "legend.fontsize": "small",
    "font.size": 9,
    "svg.hashsalt": "axonnx",
    "svg.fonttype": "none",
}


def groups_of_series(series: Sequence[Item]) -> list[Sequence[Item]]:
    """Divide series into the fewest groups of at most ``SERIES``, of nearly equal sizes, in their order."""
    groups = max(1, -(-len(series) // SERIES))
    ends = [len(series) * group // groups for group in range(groups + 1)]
    return [series[first:last] for first, last in pairwise(ends)]


def save_figure(path: str | os.PathLike[str], make: Callable[[], Any], **options: Any) -> None:
    """Write a figure of matplotlib in these colours, whole or not at all; the options are those of ``savefig``."""
    try:
        import matplotlib.figure
    except ModuleNotFoundError:
        raise AxonnxError("a picture needs matplotlib: pip install 'axonnx[report]'") from None
    with matplotlib.rc_context(FIGURE_STYLE):
        figure = make()
        with replacing(path) as temporary:
            figure.savefig(temporary, **options)


def colour_variables() -> str:
    """Return CSS that defines every colour as a variable, for light and for dark pages.

    An attribute ``data-theme`` of the page's root, ``light`` or ``dark``, wins over the reader's preference.
    """
    light, dark = (";".join(f"--{name}:{value}" for name, value in mode.items()) for mode in (LIGHT, DARK))
    series = "".join(f".c{number}{{--c:var(--c{number})}}" for number in range(SERIES + 1))
    return (
        f":root{{color-scheme:light;{light}}}"
        f"@media screen and (prefers-color-scheme:dark){{:root:not([data-theme=light]){{color-scheme:dark;{dark}}}}}"
        f"@media screen{{:root[data-theme=dark]{{color-scheme:dark;{dark}}}}}"
        f"{series}"
    )


def literal_colours(css: str) -> str:
    """Return rules with ``var(--name)`` replaced by the colours, first for light pages, then for dark ones.

    A style sheet inside an SVG file needs this: not every program that shows such files knows variables.
    """
    rules = re.findall(r"[^{}]+\{[^{}]*var\([^{}]*\}", css)
    dark = "".join(_filled(rule.strip(), DARK) for rule in rules)
    return f"{_filled(css, LIGHT)}@media(prefers-color-scheme:dark){{{dark}}}"


def _filled(css: str, colours: dict[str, str]) -> str:
    return re.sub(r"var\(--([\w-]+)\)", lambda found: colours[found[1]], css)
