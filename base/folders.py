"""Folders of generated files that are written completely or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path

from axonnx.base.errors import AxonnxError
from axonnx.base.files import PART


def write_folder(path: str | os.PathLike[str], files: Mapping[str, str], mark: str) -> Path:
    """Make the folder ``path`` of texts by their names; one that stands there is replaced where ``mark`` is in it.

    Files grow in a folder beside it, which takes its place when all are written. ``mark`` is the name of a file that
    only generated folders have: a folder with other things in it is refused, not mixed with or emptied.
    """
    final = Path(path)
    _check_place(final, mark)
    temporary = final.with_name(f".{final.name}.{secrets.token_hex(4)}{PART}")
    try:
        for name, text in files.items():
            place = temporary / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, encoding="utf-8", newline="\n")
        _take_place(temporary, final)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return final


def _check_place(final: Path, mark: str) -> None:
    if final.resolve() == Path.cwd().resolve():
        raise AxonnxError(f"{final}: the folder you are in; name a new one to write, e.g. {final / 'out'}")
    if not final.resolve().parent.is_dir():
        raise AxonnxError(f"{final}: there is no folder {final.resolve().parent} to make it in; make that first")
    if final.exists() and not final.is_dir():
        raise AxonnxError(f"{final}: a file; name a folder to write")
    if final.is_dir() and any(final.iterdir()) and not (final / mark).is_file():
        raise AxonnxError(f"{final}: a folder with other things in it, which would be lost; name a new one")


def _take_place(temporary: Path, final: Path) -> None:
    """What stood there moves aside first, for a folder with files in it cannot be replaced in one step."""
    if not final.exists():
        os.replace(temporary, final)
        return
    aside = final.with_name(f".{final.name}.{secrets.token_hex(4)}{PART}")
    os.replace(final, aside)
    try:
        os.replace(temporary, final)
    except OSError:
        os.replace(aside, final)
        raise
    shutil.rmtree(aside)
