"""Run every engine on small files with known answers, which the training networks gave when the files were written."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from importlib.resources import as_file, files
from pathlib import Path

import numpy as np

from axonnx.base.errors import AxonnxError
from axonnx.native import find_core
from axonnx.runtime.doctor.findings import EngineFinding
from axonnx.runtime.engines.choose import ENGINES, EngineName, SlowEngineWarning
from axonnx.runtime.format.names import LOGITS
from axonnx.runtime.measure.comparison import Comparison
from axonnx.runtime.model import Model, load

NETWORKS = ("recurrent-int8", "resnet-mfa", "mlp-zero-stochastic")  # recurrence, convolutions, noise


def examine_engines(loading: Callable[[Path, EngineName], Model] = load) -> tuple[EngineFinding, ...]:
    """Return the finding for each engine; an error of one engine does not stop the examination."""
    with ExitStack() as stack, warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", SlowEngineWarning
        )  # the diagnosis itself reports whether there is a native core
        folder = files("axonnx.runtime.doctor")
        places = [
            tuple(stack.enter_context(as_file(folder / f"{name}.{kind}")) for kind in ("onnx", "npz"))
            for name in NETWORKS
        ]
        return tuple(_examine(name, places, loading) for name in ENGINES)


def _examine(
    name: EngineName, places: list[tuple[Path, ...]], loading: Callable[[Path, EngineName], Model]
) -> EngineFinding:
    began, compared = time.perf_counter(), Comparison(name)
    try:
        for network, kept in places:
            with np.load(kept) as known:
                found = loading(network, name).run(known["x"], seed=int(known["seed"])).member_logits
                compared.add({LOGITS: known["logits"]}, {LOGITS: found})
    except Exception as fault:
        missing = isinstance(fault, ModuleNotFoundError) or (name == "native" and _has_no_core())
        text = f"{type(fault).__name__}: {fault}".splitlines()[0]
        return _finding(compared, "missing" if missing else "failed", began, text)
    return _finding(compared, "different" if compared.differing else "equal", began, str(compared.first or ""))


def _has_no_core() -> bool:
    """Return whether the package has no core; a core that AXONNX_ISA excludes counts as present."""
    try:
        return isinstance(find_core(), str)
    except AxonnxError:
        return False


def _finding(compared: Comparison, status: str, began: float, note: str) -> EngineFinding:
    seconds = round(time.perf_counter() - began, 3)
    facts = {"name": compared.name, "status": status, "numbers": compared.numbers, "differing": compared.differing}
    return EngineFinding.model_validate({**facts, "seconds": seconds, "note": note})
