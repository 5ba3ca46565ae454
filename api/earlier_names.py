"""The functions of the version before ``Run`` and ``Model``. They work for one more version, and warn when called."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any

from axonnx.model import load


def _warn(name: str, instead: str) -> None:
    warnings.warn(f"axonnx.{name} goes with the next version; use {instead}", DeprecationWarning, stacklevel=3)


def _same(name: str, home: str, instead: str) -> Any:
    """Return the function as it was, with the warning."""

    def earlier(*given: Any, **named: Any) -> Any:
        _warn(name, instead)
        return getattr(import_module(home), name)(*given, **named)

    earlier.__name__, earlier.__doc__ = name, f"Use {instead}."
    return earlier


train_run = _same("train_run", "axonnx.train.run", "axonnx.Run.train")
open_run = _same("open_run", "axonnx.train.trained", "axonnx.Run(folder).trained")
export_run = _same("export_run", "axonnx.export.exporting", "axonnx.Run(folder).export")
export_network = _same("export_network", "axonnx.export.exporting", "axonnx.Run(folder).export")
verify_file = _same("verify_file", "axonnx.export.verify.stages", "axonnx.load(file).verify(run)")


def profile_file(model: Any, *, run: Any = None, data: Any = None, limit: int | None = 256, **options: Any) -> Any:
    """Use axonnx.load(file).profile(data)."""
    _warn("profile_file", "axonnx.load(file).profile(data)")
    return load(model).profile(run if data is None else data, limit="all" if limit is None else limit, **options)


def report_file(model: Any, output: Any = "report.html", *, samples: int = 6, **options: Any) -> Any:
    """Use axonnx.load(file).report(output)."""
    _warn("report_file", "axonnx.load(file).report(output)")
    return load(model).report(output, shown=samples, **options)
