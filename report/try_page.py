"""A page of its own to try a network on: the live panel, and nothing else."""

from __future__ import annotations

from axonnx.report.html.markup import Html, element
from axonnx.report.html.style import style_sheet
from axonnx.report.live.panel import live_script, panel, surface
from axonnx.report.live.style import LIVE
from axonnx.runtime.program.instructions import Program

POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
NONE = "What this network takes is neither a picture nor events that one could draw."


def try_page(program: Program) -> str:
    """The text of one HTML file that needs nothing but itself."""
    place, contract = surface(program.contract), program.contract
    lead = f"A {contract.kind} network for {len(contract.classes)} classes, in this page alone: nothing leaves it."
    body = panel(program, place, live_script(program)) if place else element("p", NONE, class_="missing")
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", f"{program.name}: try it"),
        element("style", Html(style_sheet() + LIVE)),
    )
    main = element("main", element("h1", program.name), element("p", lead, class_="lead"), body)
    return f"<!DOCTYPE html>\n{element('html', head, element('body', main), lang='en')}\n"
