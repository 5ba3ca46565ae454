"""What sections of a report are made of: headings, tables, tiles, and notes on what is not there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from axonnx.report.html.markup import Content, Html, element

SERIES = 8  # colours; further series begin again
LONG_NAME = 10  # letters of a class that leave no room for a bar beside them


def colour(number: int) -> int:
    """The colour of a series, from 1."""
    return 1 + number % SERIES


def section(anchor: str, title: str, lead: Content, *body: Content) -> Html:
    """A part of the page with a heading and a sentence on what it shows."""
    return element(
        "section",
        element("h2", title, id=f"{anchor}-title"),
        element("p", lead, class_="lead") if lead else None,
        body,
        id=anchor,
        aria_labelledby=f"{anchor}-title",
    )


def missing(what: str, command: str) -> Html:
    """Says what is not there and how to get it."""
    return element("p", what, " Run ", element("code", command), class_="missing")


def cards(*content: Content) -> Html:
    """Cards side by side where there is room."""
    return element("div", [element("div", each, class_="card") for each in content if each], class_="cards")


def card(*content: Content) -> Html:
    """One card over the whole width."""
    return element("div", content, class_="card")


def tile(name: str, value: str, detail: str = "") -> Html:
    """A key figure."""
    small = element("dd", detail, class_="detail") if detail else None
    return element("div", element("dt", name), element("dd", value, class_="value"), small, class_="tile")


def table(
    head: Sequence[str], rows: Iterable[Sequence[Content]], caption: str, *, names: int = 1, hide_caption: bool = False
) -> Html:
    """A table whose first ``names`` columns are text and whose others are numbers."""
    cells = [element("th", title, scope="col", class_=None if at < names else "n") for at, title in enumerate(head)]
    return element(
        "div",
        element(
            "table",
            element("caption", caption, class_="hidden" if hide_caption else None),
            element("thead", element("tr", cells)),
            element("tbody", [_row(row, names) for row in rows]),
        ),
        class_="scroll",
        tabindex="0",
        role="region",
        aria_label=caption,
    )


def _row(row: Sequence[Content], names: int) -> Html:
    first = element("th", row[0], scope="row")
    rest = [element("td", cell, class_=None if at < names else "n") for at, cell in enumerate(row[1:], 1)]
    return element("tr", first, rest)


def odds(classes: Sequence[str], rows: Sequence[Html], about: str) -> Html:
    """Rows of probabilities, with room for the longest name of their classes."""
    widest = max(map(len, classes))
    kind = "odds long" if widest > LONG_NAME else "odds"
    return element("ol", rows, class_=kind, style=f"--n:{widest + 2}ch", aria_label=about)


def folded(summary: str, *content: Content) -> Html:
    """A collapsed block that a click opens."""
    return element("details", element("summary", summary), content)


def listing(text: str) -> Html:
    """Preformatted text."""
    return element("pre", element("code", text), tabindex="0")
