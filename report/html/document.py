"""A page as one HTML file that needs nothing but itself: its head, its style sheet and its script.

``page.css`` is the layout, from a phone's width to a desk's; the colours stand here, each for light and for dark.
"""

from __future__ import annotations

from importlib import resources

from axonnx.report.html.markup import Content, Html, element

COLOURS = {  # name: (light, dark)
    "bg": ("#f5f6f8", "#0f141b"),
    "card": ("#ffffff", "#171e28"),
    "sunk": ("#f0f2f5", "#111820"),
    "text": ("#1a2230", "#e5eaf1"),
    "muted": ("#586373", "#9ba8b9"),
    "line": ("#dfe3e9", "#2b3543"),
    "accent": ("#1f57c9", "#82aaff"),
    "good": ("#0d7a55", "#4fd1a1"),
    "good-bg": ("#e4f5ee", "#12322a"),
    "bad": ("#b3261e", "#ff8f84"),
    "bad-bg": ("#fdeceb", "#3a1a1b"),
    "warn": ("#7d5200", "#f0c063"),
    "warn-bg": ("#fff4dc", "#332813"),
    "c0": ("#a9b3c1", "#5c6a7d"),
    "c1": ("#2f6fde", "#6ea0ff"),
    "c2": ("#d96c00", "#ffa24d"),
    "c3": ("#10876a", "#3ccda4"),
    "c4": ("#a83e95", "#e68ad4"),
    "c5": ("#6d51cc", "#a892ff"),
    "c6": ("#bb3a31", "#ff8379"),
    "c7": ("#6a7d00", "#bccf4e"),
    "c8": ("#0b829b", "#4cc4de"),
}


def document(title: str, policy: str, *body: Content) -> str:
    """The text of an HTML file; ``policy`` says what the browser may load and run."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", title),
        element("style", Html(_style_sheet())),
    )
    return f"<!DOCTYPE html>\n{element('html', head, element('body', *body), lang='en')}\n"


def page_script() -> Html:
    """What switches between light and dark, and steps through samples; without it everything is still there."""
    return element("script", Html(f"\n{_asset('page.js')}"))


def _style_sheet() -> str:
    """Colours first, for both modes, then everything that uses them."""
    light = "".join(f"--{name}:{pair[0]};" for name, pair in COLOURS.items())
    dark = "".join(f"--{name}:{pair[1]};" for name, pair in COLOURS.items())
    series = "".join(f".c{number}{{--c:var(--c{number})}}" for number in range(9))
    return (
        f":root{{color-scheme:light;{light}}}"
        f"@media screen and (prefers-color-scheme:dark){{:root:not([data-theme=light]){{color-scheme:dark;{dark}}}}}"
        f"@media screen{{:root[data-theme=dark]{{color-scheme:dark;{dark}}}}}"
        f"{series}\n{_asset('page.css')}"
    )


def _asset(name: str) -> str:
    return resources.files("axonnx.report.html").joinpath(name).read_text("utf-8")
