"""A live torch module, or the one that ``file.py:factory`` makes."""

from __future__ import annotations

import runpy
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from axonnx.base.errors import AxonnxError
from axonnx.base.files import replacing
from axonnx.export.convert.source import Source


def load_live(source: nn.Module | str | Path) -> nn.Module:
    """Return the module, or what a class or function of that name in a Python file gives without arguments."""
    return source if isinstance(source, nn.Module) else _made(str(source), _version(str(source)))


def _version(source: str) -> tuple[object, ...]:
    """Which file a source is in, and as of when: another folder's file, or a changed one, is another source."""
    path = Path(source.rpartition(":")[0])
    if not path.is_file():
        return ()
    found = path.stat()
    return path.resolve(), found.st_mtime_ns, found.st_size


@cache
def _made(source: str, version: tuple[object, ...]) -> nn.Module:
    place, _, name = source.rpartition(":")
    if not place or not name:
        raise AxonnxError(
            f"{source}: expected a NIR file (.nir), or 'my_network.py:make', a function or class of a Python file that "
            f"gives the trained network"
        )
    found = _names(place).get(name)
    if found is None:
        raise AxonnxError(f"{place}: has no {name!r}")
    try:
        made = found if isinstance(found, nn.Module) else found()
    except Exception as fault:
        raise AxonnxError(f"{place}: {name}() failed: {type(fault).__name__}: {fault}") from fault
    if not isinstance(made, nn.Module):
        raise AxonnxError(f"{place}: {name} gives a {type(made).__name__}; expected a torch module with its weights")
    return made


def _names(place: str) -> dict[str, Any]:
    if not place.endswith(".py"):
        try:
            return vars(import_module(place))
        except ImportError as fault:
            raise AxonnxError(f"{place}: cannot be imported: {fault}") from None
    if not Path(place).is_file():
        raise AxonnxError(f"{place}: no such file")
    try:
        return runpy.run_path(place)
    except Exception as fault:
        raise AxonnxError(f"{place}: running it failed: {type(fault).__name__}: {fault}") from fault


PARTS = {"train": 1, "test": 0}  # and the seed of each
SHIFT = 8  # grey levels as parts of 256


def random_frames(shape: tuple[int, ...], steps: int, samples: int, largest: int, seed: int) -> NDArray[np.uint8]:
    """[N, T, C, H, W]: every sample has a rate of its own, from rare events to many, and a silent stretch."""
    random = np.random.default_rng(seed)
    rates = random.uniform(0.02, 0.5, (samples, 1, 1, 1, 1))
    frames = (random.random((samples, steps, *shape)) < rates) * random.integers(
        1, largest + 1, (samples, steps, *shape)
    )
    for sample in frames:
        begin = int(random.integers(0, max(1, steps - steps // 8)))
        sample[begin : begin + steps // 8] = 0
    return frames.astype(np.uint8)


def random_images(shape: tuple[int, ...], samples: int, seed: int) -> NDArray[np.uint8]:
    """[N, C, H, W]: grey levels, of which a share of its own is dark in every image."""
    random = np.random.default_rng(seed)
    bright = random.random((samples, *shape)) < random.uniform(0.05, 0.8, (samples, 1, 1, 1))
    return (bright * random.integers(1, 256, (samples, *shape))).astype(np.uint8)


def write_images(folder: Path, source: Source, shape: tuple[int, ...], samples: int) -> dict[str, Any]:
    """As ``write_samples``, of images for a network that shows them by itself; the settings of such data."""
    folder.mkdir(parents=True, exist_ok=True)
    for part, seed in PARTS.items():
        images = random_images(shape, samples, seed)
        x = torch.from_numpy(images).float() * 2.0**-SHIFT
        outputs = source.observe(x.expand(source.repeats, *x.shape)).outputs
        with replacing(folder / f"{part}.npz") as temporary, open(temporary, "wb") as file:
            np.savez_compressed(file, frames=images, labels=outputs.double().mean(0).argmax(-1).numpy())
    return {"data.repeat": source.repeats, "data.shift": SHIFT}


def write_samples(folder: Path, source: Source, shape: tuple[int, ...], steps: int, samples: int, largest: int) -> None:
    """``train.npz`` and ``test.npz``, whose labels are what the source network decides."""
    folder.mkdir(parents=True, exist_ok=True)
    for part, seed in PARTS.items():
        frames = random_frames(shape, steps, samples, largest, seed)
        labels = source.observe(time_first(frames)).outputs.double().mean(0).argmax(-1).numpy()
        with replacing(folder / f"{part}.npz") as temporary, open(temporary, "wb") as file:
            np.savez_compressed(file, frames=frames, labels=labels.astype(np.int64))


def time_first(frames: NDArray[np.uint8]) -> Tensor:
    """[N, T, …] as the float32 [T, N, …] that networks take."""
    return torch.from_numpy(frames).float().transpose(0, 1).contiguous()
