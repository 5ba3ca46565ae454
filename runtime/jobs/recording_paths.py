"""Find recordings from folders, globs, lists and files, in the same order on every machine."""

from __future__ import annotations

import glob
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from axonnx.base.errors import AxonnxError
from axonnx.runtime.readers.formats import SUFFIXES, is_meant_as_recording


def names_many(sources: Sequence[str]) -> bool:
    """Return whether the sources may be several files: a folder, a glob, ``@`` and a list's name, or several names."""
    return len(sources) > 1 or any(_is_list(text) or _is_glob(text) or Path(text).is_dir() for text in sources)


def find_recordings(sources: Iterable[str]) -> list[Path]:
    """Return the files of all sources, each once; the files of a folder or glob are sorted by name.

    Raises:
        AxonnxError: If a source holds or matches no recording.
    """
    return list(dict.fromkeys(path for text in sources for path in _files(text)))


def _files(text: str) -> Iterator[Path]:
    if _is_list(text):
        for line in _lines(Path(text[1:])):
            yield from _files(line)
        return
    path = Path(text)
    if path.is_dir():
        found = sorted(each for each in path.rglob("*") if _is_recording(each, path))
    elif _is_glob(text):
        found = sorted(Path(each) for each in glob.glob(text, recursive=True) if Path(each).is_file())
    else:
        found = [path]  # the reader reports a missing file by name
    if not found:
        what = "matches no file" if _is_glob(text) else f"holds no recording ({' '.join(sorted(SUFFIXES))})"
        raise AxonnxError(
            f"{text}: {what}; expected a folder of recordings, a glob such as 'data/**/*.npz', or @list.txt"
        )
    yield from found


def _lines(path: Path) -> list[str]:
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        raise AxonnxError(f"{path}: cannot be read as a list of recordings: {fault}") from None
    return [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]


def _is_list(text: str) -> bool:
    return text.startswith("@") and not Path(text).exists()


def _is_glob(text: str) -> bool:
    return glob.has_magic(text) and not Path(text).exists()


def _is_recording(path: Path, folder: Path) -> bool:
    hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
    return not hidden and is_meant_as_recording(path)
