"""Weights stored as 8 or 16 bit integers, with the dequantisation w = q · 2^−s in the graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from axonnx.export.graph.translate import Body
from axonnx.runtime.format.contract import SynapseContract

TYPES: dict[str, Any] = {"int8": np.int8, "int16": np.int16}


def store_as_integers(body: Body, stored: Mapping[str, SynapseContract]) -> None:
    """Replace each of these float constants by an integer one, a cast and a product with 2^−s, which is exact."""
    nodes = []
    for name, certificate in stored.items():
        weight = body.constants.pop(name)
        kind = certificate.stored_as
        quantised = np.rint(weight.astype(np.float64) * 2.0**certificate.grid)
        limits = np.iinfo(TYPES[kind])
        assert limits.min <= quantised.min() <= quantised.max() <= limits.max, name
        body.constant(f"{name}/{kind}", quantised.astype(TYPES[kind]))
        body.constant(f"{name}/step", np.array(2.0**-certificate.grid, np.float32))
        nodes.append(
            helper.make_node("Cast", [f"{name}/{kind}"], [f"{name}/cast"], name=f"{name}/cast", to=TensorProto.FLOAT)
        )
        nodes.append(helper.make_node("Mul", [f"{name}/cast", f"{name}/step"], [name], name=f"{name}/dequantise"))
    body.nodes[:0] = nodes
