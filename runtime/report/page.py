"""The whole page: one HTML file that needs nothing but itself."""

from __future__ import annotations

from axonnx.runtime.report.activity import activity_section
from axonnx.runtime.report.architecture import architecture_section, layers_section
from axonnx.runtime.report.decisions import decisions_section
from axonnx.runtime.report.markup import Html, document, element, page_script
from axonnx.runtime.report.material import Material
from axonnx.runtime.report.panel import live_section
from axonnx.runtime.report.risk import certainty_section
from axonnx.runtime.report.samples import samples_section
from axonnx.runtime.report.summary import (
    in_a_sentence,
    key_figures,
    pipeline,
    provenance_section,
    training_section,
    verdict,
    verification,
)

POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
ANCHORS = {
    "summary": "Summary",
    "training": "Training",
    "architecture": "Architecture",
    "layers": "Layers",
    "live": "Live",
    "samples": "Samples",
    "decisions": "Decisions",
    "certainty": "Certainty",
    "activity": "Activity",
    "provenance": "Provenance",
}


def render(material: Material) -> str:
    """Return the report as the text of one HTML file."""
    footer = element("footer", f"{material.name}, reported {material.made}. This page loads nothing from elsewhere.")
    parts = (_header(), _main(material), footer, page_script())
    return document(f"{material.name}: Axonnx report", POLICY, *parts)


def _header() -> Html:
    links = [element("a", title, href=f"#{anchor}") for anchor, title in ANCHORS.items()]
    return element(
        "header",
        element("div", element("span", "Axonnx"), "report", class_="brand"),
        element("nav", links, aria_label="Sections"),
        element("button", "◐", type="button", id="theme", title="Light or dark", aria_label="Light or dark"),
    )


def _main(material: Material) -> Html:
    warnings = [element("p", text, class_="warning", role="note") for text in material.warnings]
    summary = element(
        "section",
        element("h1", material.name),
        element("p", in_a_sentence(material), class_="lead"),
        verdict(material),
        warnings,
        key_figures(material),
        pipeline(material),
        verification(material.verify),
        id="summary",
    )
    return element(
        "main",
        summary,
        training_section(material.run),
        architecture_section(material),
        layers_section(material),
        live_section(material),
        samples_section(material),
        decisions_section(material),
        certainty_section(material),
        activity_section(material),
        provenance_section(material),
    )
