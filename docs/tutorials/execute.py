"""Tutorials and guides, run as they stand: in order, in an empty folder; what they print is what is shown.

    python docs/tutorials/execute.py docs/tutorials/1-five-minutes.md              write what a page printed into it
    python docs/tutorials/execute.py docs/tutorials/1-five-minutes.md --notebook   and a notebook into examples/

A block ``console`` holds commands after ``$`` with their output, a block ``python`` is run and followed by a block
``text`` where it prints, a block with a ``title`` is a file. A line ``…`` stands for lines that are left out.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

EXAMPLES = Path(__file__).parents[2] / "examples"
FENCE = re.compile(r"^```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
LEFT_OUT = "…"


class Block(NamedTuple):
    """A fenced block: its language, the file it is (or none), its text, and where it stands in the page."""

    kind: str
    title: str | None
    text: str
    start: int
    stop: int


def blocks(page: str) -> list[Block]:
    """The fenced blocks of a page in order."""
    return [Block(m[1], m[2], m[3], m.start(3), m.end(3)) for m in FENCE.finditer(page)]


def execute(page: str, folder: Path) -> str:
    """The page with what its blocks print now."""
    new, at, names, printed = "", 0, {"__name__": "tutorial"}, None
    for block in blocks(page):
        text = block.text
        if block.title:
            (folder / block.title).write_text(text, "utf-8")
        elif block.kind == "console":
            text = "".join(_command(command, shown, folder) for command, shown in commands(text))
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


def _command(command: str, shown: str, folder: Path) -> str:
    environment = {**os.environ, "PATH": search_path()}
    done = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"$ {command}\n{done.stdout}{done.stderr}"
    return f"$ {command}\n{shortened(done.stdout, shown)}"


def _python(text: str, names: dict[str, Any], folder: Path) -> str:
    out = io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(out):
        exec(compile(text, "tutorial", "exec"), names)
    return out.getvalue()


def shortened(printed: str, shown: str) -> str:
    """What was printed, without the lines that ``shown`` leaves out at its ``…``."""
    if LEFT_OUT not in shown.splitlines():
        return printed
    before, after = (part.count("\n") for part in shown.split(f"{LEFT_OUT}\n", 1))
    lines = printed.splitlines(keepends=True)
    return "".join([*lines[:before], f"{LEFT_OUT}\n", *(lines[-after:] if after else [])])


def masked(page: str) -> str:
    """The page without what another processor or another moment changes: numbers and the width of columns."""
    return re.sub(r"[ \t]+|─+|-{3,}", " ", re.sub(r"-?\d[\d.,:]*(?:e-?\d+)?", "#", page))


def notebook(page: str) -> dict[str, Any]:
    """The page as a notebook: its text, its commands in bash, its Python; outputs are left to whoever runs it."""
    cells, at = [], 0
    for block in blocks(page):
        fence = page.rindex("```", 0, block.start)
        cells.append(_cell("markdown", page[at:fence]))
        if block.title:
            cells.append(_cell("code", f"%%writefile {block.title}\n{block.text}"))
        elif block.kind == "console":
            lines = ["%%bash", "set -e", *(command for command, _ in commands(block.text))]
            cells.append(_cell("code", "\n".join(lines)))
        elif block.kind == "python":
            cells.append(_cell("code", block.text))
        elif block.kind != "text":
            cells.append(_cell("markdown", f"```{block.kind}\n{block.text}```"))
        at = page.index("\n", block.stop) + 1
    cells.append(_cell("markdown", page[at:]))
    kept = [cell for cell in cells if "".join(cell["source"]).strip()]
    numbered = [{"id": f"cell-{number}", **cell} for number, cell in enumerate(kept)]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": numbered, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def _cell(kind: str, text: str) -> dict[str, Any]:
    cell: dict[str, Any] = {"cell_type": kind, "metadata": {}, "source": text.strip("\n").splitlines(keepends=True)}
    return cell | ({"execution_count": None, "outputs": []} if kind == "code" else {})


def main() -> None:
    """Run pages and write what they printed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="+", type=Path, metavar="PAGE.md")
    parser.add_argument("--notebook", action="store_true", help="write examples/PAGE.ipynb too")
    options = parser.parse_args()
    for path in options.pages:
        with tempfile.TemporaryDirectory() as folder:
            path.write_text(execute(path.read_text("utf-8"), Path(folder)), "utf-8")
        if options.notebook:
            EXAMPLES.mkdir(exist_ok=True)
            text = json.dumps(notebook(path.read_text("utf-8")), indent=1, ensure_ascii=False) + "\n"
            (EXAMPLES / f"{path.stem}.ipynb").write_text(text, "utf-8")


if __name__ == "__main__":
    main()
