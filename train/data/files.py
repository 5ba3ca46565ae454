"""Where data files are looked for, and what is said when they are not there."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from axonnx.base.errors import AxonnxError

ROOT_VARIABLE = "AXONNX_DATA"


def data_root(root: str | Path | None, data_set: str) -> Path:
    """Return the folder that holds data sets: the argument, else the environment variable AXONNX_DATA."""
    chosen = root if root is not None else os.environ.get(ROOT_VARIABLE)
    advice = f"pass its root or set {ROOT_VARIABLE} to the folder that holds the data"
    if not chosen:
        raise AxonnxError(f"{data_set}: no data folder given; {advice}", options=("data_root",))
    folder = Path(chosen).expanduser()
    if not folder.is_dir():
        raise AxonnxError(f"{data_set}: {folder} is not a folder; {advice}", options=("data_root",))
    return folder


def find_files(
    root: str | Path | None, names: Sequence[str], *, folders: Sequence[str] = (".",), data_set: str, how: str
) -> list[Path]:
    """Return the paths of all `names`, in the first of the folders below the data folder that holds every one."""
    places = [data_root(root, data_set) / folder for folder in folders]
    for place in places:
        if all((place / name).is_file() for name in names):
            return [place / name for name in names]
    nearest = max(places, key=lambda place: sum((place / name).is_file() for name in names))
    missing = [name for name in names if not (nearest / name).is_file()]
    raise missing_files(data_set, names, places, f"{how}\n  still missing in {nearest}: {', '.join(missing)}")


def missing_files(data_set: str, expected: Iterable[object], looked_in: Iterable[object], how: str) -> AxonnxError:
    """Return an error that says which files are expected, where they were looked for and how to get them."""
    return AxonnxError(
        f"{data_set}: data files are missing"
        f"\n  expected: {', '.join(map(str, expected))}"
        f"\n  looked in: {', '.join(map(str, looked_in))}"
        f"\n  how to get them: {how}"
    )


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Faults found inside the block are reported with the file they were found in."""
    try:
        yield
    except AxonnxError as error:
        raise AxonnxError(f"{path}: {error}") from error
