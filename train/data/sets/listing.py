"""What stands in a folder of one's own recordings: recordings by class, and files that are none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

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
