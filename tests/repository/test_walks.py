"""The five walks are short notebooks that run, and no document reaches behind the public names."""

import ast
import importlib.util
import re
from pathlib import Path

import nbformat
import pytest

import axonnx
import axonnx.models

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
_spec = importlib.util.spec_from_file_location("execute", DOCS / "execute.py")
execute = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(execute)

WALKS = sorted(path.stem for path in (DOCS / "tutorials").glob("*.ipynb"))
NEEDED = {"2-own-loop": ("pytorch_lightning", "snntorch"), "3-import": ("snntorch",)}
MOST_LINES = 25
PAGES = sorted([*DOCS.rglob("*.md"), *DOCS.rglob("*.ipynb"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])


def walk(name: str) -> nbformat.NotebookNode:
    return nbformat.read(DOCS / "tutorials" / f"{name}.ipynb", as_version=4)


def lines(book: nbformat.NotebookNode) -> list[str]:
    """Its lines of Python; blank ones and comments do not count."""
    every = "\n".join(cell.source for cell in execute.code_of(book)).splitlines()
    return [line for line in every if line.strip() and not line.lstrip().startswith("#")]


def text_of(path: Path) -> str:
    """A page's text; of a notebook, its cells as blocks."""
    if path.suffix == ".md":
        return path.read_text("utf-8")
    cells = nbformat.read(path, as_version=4).cells
    return "\n".join(f"```python\n{cell.source}\n```\n" if cell.cell_type == "code" else cell.source for cell in cells)


def private(page: str) -> list[str]:
    """What a page names of axonnx that is not public: in its code, and in its prose."""
    found = []
    for block in execute.blocks(page):
        if block.kind == "python":
            found += [name for node in ast.walk(ast.parse(block.text)) for name in _imported(node)]
    named = re.findall(r"(?<![\w./])axonnx\.([a-z_]\w*|[A-Z]\w*)(?:\.(\w+))?", page)
    found += [f"axonnx.{first}.{then}".rstrip(".") for first, then in named if not _is_public(first, then)]
    return found


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.endswith("__"):
        return [f".{node.attr}"]
    if isinstance(node, ast.Import):  # under another name, what is taken of it would not be seen
        return [
            each.name for each in node.names if each.name.startswith("axonnx") and (each.asname or "." in each.name)
        ]
    if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "axonnx":
        public = axonnx.models.__all__ if node.module == "axonnx.models" else ()
        return [f"{node.module}.{alias.name}" for alias in node.names if alias.name not in public]
    return []


def _is_public(first: str, then: str) -> bool:
    if first == "models":
        return not then or then in axonnx.models.__all__
    return first in dir(axonnx) or first in ("cli", "onnx")  # python -m axonnx.cli; a file's name


def test_there_are_five_walks():
    assert WALKS == ["1-train", "2-own-loop", "3-import", "4-own-data", "5-deploy"]


@pytest.mark.parametrize("name", WALKS)
def test_a_walk_is_short_and_has_its_outputs(name):
    book = walk(name)
    assert len(lines(book)) <= MOST_LINES
    assert "import axonnx" in lines(book)
    assert not any(line.lstrip().startswith(("!", "%")) for line in lines(book)), "Python, not shell"
    assert [cell.execution_count for cell in execute.code_of(book)] == list(range(1, len(execute.code_of(book)) + 1))
    assert any(cell.outputs for cell in execute.code_of(book)), f"python docs/execute.py docs/tutorials/{name}.ipynb"


@pytest.mark.parametrize("name", WALKS)
@pytest.mark.filterwarnings("default")  # of the notebook's own machinery
def test_a_walk_runs_and_prints_what_it_shows(name, tmp_path, monkeypatch):
    for package in NEEDED.get(name, ()):
        pytest.importorskip(package)
    monkeypatch.setenv("PATH", execute.search_path())
    before, book = walk(name), walk(name)
    execute.run_notebook(book, tmp_path)
    assert printed(book) == printed(before)


def printed(book: nbformat.NotebookNode) -> list[set[str]]:
    """How the lines of each cell's output begin, without numbers, which another processor may change."""
    texts = [
        "".join(each.get("text") or each.data["text/plain"] for each in cell.outputs) for cell in execute.code_of(book)
    ]
    return [{execute.masked(line).split()[0] for line in text.splitlines() if line.strip()} for text in texts]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_page_uses_public_names_only(path):
    assert private(text_of(path)) == []


def test_private_names_are_found():
    inside = "```python\nfrom axonnx.runtime.readers import read_npz\n```\n"
    assert private(inside) == ["axonnx.runtime.readers.read_npz", "axonnx.runtime.readers"]
    assert private("```python\nimport axonnx\naxonnx.train.run()\n```\n") == ["axonnx.train.run"]
    assert private("```python\nfrom axonnx.models import LIF, secret\n```\n") == ["axonnx.models.secret"]
    assert private("Call `axonnx.nothing`.") == ["axonnx.nothing"]
    assert private("```python\nimport axonnx as ax\nax.train.run()\n```\n") == ["axonnx"]
    assert private("```python\nimport axonnx\naxonnx.load('digits.onnx')._facts\n```\n") == ["._facts"]
    assert private("```python\nimport axonnx\naxonnx.load('digits.onnx').verify()\n```\n") == []
