"""Pages, run as they stand: in order, in an empty folder; what they print is what is shown.

    python docs/execute.py docs/how-to/uncertainty.md docs/tutorials/1-train.ipynb     write what was printed into them

A notebook is run cell by cell. In a page, a block ``console`` holds commands after ``$`` with their output, a block
``python`` is run and followed by a block ``text`` if it prints, a block with a ``title`` is a file. A line ``…`` stands
for lines that are left out. Blocks inside a comment are run and not shown. A comment right above a block says what is
special about it:

    <!-- needs: node, gcc -->          run where these programs are
    <!-- not run: needs a GPU -->      shown only, with the reason
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from axonnx.cli import main as axonnx

MARK = r"^<!-- (?P<mark>needs|not run): (?P<why>[^\n]+) -->\n"
FENCE = re.compile(
    rf"(?:{MARK})?^```(?P<kind>\w+)(?: title=\"(?P<title>[^\"]+)\")?\n(?P<text>.*?)^```\n", re.MULTILINE | re.DOTALL
)
LEFT_OUT = "…"
HOME = "/home/me"
SHELL = set("|<>$*&;~`(){}")  # characters that ask for a shell


class Block(NamedTuple):
    """A fenced block: its language, the file it is (or none), its text, where it stands in the page, and its mark."""

    kind: str
    title: str | None
    text: str
    start: int
    stop: int
    mark: str | None = None
    why: str = ""

    @property
    def can_run(self) -> bool:
        """Whether this machine has what the block needs."""
        if self.mark == "needs":
            return all(shutil.which(name.strip(), path=search_path()) for name in self.why.split(","))
        return self.mark is None


class Beginnings:
    """What the first console of a page left and printed; pages that begin alike share it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.known: dict[str, tuple[Path, list[str]]] = {}

    def run(self, block: Block, folder: Path) -> list[str]:
        """Return what its commands print, with ``folder`` as they leave it."""
        lines = [command for command, _ in commands(block.text)]
        key = "\n".join(lines)
        if key not in self.known:
            kept = Path(tempfile.mkdtemp(dir=self.folder))
            self.known[key] = kept, [_printed(command, kept) for command in lines]
        kept, printed = self.known[key]
        shutil.copytree(kept, folder, dirs_exist_ok=True)
        return printed


def blocks(page: str) -> list[Block]:
    """Return the fenced blocks of a page in order."""
    return [
        Block(m["kind"], m["title"], m["text"], m.start("text"), m.end("text"), m["mark"], m["why"] or "")
        for m in FENCE.finditer(page)
    ]


def execute(page: str, folder: Path, begun: Beginnings | None = None) -> str:
    """Return the page with what its blocks print now."""
    before = list(sys.path)
    try:
        return _executed(page, folder, begun)
    finally:
        sys.path[:] = before
        for name in [name for name, module in sys.modules.items() if _is_of(folder, module)]:
            del sys.modules[name]


def _is_of(folder: Path, module: Any) -> bool:
    """Whether a module was imported from the page's folder; another page may have one of the same name."""
    place = getattr(module, "__file__", None)
    return place is not None and (folder / place).resolve().is_relative_to(folder.resolve())


def _executed(page: str, folder: Path, begun: Beginnings | None) -> str:
    new, at, names, printed = "", 0, {"__name__": "page"}, None
    for block in blocks(page):
        text = block.text
        if not block.can_run:
            continue
        if block.title:
            (folder / block.title).write_text(text, "utf-8")
        elif block.kind == "console":
            found, begun = _console(block, folder, begun), None
            text = "".join(
                f"$ {command}\n{shortened(out, shown)}"
                for (command, shown), out in zip(commands(text), found, strict=True)
            )
        elif block.kind == "python":
            printed = _python(text, names, folder)
        elif block.kind == "text" and printed is not None:
            text, printed = shortened(printed, text), None
        new, at = new + page[at : block.start] + text, block.stop
    return new + page[at:]


def commands(text: str) -> list[tuple[str, str]]:
    """Commands of a console and what is shown below each."""
    parts = re.split(r"^\$ (.*)\n", text, flags=re.MULTILINE)
    assert not parts[0], f"a console begins with a command, not with {parts[0]!r}"
    return list(zip(parts[1::2], parts[2::2], strict=True))


def search_path() -> str:
    """Where commands are looked for: this Python's own first."""
    return f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


def _console(block: Block, folder: Path, begun: Beginnings | None) -> list[str]:
    if begun is not None and not any(folder.iterdir()):
        return begun.run(block, folder)
    return [_printed(command, folder) for command, _ in commands(block.text)]


def _printed(command: str, folder: Path) -> str:
    """Return what a command prints, as if ``folder`` were the reader's."""
    return _run(command, folder).replace(str(folder.resolve()), HOME)


def _run(command: str, folder: Path) -> str:
    """Our own commands run in this process, which has imported already what they need."""
    if command.startswith("axonnx ") and not SHELL & set(command):
        return _ours(shlex.split(command, comments=True)[1:], folder)
    environment = {**os.environ, "PATH": search_path()}
    done = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"$ {command}\n{done.stdout}{done.stderr}"
    return done.stdout


def _ours(words: list[str], folder: Path) -> str:
    out = io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True)
    said = io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(said):
        code = axonnx(words)
    printed: str = out.buffer.getvalue().decode()  # type: ignore[attr-defined]
    assert code == 0, f"$ axonnx {shlex.join(words)}\n{printed}{said.getvalue()}"
    return printed


def _python(text: str, names: dict[str, Any], folder: Path) -> str:
    out = io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(out):
        exec(compile(text, "page", "exec"), names)
    return out.getvalue()


def shortened(printed: str, shown: str) -> str:
    """Return what was printed, without the lines that ``shown`` leaves out at its ``…``."""
    if LEFT_OUT not in shown.splitlines():
        return printed
    before, after = (part.count("\n") for part in shown.split(f"{LEFT_OUT}\n", 1))
    lines = printed.splitlines(keepends=True)
    return "".join([*lines[:before], f"{LEFT_OUT}\n", *(lines[-after:] if after else [])])


def masked(page: str) -> str:
    """Remove what another processor or another moment changes: numbers and the width of columns."""
    return re.sub(r"[ \t]+|─+|-{3,}", " ", re.sub(r"-?\d[\d.,:]*(?:e-?\d+)?", "#", page))


def run_notebook(book: Any, folder: Path) -> None:
    """Run the cells of a notebook in ``folder`` and keep in it what they show; progress and warnings are left out."""
    from nbclient import NotebookClient

    NotebookClient(book, timeout=600, resources={"metadata": {"path": str(folder)}}).execute()
    for cell in book.cells:
        cell.metadata.clear()  # when it was run
    for cell in code_of(book):
        cell.outputs = [each for each in cell.outputs if each.get("name") != "stderr"]


def code_of(book: Any) -> list[Any]:
    """Return the cells that hold code."""
    return [cell for cell in book.cells if cell.cell_type == "code"]


def main() -> None:
    """Run pages and write what they printed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="+", type=Path, metavar="PAGE")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        begun = Beginnings(Path(place))
        for path in options.pages:
            folder = Path(place) / "pages" / path.stem
            folder.mkdir(parents=True)
            if path.suffix == ".ipynb":
                import nbformat

                book = nbformat.read(path, as_version=4)
                run_notebook(book, folder)
                nbformat.write(book, path)
            else:
                path.write_text(execute(path.read_text("utf-8"), folder, begun), "utf-8")


if __name__ == "__main__":
    main()
