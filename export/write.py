"""The file itself: one ONNX model, checked, written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import onnx

from axonnx.base.errors import AxonnxError
from axonnx.base.files import replacing
from axonnx.export.collapsed import Collapsed
from axonnx.export.graph.assemble import sequence_model, step_model, translate_step
from axonnx.export.graph.integers import store_as_integers
from axonnx.runtime.format.contract import (
    Contract,
)


def build_model(collapsed: Collapsed, contract: Contract, with_traces: bool = False) -> onnx.ModelProto:
    """Return the ONNX model of a collapsed network."""
    step = translate_step(list(collapsed.members), with_traces)
    if contract.collapse.weights != "float32":
        stored = {c.weight: c for c in collapsed.certificates if c.stored_as != "float32"}
        store_as_integers(step.body, stored)
    spiking = step.signature.spiking and contract.form == "sequence"
    model = sequence_model(step, contract) if spiking else step_model(step, contract)
    onnx.checker.check_model(model, full_check=True)
    return model


def write_model(model: onnx.ModelProto, path: str | Path) -> int:
    """Write the file completely or not at all; its size in bytes."""
    data = model.SerializeToString(deterministic=True)
    try:
        with replacing(path) as temporary:
            temporary.write_bytes(data)
    except OSError as fault:
        reason = os.strerror(fault.errno) if fault.errno else fault
        raise AxonnxError(f"{path}: cannot be written: {reason}") from None
    return len(data)
