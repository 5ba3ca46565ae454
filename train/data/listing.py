"""What stands in a folder of recordings: a sub-folder for each class, or label files with the pieces of recordings."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from axonnx.base.errors import AxonnxError
from axonnx.runtime.readers.binary import read_head
from axonnx.runtime.readers.formats import SUFFIXES, format_of, is_meant_as_recording

PARTS = ("train", "validation", "test")


@dataclass(frozen=True)
class Listing:
    """Recordings with the folder that is their class, by class and path, and files that are no recordings."""

    folder: Path
    recordings: tuple[tuple[str, Path], ...]
    ignored: tuple[Path, ...]

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the class folders."""
        return tuple(folders_in(self.folder))

    def notes(self) -> list[str]:
        """Return a line about files that are no recordings."""
        if not self.ignored:
            return []
        kinds = Counter(path.suffix.lower() or "no suffix" for path in self.ignored)
        counts = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common(6))
        names = ", ".join(str(path.relative_to(self.folder)) for path in self.ignored[:5])
        more = f" and {len(self.ignored) - 5} more" if len(self.ignored) > 5 else ""
        return [
            f"{self.folder}: {len(self.ignored)} files are no recordings and are left out ({counts}): {names}{more}"
        ]


def list_recordings(folder: Path, without: Sequence[Path] = ()) -> Listing:
    """Every recording `<folder>/<class>/…/<file>` by its content or suffix; `without` are label files."""
    found: list[tuple[str, Path]] = []
    ignored = [path for path in sorted(folder.glob("[!.]*")) if path.is_file() and path not in without]
    for name in folders_in(folder):
        for path in sorted((folder / name).rglob("[!.]*")):
            if path.is_file() and path not in without and not _hidden(path.relative_to(folder)):
                found.append((name, path)) if is_recording(path) else ignored.append(path)
    return Listing(folder, tuple(found), tuple(ignored))


def list_labelled(folder: Path, without: Sequence[Path]) -> Listing:
    """Every recording below the folder, whose classes stand in label files."""
    paths = [path for path in sorted(folder.rglob("[!.]*")) if path.is_file() and path not in without]
    paths = [path for path in paths if not _hidden(path.relative_to(folder))]
    found = [path for path in paths if is_recording(path)]
    return Listing(folder, tuple(("", path) for path in found), tuple(path for path in paths if path not in found))


def is_recording(path: Path) -> bool:
    """Whether a file is of a known format; one that has a known suffix is, even where it is damaged."""
    if path.suffix.lower() in SUFFIXES:
        return is_meant_as_recording(path)
    try:
        format_of(path, read_head(path))
    except AxonnxError:
        return False
    return True


def has_parts(folder: Path) -> bool:
    """Whether the folder has train/ and test/ (and validation/) above its classes."""
    names = set(folders_in(folder))
    if "train" in names and names <= set(PARTS) and "test" not in names and len(names) > 1:
        raise AxonnxError(
            f"{folder}: has {', '.join(sorted(names))} and no test; expected train, test and maybe validation"
        )
    return {"train", "test"} <= names <= set(PARTS)


def folders_in(folder: Path) -> list[str]:
    """Names of the sub-folders."""
    return sorted(each.name for each in folder.iterdir() if each.is_dir() and not each.name.startswith("."))


def _hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


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
