"""The provenance section: what the file is made of, by hash, version and configuration."""

from __future__ import annotations

import json

from axonnx.report.facts.material import Material
from axonnx.report.html.markup import Content, Html, element
from axonnx.report.html.numbers import DASH
from axonnx.report.html.page_blocks import card, folded, listing, section, table


def provenance_section(material: Material) -> Html:
    """Hashes, versions, configuration and contract."""
    stated = material.model.contract.provenance
    facts: list[list[Content]] = [
        ["file", _path(str(material.model.path))],
        ["file, sha256", _hash(material.model.sha256)],
        ["checkpoint, sha256", _hash(stated.checkpoint)],
        ["data set", stated.data or DASH],
        ["data set, sha256", _hash(stated.data_digest)],
        ["run", _path(str(material.run.path)) if material.run else DASH],
        ["exported with", ", ".join(f"{name} {version}" for name, version in stated.versions.items()) or DASH],
        ["report made", material.made],
    ]
    config = stated.config or (material.run.config if material.run else None)
    contract = json.dumps(json.loads(material.model.contract.model_dump_json(exclude={"provenance"})), indent=1)
    return section(
        "provenance",
        "Provenance",
        None,
        card(
            table(["what", "value"], facts, "Provenance", names=2, hide_caption=True),
            folded("Configuration of the run", listing(config)) if config else None,
            folded("Contract in the file", listing(contract)),
            folded("Program", listing(material.model.program.describe())),
        ),
    )


def _hash(text: str | None) -> Content:
    return element("code", text, class_="hash") if text else DASH


def _path(text: str) -> Html:
    return element("code", text, class_="hash")
