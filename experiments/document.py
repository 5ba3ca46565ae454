"""Generated parts of a document that is otherwise written by hand."""

from __future__ import annotations

from pathlib import Path

from axonnx.base.errors import AxonnxError
from axonnx.base.files import write_text


def fill(path: Path, name: str, text: str) -> None:
    """Put ``text`` between the document's marks for ``name``."""
    before, _, after = _parts(path, name)
    write_text(path, f"{before}\n{text}\n{after}")


def part(path: Path, name: str) -> str:
    """What stands between them now."""
    return _parts(path, name)[1].strip("\n")


def _parts(path: Path, name: str) -> tuple[str, str, str]:
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    whole = path.read_text("utf-8") if path.is_file() else ""
    if whole.count(begin) != 1 or whole.count(end) != 1 or whole.index(end) < whole.index(begin):
        raise AxonnxError(f"{path}: expected one line {begin!r} and, after it, one line {end!r}")
    first, second = whole.index(begin) + len(begin), whole.index(end)
    return whole[:first], whole[first:second], whole[second:]
