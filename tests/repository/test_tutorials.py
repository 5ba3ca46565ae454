"""Tutorials and guides run as they stand, in an empty folder, and what they show is what they print."""

import importlib.util
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "tutorials"
_spec = importlib.util.spec_from_file_location("execute", FOLDER / "execute.py")
execute = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(execute)

PAGES = sorted(path.stem for path in FOLDER.glob("*.md"))
GUIDES = sorted(path.stem for path in (ROOT / "docs" / "how-to").glob("*.md"))
NOTEBOOKS = sorted(path.stem for path in (ROOT / "examples").glob("*.ipynb"))


def words(text: str) -> set[str]:
    """What its lines begin with, whatever numbers they hold."""
    return {execute.masked(line).split()[0] for line in text.splitlines() if line.strip()}


def shown(page: str) -> list[set[str]]:
    """What each command and each piece of Python is said to print, by how its lines begin."""
    found = []
    for block in execute.blocks(page):
        if block.kind == "console":
            found += [words(text) for _, text in execute.commands(block.text)]
        elif block.kind == "text":
            found.append(words(block.text))
    return [lines - {execute.LEFT_OUT} for lines in found]


def read(name: str) -> str:
    folder = ROOT / "docs" / "how-to" if name in GUIDES else FOLDER
    return (folder / f"{name}.md").read_text("utf-8")


def test_there_are_five_and_three_are_notebooks():
    assert [name[0] for name in PAGES] == ["1", "2", "3", "4", "5"]
    assert PAGES[:3] == NOTEBOOKS


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_is_its_page(name):
    kept = json.loads((ROOT / "examples" / f"{name}.ipynb").read_text("utf-8"))
    assert kept == execute.notebook(read(name)), "python docs/tutorials/execute.py PAGE.md --notebook"


@pytest.mark.parametrize("name", NOTEBOOKS)
@pytest.mark.filterwarnings("default")  # of the notebook's own machinery
def test_a_notebook_runs_and_prints_what_its_page_shows(name, tmp_path, monkeypatch):
    client = pytest.importorskip("nbclient", reason="notebooks run in jupyter's kernel: pip install nbclient ipykernel")
    nbformat = pytest.importorskip("nbformat")
    monkeypatch.setenv("PATH", execute.search_path())
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    book = nbformat.read(ROOT / "examples" / f"{name}.ipynb", as_version=4)
    client.NotebookClient(book, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    cells = [cell for cell in book.cells if cell.cell_type == "code" and not cell.source.startswith("%%writefile")]
    printed = words("\n".join("".join(out.get("text", "") for out in cell.outputs) for cell in cells))
    assert cells
    assert set().union(*shown(read(name))) - printed == set()


@pytest.mark.parametrize("name", [*(name for name in PAGES if name not in NOTEBOOKS), *GUIDES])
def test_a_page_runs_and_prints_what_it_shows(name, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    page = read(name)
    (tmp_path / "here").mkdir()
    now = execute.execute(page, tmp_path / "here")
    assert [lines - new for lines, new in zip(shown(page), shown(now), strict=True)] == [set()] * len(shown(page))


def test_what_a_page_shows_is_compared():
    page = "```console\n$ echo ok 3\nok 4\n```\n\n```python\nprint('a', 1)\n```\n\n```text\nb 1\n```\n"
    now = execute.execute(page, Path.cwd())
    assert "ok 3\n```" in now
    assert shown(page) == [{"ok"}, {"b"}]
    assert shown(now) == [{"ok"}, {"a"}]
    with pytest.raises(AssertionError, match="no-such-command"):
        execute.execute("```console\n$ no-such-command\n```\n", Path.cwd())


def test_left_out_lines_stay_left_out():
    assert execute.shortened("1\n2\n3\n4\n", "a\n…\nb\n") == "1\n…\n4\n"
    assert execute.shortened("1\n2\n", "a\nb\n") == "1\n2\n"
    assert execute.masked("took 1:02, 99.2 %") == "took # # %"
