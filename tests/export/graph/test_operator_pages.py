"""The operators' pages say what the operator set says."""

import re
import runpy
from pathlib import Path

import pytest
from onnx import parser

from axonnx.runtime.format.opset import OPS, function

FOLDER = Path(__file__).parents[3] / "docs" / "operators"
SECTIONS = [
    "Version",
    "Attributes",
    "Inputs",
    "Outputs",
    "Type constraints",
    "Formula",
    "Ties",
    "Order of operations",
    "Body",
]


@pytest.fixture(scope="module")
def written() -> dict[str, str]:
    return runpy.run_path(str(FOLDER / "write_pages.py"))["pages"]()


def test_there_is_a_page_for_every_operator_and_no_other(written):
    assert {path.name for path in FOLDER.glob("*.md")} == {"README.md", *(f"{name}.md" for name in OPS)} == set(written)


@pytest.mark.parametrize("name", ["README", *OPS])
def test_a_page_is_what_the_script_writes(name, written):
    there = (FOLDER / f"{name}.md").read_text("utf-8")
    assert there == written[f"{name}.md"], "out of date: python docs/operators/write_pages.py"


@pytest.mark.parametrize("name", OPS)
def test_a_pages_body_is_the_function_that_files_carry(name):
    """Read from the page alone, so that no fault of the script can hide."""
    text = (FOLDER / f"{name}.md").read_text("utf-8")
    (body,) = re.findall(r"```\n(.*?)\n```", text, re.DOTALL)
    assert parser.parse_function(body) == function(name)
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == SECTIONS
    assert OPS[name].formula in text


@pytest.mark.parametrize("name", OPS)
def test_a_page_names_every_input_output_and_operation(name):
    text = (FOLDER / f"{name}.md").read_text("utf-8")
    rows = re.findall(r"^\| `(\w+)` \| T \| (.+?) \| (.+) \|$", text, re.MULTILINE)
    assert [row[0] for row in rows] == [*OPS[name].inputs, *OPS[name].outputs]
    steps = re.findall(r"^\d+\. `(\w+)` = (\w+)\(", text, re.MULTILINE)
    assert steps == [(node.output[0], node.op_type) for node in function(name).node if node.op_type != "Constant"]
