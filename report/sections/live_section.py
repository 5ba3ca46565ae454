"""The live section: the network runs in the page, on what the reader draws or drops."""

from __future__ import annotations

from axonnx.base.errors import AxonnxError
from axonnx.report.facts.material import Material
from axonnx.report.html.markup import Html, element
from axonnx.report.html.numbers import size
from axonnx.report.html.page_blocks import missing, section
from axonnx.report.live.panel import MOST_BYTES, NOT_DRAWABLE, Example, live_script, panel, surface

TITLE = "Live: the network in this page"
LEAD = "These are the file's own weights, run by JavaScript with the bits of the file. Nothing leaves this page."
SILENT = "Scripts do not run here; the live panel needs them."


def live_section(material: Material) -> Html:
    """The panel, or why there is none."""
    place = surface(material.model.contract)
    if place is None:
        return _without(NOT_DRAWABLE)
    try:
        script = live_script(material.model.program)
    except AxonnxError as fault:
        return _without(f"This network cannot run in a page. {fault}.")
    if len(script) > MOST_BYTES:
        told = f"As a script this network has {size(len(script))}, and a page takes at most {size(MOST_BYTES)}."
        command = f"axonnx compile {material.name} -o js --target js"
        return section("live", TITLE, None, missing(f"{told} As a page of its own:", command))
    silent = element("noscript", element("p", SILENT, class_="lead"))
    return section("live", TITLE, LEAD, silent, panel(material.model.program, place, script, _samples(material)))


def _samples(material: Material) -> list[Example]:
    """Those that the report shows, by their true class where it is known."""
    shown = material.measured.shown if material.measured is not None else ()
    names = material.model.contract.classes
    return [Example(names[each.winner if each.label is None else each.label], each.frames) for each in shown]


def _without(why: str) -> Html:
    return section("live", TITLE, None, element("p", why, class_="missing"))
