"""Several files, one SVG: on how many samples two of them differ, and who decides what where they do."""

from __future__ import annotations

from axonnx.report.html.markup import Html, element, svg_file
from axonnx.runtime.measure.agreement import Agreement

CELL, ROW, SMALL, PAD, NAMES = 120, 34, 30, 16, 150
MOST, LONGEST, SHORTEST = 24, 18, 4  # samples that are shown; characters of a file's and of a class's name
LOOK = """
text{font:13px system-ui,sans-serif;fill:#1c1e21}.soft{fill:#666c75}.middle{text-anchor:middle}.end{text-anchor:end}
.ground{fill:#fbfbfa}.same{fill:#e9ecf1}.apart{fill:#e06e00}.right{fill:#2f6fde;fill-opacity:.28}.wrong{fill:#e06e00;fill-opacity:.55}
@media(prefers-color-scheme:dark){text{fill:#e8eaed}.soft{fill:#9aa2ad}.ground{fill:#14181d}.same{fill:#22272f}}
"""


def agreement_picture(found: Agreement) -> str:
    """The text of an SVG file."""
    shown = found.disputed[:MOST].tolist()
    below = _y(len(found.files)) + 20
    width = 2 * PAD + NAMES + max(CELL * (len(found.files) + 1), SMALL * len(shown), 420)
    height = below + (40 + (len(found.files) + 1) * ROW if shown else 36)
    title = f"Where {', '.join(found.files)} decide alike on {found.data}"
    disputed = _disputed(found, shown, below) if shown else _text("All decide alike.", PAD, below + 14)
    return svg_file(title, LOOK, width, height, _matrix(found), disputed)


def _matrix(found: Agreement) -> Html:
    """Files down, files and the truth across: samples on which the two differ."""
    names, samples = (*found.files, "the truth"), len(found.truth)
    head = _text(f"decisions that differ, of {samples:,} on {found.data}", PAD, PAD + 10, "soft")
    columns = [_text(_cut(name), NAMES + PAD + (at + 0.5) * CELL, PAD + 40, "middle") for at, name in enumerate(names)]
    most = max(1, int(samples - found.alike.min()))
    cells = [
        _cell(samples - int(found.alike[at, to]), most, at, to)
        for at in range(len(found.files))
        for to in range(len(names))
        if at != to
    ]
    rows = [_text(_cut(name), NAMES + PAD - 8, _y(at) + 22, "end") for at, name in enumerate(found.files)]
    return element("g", head, columns, rows, cells)


def _cell(differ: int, most: int, at: int, to: int) -> Html:
    x, y = PAD + NAMES + to * CELL, _y(at)
    box = {"x": x + 1, "y": y + 1, "width": CELL - 2, "height": ROW - 2, "rx": 4}
    strength = element("rect", class_="apart", fill_opacity=0.75 * differ / most, **box)
    return element(
        "g", element("rect", class_="same", **box), strength, _text(str(differ), x + CELL / 2, y + 22, "middle")
    )


def _disputed(found: Agreement, shown: list[int], top: float) -> Html:
    """A column for each sample on which files differ: the truth, and what each file takes it for."""
    more = len(found.disputed) - len(shown)
    rest = f"; {more} more are not shown" if more else ""
    head = f"where they do not decide alike (blue: right, orange: wrong){rest}; all wrong alike: {found.wrong_alike}"
    rows = [("the truth", found.truth), *zip(found.files, found.decisions, strict=True)]
    return element(
        "g",
        _text(head, PAD, top + 14, "soft"),
        [_text(_cut(name), NAMES + PAD - 8, top + 46 + at * ROW, "end") for at, (name, _) in enumerate(rows)],
        [
            _decided(found, int(decided[sample]), sample, PAD + NAMES + column * SMALL, top + 24 + at * ROW, at == 0)
            for at, (_, decided) in enumerate(rows)
            for column, sample in enumerate(shown)
        ],
    )


def _decided(found: Agreement, decided: int, sample: int, x: float, y: float, is_truth: bool) -> Html:
    kind = "same" if is_truth else "right" if decided == found.truth[sample] else "wrong"
    name = found.classes[decided]
    box = element("rect", x=x + 1, y=y + 1, width=SMALL - 2, height=ROW - 2, rx=4, class_=kind)
    return element(
        "g", element("title", f"sample {sample}: {name}"), box, _text(name[:SHORTEST], x + SMALL / 2, y + 22, "middle")
    )


def _y(row: int) -> float:
    return PAD + 52 + row * ROW


def _text(text: str, x: float, y: float, kind: str = "") -> Html:
    return element("text", text, x=x, y=y, class_=kind or None)


def _cut(name: str) -> str:
    return name if len(name) <= LONGEST else "…" + name[1 - LONGEST :]
