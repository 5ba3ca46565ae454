"""The file itself: one ONNX model, checked, written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from axonnx.base.errors import AxonnxError
from axonnx.base.files import replacing
from axonnx.export.collapsed import Collapsed
from axonnx.export.graph.assemble import sequence_model, step_model, translate_step
from axonnx.export.graph.translate import Body
from axonnx.runtime.format.contract import (
    Contract,
    SynapseContract,
)

TYPES: dict[str, Any] = {"int8": np.int8, "int16": np.int16}


def store_as_integers(body: Body, stored: Mapping[str, SynapseContract]) -> None:
    """Replace each of these float constants by an integer one, a cast and a product with a power of two: exact.

    ONNX's own types of 4 and 2 bits come with later opsets, so such weights lie in int8.
    """
    nodes = []
    for name, certificate in stored.items():
        weight = body.constants.pop(name)
        kind = "int16" if certificate.stored_as == "int16" else "int8"
        grid = certificate.grid if certificate.lift is None else -certificate.lift
        quantised = np.rint(weight.astype(np.float64) * 2.0**grid)
        limits = np.iinfo(TYPES[kind])
        assert limits.min <= quantised.min() <= quantised.max() <= limits.max, name
        body.constant(f"{name}/{kind}", quantised.astype(TYPES[kind]))
        body.constant(f"{name}/step", np.array(2.0**-grid, np.float32))
        nodes.append(
            helper.make_node("Cast", [f"{name}/{kind}"], [f"{name}/cast"], name=f"{name}/cast", to=TensorProto.FLOAT)
        )
        nodes.append(helper.make_node("Mul", [f"{name}/cast", f"{name}/step"], [name], name=f"{name}/dequantise"))
    body.nodes[:0] = nodes


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
