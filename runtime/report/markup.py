"""HTML and SVG as values: text is escaped unless it is markup already, so no name from a file can break a page."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence
from importlib import resources

from axonnx.base.palette import colour_variables, literal_colours
from axonnx.base.plain_text import escaped_lines

SVG_LOOK = """
text{font:13px system-ui,sans-serif;fill:var(--text)}
.soft{fill:var(--muted)}.middle{text-anchor:middle}.end{text-anchor:end}.ground{fill:var(--card)}.plain{fill:var(--sunk)}
image{image-rendering:pixelated}
"""
VOID = frozenset({"br", "hr", "img", "input", "link", "meta"})


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


Content = str | int | float | None | Iterable["Content"]
Attribute = str | int | float | bool | None


def element(name: str, /, *content: Content, **attributes: Attribute) -> Html:
    """<name attributes>content</name>; ``class_`` is class, ``data_x`` is data-x; None and False leave one out."""
    opening = "".join([name, *(_attribute(key, value) for key, value in attributes.items())])
    if name in VOID:
        assert not content, f"<{name}> has no content"
        return Html(f"<{opening}>")
    return Html(f"<{opening}>{joined(content)}</{name}>")


def joined(content: Content) -> Html:
    """All pieces in a row, each escaped where it is no markup."""
    if content is None:
        return Html("")
    if isinstance(content, Html):
        return content
    if isinstance(content, str | int | float):
        return Html(html.escape(escaped_lines(str(content)), quote=False))
    return Html("".join(joined(piece) for piece in content))


def svg_file(
    title: str, width: float, height: float, *content: Content, look: str = "", motion: str = "", fixed: bool = True
) -> str:
    """Return the text of an SVG file with a style sheet and a ground; if not ``fixed``, it fills the available room.

    ``look`` are rules beyond those of all files, with colours as ``var(--name)``; ``motion`` is added as it is.
    """
    drawing = element(
        "svg",
        element("title", title),
        element("style", Html(literal_colours(SVG_LOOK + look) + motion)),
        element("rect", width=width, height=height, rx=12, class_="ground"),
        content,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width} {height}",
        width=width if fixed else None,
        role="img",
    )
    return f"{drawing}\n"


def _attribute(key: str, value: Attribute) -> str:
    name = key.rstrip("_").replace("_", "-")
    if value is None or value is False:
        return ""
    if value is True:
        return f" {name}"
    return f' {name}="{html.escape(escaped_lines(_plain(value)))}"'


def _plain(value: str | int | float) -> str:
    """Numbers as short as a drawing needs them."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


LONG_NAME = 10  # letters of a class that leave no room for a bar beside them


def section(anchor: str, title: str, lead: Content, *body: Content) -> Html:
    """Return a part of the page with a heading and a sentence on what it shows."""
    return element(
        "section",
        element("h2", title, id=f"{anchor}-title"),
        element("p", lead, class_="lead") if lead else None,
        body,
        id=anchor,
        aria_labelledby=f"{anchor}-title",
    )


def missing(what: str, command: str) -> Html:
    """Say what is missing and which command provides it."""
    return element("p", what, " Run ", element("code", command), class_="missing")


def cards(*content: Content) -> Html:
    """Cards side by side where there is room."""
    return element("div", [element("div", each, class_="card") for each in content if each], class_="cards")


def card(*content: Content) -> Html:
    """One card over the whole width."""
    return element("div", content, class_="card")


def tile(name: str, value: str, detail: str = "") -> Html:
    """Return a key figure."""
    small = element("dd", detail, class_="detail") if detail else None
    return element("div", element("dt", name), element("dd", value, class_="value"), small, class_="tile")


def table(
    head: Sequence[str], rows: Iterable[Sequence[Content]], caption: str, *, names: int = 1, hide_caption: bool = False
) -> Html:
    """Return a table whose first ``names`` columns are text and whose others are numbers."""
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


def odds(rows: Sequence[tuple[int, str, float, str | None]], about: str, longest: int = 0) -> Html:
    """Rows of class number, name, probability and kind, with room for the longest name, or for ``longest`` letters."""
    widest = max(longest, *(len(name) for _, name, _, _ in rows))
    kind = "odds long" if widest > LONG_NAME else "odds"
    return element("ol", [_odd(*row) for row in rows], class_=kind, style=f"--n:{widest + 2}ch", aria_label=about)


def _odd(number: int, name: str, share: float, kind: str | None) -> Html:
    bar = element("span", element("i", style=f"width:{100 * share:.1f}%"), class_="bar")
    text = element("span", percent(share, 0), class_="share")
    return element("li", element("span", name), bar, text, data_class=number, class_=kind)


def player(steps: int, shown: int, about: str, *, button: bool = True) -> Html:
    """Return a slider over time steps that shows step number ``shown``."""
    return element(
        "div",
        element("button", "▶", type="button", class_="play", aria_label="Play") if button else None,
        element("input", type="range", min=0, max=steps - 1, value=max(0, shown - 1), aria_label=about),
        element("output", f"step {shown} of {steps}"),
        class_="player",
    )


def cut(name: str, longest: int) -> str:
    """Return a name of at most ``longest`` letters."""
    return name if len(name) <= longest else name[: longest - 1] + "…"


def folded(summary: str, *content: Content) -> Html:
    """Return a collapsed block that a click opens."""
    return element("details", element("summary", summary), content)


def listing(text: str) -> Html:
    """Preformatted text."""
    return element("pre", element("code", text), tabindex="0")


def document(title: str, policy: str, *body: Content) -> str:
    """Return the text of an HTML file; ``policy`` says what the browser may load and run."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", title),
        element("style", Html(f"{colour_variables()}\n{_asset('page.css')}")),
    )
    return f"<!DOCTYPE html>\n{element('html', head, element('body', *body), lang='en')}\n"


def page_script() -> Html:
    """Return the script that switches between light and dark and steps through samples; the page works without it."""
    return element("script", Html(f"\n{_asset('page.js')}"))


def _asset(name: str) -> str:
    return resources.files("axonnx.runtime.report").joinpath(name).read_text("utf-8")


DASH = "–"
SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
PREFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"), (1e-12, "p"))


def known(value: float | None) -> bool:
    """Whether there is a number to show."""
    return value is not None and math.isfinite(value)


def percent(share: float | None, digits: int = 1) -> str:
    """0.1234 as 12.3 %."""
    return f"{100 * share:.{digits}f} %" if share is not None and math.isfinite(share) else DASH


def interval(bounds: Sequence[float] | None) -> str:
    """(0.9, 0.95) as 90.0 – 95.0 %."""
    if bounds is None or len(bounds) != 2 or not all(math.isfinite(bound) for bound in bounds):
        return DASH
    return f"{100 * bounds[0]:.1f} – {100 * bounds[1]:.1f} %"


def count(number: float | None) -> str:
    """12345 as 12,345."""
    return f"{number:,.0f}" if number is not None and math.isfinite(number) else DASH


def short(number: float | None) -> str:
    """Four figures at the most, thousands and millions by letter: 12.3 k."""
    if number is None or not math.isfinite(number):
        return DASH
    if abs(number) < 10_000:
        return f"{number:,.0f}" if number == round(number) or abs(number) >= 100 else f"{number:.3g}"
    return si(number, "").strip()


def si(number: float | None, unit: str) -> str:
    """Three figures with a prefix: 1.23 µJ."""
    if number is None or not math.isfinite(number):
        return DASH
    if number == 0:
        return f"0 {unit}".rstrip()
    scale, prefix = next((entry for entry in PREFIXES if abs(number) >= entry[0] * 0.9995), PREFIXES[-1])
    figure = number / scale
    digits = 0 if abs(figure) >= 99.95 else 1 if abs(figure) >= 9.995 else 2
    return f"{figure:.{digits}f} {prefix}{unit}".rstrip()


def energy(nanojoule: float | None) -> str:
    """Joules with a prefix."""
    return DASH if nanojoule is None else si(nanojoule * 1e-9, "J")


def size(bytes_: float | None) -> str:
    """Bytes with a decimal prefix."""
    return si(bytes_, "B")


def number(value: float | None) -> str:
    """Four significant figures."""
    return f"{value:.4g}" if value is not None and math.isfinite(value) else DASH


def power_of_two(exponent: int) -> str:
    """−17 as 2⁻¹⁷."""
    return "2" + str(exponent).translate(SUPERSCRIPT)
