"""Label files: which class a recording shows from when to when."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from axonnx.base.errors import AxonnxError

REQUIRED = ("start", "end", "label")


class Piece(NamedTuple):
    """Microseconds start … end − 1 on the clock of a recording, and the class that they show."""

    start: int
    end: int
    label: str


def label_files(folder: Path, name: str) -> list[Path]:
    """Find the label files that `name` means: one of that name, or with * one beside each recording."""
    found = sorted(folder.rglob(name)) if "*" in name else [folder / name]
    if not found or not found[0].is_file():
        raise AxonnxError(
            f"{folder}: there is no label file {name!r}; data.windows.labels is a csv of the columns "
            f"file,start,end,label in that folder, or '*_labels.csv' for one beside each recording"
        )
    return found


def read_pieces(folder: Path, name: str, recordings: Sequence[Path]) -> dict[Path, list[Piece]]:
    """Read the pieces of every recording that has some."""
    files = label_files(folder, name)
    if "*" in name:
        before, after = name.rsplit("/", 1)[-1].split("*", 1)
        beside = {file: file.name[len(before) : len(file.name) - len(after)] for file in files}
        known = {(path.parent, path.stem): path for path in recordings}
        pieces = {known.get((file.parent, stem)): _read(file) for file, stem in beside.items()}
        return {path: [piece for _, piece in rows] for path, rows in pieces.items() if path is not None}
    return _of_all(files[0], folder, recordings)


def _of_all(file: Path, folder: Path, recordings: Sequence[Path]) -> dict[Path, list[Piece]]:
    """Read the rows of one file for all recordings, by its column file."""
    known = {str(path.relative_to(folder)): path for path in recordings} | {path.name: path for path in recordings}
    found: dict[Path, list[Piece]] = {}
    for row, piece in _read(file):
        wanted = row.get("file")
        if wanted is None and len(recordings) != 1:
            raise AxonnxError(
                f"{file}: has no column file, and there are {len(recordings)} recordings; say which each row is of"
            )
        path = recordings[0] if wanted is None else known.get(wanted)
        if path is None:
            raise AxonnxError(f"{file}: names the recording {wanted!r}, which is not below {folder}")
        found.setdefault(path, []).append(piece)
    return found


def _read(file: Path) -> list[tuple[Mapping[str, str], Piece]]:
    """Read the rows of a label file; a row that is none is refused with its line."""
    try:
        with open(file, encoding="utf-8-sig", newline="") as stream:
            rows = list(csv.reader(stream))
    except (UnicodeDecodeError, csv.Error) as error:
        raise AxonnxError(f"{file}: is no csv text ({error})") from None
    names = [name.strip().lower() for name in rows[0]] if rows else []
    missing = [name for name in REQUIRED if name not in names]
    if missing:
        raise AxonnxError(
            f"{file}: line 1: has no column {' and no '.join(missing)} among {', '.join(names) or 'nothing'}; expected "
            f"start,end,label (µs on the recording's clock), and file where it is for several recordings"
        )
    return [_row(file, line, names, row) for line, row in enumerate(rows[1:], 2) if row]


def _row(file: Path, line: int, names: list[str], row: list[str]) -> tuple[Mapping[str, str], Piece]:
    cells = dict(zip(names, (cell.strip() for cell in row), strict=False))
    try:
        piece = Piece(int(cells["start"]), int(cells["end"]), cells["label"])
    except (KeyError, ValueError):
        raise AxonnxError(
            f"{file}: line {line}: found {','.join(row)!r}; expected {','.join(names)} with whole µs for start and end"
        ) from None
    if piece.end <= piece.start or not piece.label:
        raise AxonnxError(f"{file}: line {line}: ends at {piece.end} and starts at {piece.start}, as {piece.label!r}")
    return cells, piece
