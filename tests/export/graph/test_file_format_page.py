"""docs/file-format.md names what is in a file: every field of the contract, every version, every kind of name."""

import re
from pathlib import Path
from typing import get_args

import pytest
from pydantic import BaseModel

from axonnx.runtime.format import contract, opset

PAGE = (Path(__file__).parents[3] / "docs" / "file-format.md").read_text("utf-8")
TABLES = {
    "field": contract.Contract,
    "`input`": contract.InputContract,
    "`collapse`": contract.CollapseContract,
    "`layers[]`": contract.LayerContract,
    "`synapses[]`": contract.SynapseContract,
    "`accuracy[]`": contract.AccuracyContract,
    "`measured`": contract.MeasuredOn,
    "`provenance`": contract.Provenance,
}


def rows_of(head: str) -> list[str]:
    """The names in the first column of the table that begins with ``head``."""
    (table,) = re.findall(rf"^\| {re.escape(head)} \| \|\n\| --- \| --- \|\n((?:\|.*\n?)+)", PAGE, re.MULTILINE)
    return [name for row in table.splitlines() for name in re.findall(r"`(\w+)`", row.split("|")[1])]


@pytest.mark.parametrize("head", TABLES)
def test_every_field_of_the_contract_is_described_and_no_other(head):
    model: type[BaseModel] = TABLES[head]
    assert sorted(rows_of(head)) == sorted(model.model_fields)


def test_every_way_is_described():
    (row,) = (line for line in PAGE.splitlines() if line.startswith("| `way` |"))
    assert set(re.findall(r"`(\w+)`", row)) - {"way"} == set(get_args(contract.Way))


def test_versions_are_those_of_the_code():
    assert f"| `ir_version` | {opset.IR_VERSION} " in PAGE
    assert f'| `opset_import` | `""` version {opset.ONNX_OPSET}, `{opset.DOMAIN}` version {opset.VERSION} |' in PAGE
    assert f"key `{contract.METADATA_KEY}`" in PAGE
    assert f"What follows is format {contract.FORMAT}." in PAGE
