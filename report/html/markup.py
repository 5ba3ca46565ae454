"""HTML and SVG as values: text is escaped unless it is markup already, so no name from a file can break a page."""

from __future__ import annotations

import html
from collections.abc import Iterable

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
        return Html(html.escape(str(content), quote=False))
    return Html("".join(joined(piece) for piece in content))


def svg_file(title: str, look: str, width: float, height: float, *content: Content, fixed: bool = True) -> str:
    """The text of an SVG file with a style sheet and a ground; one that is not ``fixed`` fills the room it is given."""
    drawing = element(
        "svg",
        element("title", title),
        element("style", Html(look)),
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
    return f' {name}="{html.escape(_plain(value))}"'


def _plain(value: str | int | float) -> str:
    """Numbers as short as a drawing needs them."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
