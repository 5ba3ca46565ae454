"""Pages run as they stand, in an empty folder, and what they show is what they print; no code is left unrun."""

import importlib.util
import re
from pathlib import Path

import pytest
import torch

from axonnx import native
from axonnx.runtime.readers import FORMATS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
_spec = importlib.util.spec_from_file_location("execute", DOCS / "execute.py")
execute = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(execute)

RUNNABLE = ("console", "python")
ALL = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))


def read(name: str) -> str:
    return (DOCS / name).read_text("utf-8")


def to_run(name: str) -> bool:
    """Whether a page has something to run here."""
    return any(block.kind in RUNNABLE and block.can_run for block in execute.blocks(read(name)))


def words(text: str) -> set[str]:
    """What its lines begin with, whatever numbers they hold; rows of the native engine only where there is a core."""
    found = {execute.masked(line).split()[0] for line in text.splitlines() if line.strip()}
    return found if native.core() else found - {"native", "native,"}


def shown(page: str) -> list[set[str]]:
    """What each command and each piece of Python is said to print, by how its lines begin."""
    found = []
    for block in execute.blocks(page):
        if block.kind == "console":
            found += [words(text) for _, text in execute.commands(block.text)]
        elif block.kind == "text":
            found.append(words(block.text))
    return [lines - {execute.LEFT_OUT} for lines in found]


def not_run(page: str) -> list[str]:
    """First lines of blocks that look like code, that nobody runs, and that do not say why."""
    ran = {block.start for block in execute.blocks(page) if block.mark or block.title or block.kind in RUNNABLE}
    ran |= {
        after.start
        for before, after in zip(execute.blocks(page), execute.blocks(page)[1:], strict=False)
        if before.kind == "python" and after.kind == "text"
    }
    fences = re.finditer(r"^```([^\n]*)\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    return [m[2].split("\n")[0] for m in fences if m.start(2) not in ran and (m[1] or _commands(m[2]))]


def _commands(text: str) -> bool:
    """Whether a block without a language holds commands after all."""
    return bool(re.search(r"^(\$|axonnx|python|pip|make) ", text, re.MULTILINE))


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """One training for all pages that begin alike."""
    return execute.Beginnings(tmp_path_factory.mktemp("begun"))


@pytest.fixture
def caches(tmp_path_factory, monkeypatch):
    """Recordings are cached for the pages alone."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


@pytest.mark.parametrize("name", [name for name in ALL if to_run(name)])
def test_a_page_runs_and_prints_what_it_shows(name, tmp_path, begun, caches):
    page = read(name)
    now = execute.execute(page, tmp_path, begun)
    assert [lines - new for lines, new in zip(shown(page), shown(now), strict=True)] == [set()] * len(shown(page))


@pytest.mark.parametrize("name", [*ALL, "../CONTRIBUTING.md"])
def test_no_code_is_left_that_nobody_runs(name):
    assert not_run(read(name)) == [], "run it (docs/execute.py says how), or say above it <!-- not run: why -->"


def test_every_format_of_recordings_has_its_row():
    rows = re.findall(r"^\| `([\w.]+)` \| [^|]+ \| ([^|]+) \|[^|]*\|$", read("streams.md"), re.MULTILINE)
    told = {name: tuple(suffixes.split()) for name, suffixes in rows if suffixes.startswith(".")}
    assert told == {name: form.suffixes for name, form in FORMATS.items() if form.suffixes}


def test_code_that_nobody_runs_is_found():
    assert not_run("```sh\nls\n```\n") == ["ls"]
    assert not_run("```\naxonnx train\n```\n") == ["axonnx train"]
    assert not_run("```text\nok\n```\n") == ["ok"]
    assert not_run("<!-- not run: needs a GPU -->\n```console\n$ axonnx train\n```\n") == []
    assert not_run("```\nx ≥ θ\n```\n\n```python\nprint(1)\n```\n\n```text\n1\n```\n") == []


def test_what_a_page_shows_is_compared(tmp_path):
    page = "```console\n$ echo ok 3\nok 4\n```\n\n```python\nprint('a', 1)\n```\n\n```text\nb 1\n```\n"
    now = execute.execute(page, tmp_path)
    assert "ok 3\n```" in now
    assert shown(page) == [{"ok"}, {"b"}]
    assert shown(now) == [{"ok"}, {"a"}]
    with pytest.raises(AssertionError, match="no-such-command"):
        execute.execute("```console\n$ no-such-command\n```\n", tmp_path)
    with pytest.raises(AssertionError, match="cannot be read"):
        execute.execute("```console\n$ axonnx inspect nothing.onnx\n```\n", tmp_path)


def test_a_marked_block_stays_as_it_is(tmp_path):
    missing = "<!-- needs: no-such-tool -->\n```console\n$ no-such-tool\n```\n"
    page = f"<!-- not run: no GPU -->\n```console\n$ false\nok\n```\n\n{missing}"
    assert execute.execute(page, tmp_path) == page


def test_pages_that_begin_alike_begin_once(tmp_path):
    begun = execute.Beginnings(tmp_path)
    page = "```console\n$ date +%N > made; cat made\n0\n```\n\n```console\n$ cat made\n0\n```\n"
    found = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        found.append(execute.execute(page, tmp_path / name, begun))
    assert found[0] == found[1] != page
    assert re.search(r"(\d+)\n```\n\n```console\n\$ cat made\n\1\n", found[0])


def test_modules_of_a_page_are_forgotten(tmp_path):
    for name, number in (("one", 1), ("two", 2)):
        (tmp_path / name).mkdir()
        page = f'```python title="of_a_page.py"\nnumber = {number}\n```\n\n```python\nimport sys\n'
        page += 'sys.path.insert(0, "")\nimport of_a_page\nprint(of_a_page.number)\n```\n\n```text\n0\n```\n'
        assert f"```text\n{number}\n" in execute.execute(page, tmp_path / name)


def test_left_out_lines_stay_left_out():
    assert execute.shortened("1\n2\n3\n4\n", "a\n…\nb\n") == "1\n…\n4\n"
    assert execute.shortened("1\n2\n", "a\nb\n") == "1\n2\n"
    assert execute.masked("took 1:02, 99.2 %") == "took # # %"
