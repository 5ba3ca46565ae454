"""A live torch module, or the one that ``file.py:factory`` makes."""

from __future__ import annotations

import runpy
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from torch import nn

from axonnx.base.errors import AxonnxError


def load_live(source: nn.Module | str | Path) -> nn.Module:
    """The module itself, or what a class or function of that name in a Python file gives, called without arguments."""
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
