"""The whole page: one HTML file that needs nothing but itself."""

from __future__ import annotations

from axonnx.report.facts.material import Material
from axonnx.report.html.document import document, page_script
from axonnx.report.html.markup import Html, element
from axonnx.report.sections.activity import activity_section
from axonnx.report.sections.architecture import architecture_section
from axonnx.report.sections.decisions import decisions_section
from axonnx.report.sections.layer_table import layers_section
from axonnx.report.sections.live_section import live_section
from axonnx.report.sections.provenance import provenance_section
from axonnx.report.sections.samples import samples_section
from axonnx.report.sections.summary import in_a_sentence, key_figures, pipeline, verdict, verification
from axonnx.report.sections.training import training_section

POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
ANCHORS = {
    "summary": "Summary",
    "training": "Training",
    "architecture": "Architecture",
    "layers": "Layers",
    "live": "Live",
    "samples": "Samples",
    "decisions": "Decisions",
    "activity": "Activity",
    "provenance": "Provenance",
}


def render(material: Material) -> str:
    """The report as the text of one HTML file."""
    parts = (_header(), _main(material), _footer(material), page_script())
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
        activity_section(material),
        provenance_section(material),
    )


def _footer(material: Material) -> Html:
    return element("footer", f"{material.name}, reported {material.made}. This page loads nothing from elsewhere.")
