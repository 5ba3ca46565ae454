"""Collect everything that decides how axonnx works on this machine, with the places of caches and data sets."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from pathlib import Path

from axonnx.runtime.doctor.findings import (
    Cache,
    Data,
    Diagnosis,
    examine_engines,
    native_core,
    packages,
    processor,
    programs,
    version,
)
from axonnx.train.data import event_sets, image_files
from axonnx.train.data.cache import cache_folder
from axonnx.train.data.event_store import ROOT_VARIABLE
from axonnx.train.data.registry import DATA_SETS


def examine() -> Diagnosis:
    """Examine the machine, and run every engine on small inputs with known answers.

    Returns:
        Everything that was found; ``well`` states whether no engine is wrong.

    Examples:
        >>> axonnx.examine().well
        True
    """
    versions, extras = packages()
    root = data_folder()
    return Diagnosis(
        axonnx=version("axonnx") or "not installed",
        python=f"{platform.python_implementation()} {platform.python_version()}",
        system=platform.platform(),
        packages=versions,
        extras=extras,
        processor=processor(),
        programs=programs(),
        core=native_core(),
        engines=examine_engines(),
        caches=caches(),
        data_root=None if root is None else str(root),
        data=data_sets(root),
    )


BUILT_IN = ("digits-saccade", "digits-static")
IDX = "train-images-idx3-ubyte*"
# A pattern below the data folder for one file of each data set: enough to see that it is there.
FIRST_FILES: dict[str, tuple[str, ...]] = {
    "shd": tuple(f"{folder}{event_sets.SHD_FILES[0]}" for folder in ("", "SHD/", "shd/")),
    "shd-regenerated": (event_sets.REGENERATED[0],),
    "dvs-gesture": (f"{event_sets.DVS_GESTURE.tonic}/*/{event_sets.DVS_GESTURE.pattern}",),
    "dvs-gesture-32x32": (event_sets.GESTURES_SMALL[0],),
    "dvs-gesture-slices": (event_sets.GESTURES_SMALL[0],),
    "nmnist": (f"{event_sets.NMNIST.tonic}/*/{event_sets.NMNIST.pattern}",),
    "nmnist-1000": (event_sets.NMNIST_SMALL[0],),
    "cifar10": tuple(f"{folder}{image_files.FILES[0]}" for folder in ("cifar-10-batches-bin/", "cifar10/", "")),
    "cifar10-5000": (image_files.SMALL[0],),
    "mnist": tuple(f"{folder}/{IDX}" for folder in ("mnist", "MNIST", "MNIST/raw")),
    "fashion-mnist": tuple(
        f"{folder}/{IDX}" for folder in ("fashion-mnist", "FashionMNIST", "FashionMNIST/raw", "dataset-fashion-mnist")
    ),
    "idx": (IDX,),
}


def data_folder() -> Path | None:
    """Return the data folder that the environment names; None if it names none."""
    given = os.environ.get(ROOT_VARIABLE)
    return Path(given).expanduser() if given else None


def data_sets(root: Path | None) -> tuple[Data, ...]:
    """Return each data set that training knows by name, and its first file if it is there."""
    return tuple(Data(name=name, found=_found(name, root)) for name in DATA_SETS)


def _found(name: str, root: Path | None) -> str | None:
    if name in BUILT_IN:
        return "built in"
    if root is None or not root.is_dir():
        return None
    found = (path for pattern in FIRST_FILES.get(name, ()) for path in root.glob(pattern))
    first = next(found, None)
    return None if first is None else str(first)


def caches() -> tuple[Cache, ...]:
    """Return the sizes of what training keeps between runs, such as binned frames."""
    home = cache_folder()
    found: dict[str, list[Path]] = {}
    for path in sorted(home.iterdir()) if home.is_dir() else []:
        found.setdefault(path.name.split("-")[0], []).append(path)
    return tuple(_cache(home, name, paths) for name, paths in sorted(found.items()))


def _cache(home: Path, name: str, paths: list[Path]) -> Cache:
    sizes = [size for path in paths for size in _sizes(path)]
    return Cache(name=name, path=str(home), files=len(sizes), bytes=sum(sizes))


def _sizes(path: Path) -> Iterator[int]:
    for file in path.rglob("*") if path.is_dir() else [path]:
        try:
            if file.is_file() and not file.is_symlink():
                yield file.stat().st_size
        except OSError:  # deleted in the meantime
            continue
