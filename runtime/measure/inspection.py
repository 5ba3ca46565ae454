"""Describe an exported file: its contract, its program and its size."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from pydantic import NonNegativeInt

from axonnx.runtime.format.contract import AccuracyContract, CollapseContract, Contract, SynapseContract
from axonnx.runtime.format.values import UNITS
from axonnx.runtime.measure.profile import constant_bytes, state_bytes
from axonnx.runtime.measure.result_files import Found
from axonnx.runtime.program.compilation import compile_file
from axonnx.runtime.program.instructions import Program


class Certificate(SynapseContract):
    """A certificate of the file, after its check, with the size of its weights."""

    largest_sum: float
    weights: int
    zeros: int


class Sizes(Found):
    """Sizes of a network."""

    weights: NonNegativeInt
    weights_not_zero: NonNegativeInt
    neurons: NonNegativeInt
    constant_bytes: NonNegativeInt
    state_bytes_per_sample: NonNegativeInt
    instructions: NonNegativeInt


class Inspection(Found):
    """The description of a file, with every certificate checked again."""

    file: str
    bytes: NonNegativeInt
    contract: Contract
    certificates: tuple[Certificate, ...]
    sizes: Sizes
    program: tuple[str, ...]


def inspect_file(model: str | Path) -> Inspection:
    """Read, check and compile a file, and describe it.

    Args:
        model: Path of the exported file.

    Returns:
        Contract, certificates, sizes and program of the file.

    Raises:
        AxonnxError: If the file is not valid.
    """
    program = compile_file(model)
    certificates = tuple(_certificate(program, stated) for stated in program.contract.synapses)
    return Inspection(
        file=program.name,
        bytes=Path(model).stat().st_size,
        contract=program.contract,
        certificates=certificates,
        sizes=_sizes(program, certificates),
        program=tuple(program.describe().splitlines()),
    )


def _certificate(program: Program, stated: SynapseContract) -> Certificate:
    weight = program.constants[stated.weight]
    zeros = int(weight.size - np.count_nonzero(weight))
    return Certificate(**stated.model_dump(), largest_sum=stated.bound / UNITS, weights=int(weight.size), zeros=zeros)


def _sizes(program: Program, certificates: tuple[Certificate, ...]) -> Sizes:
    return Sizes(
        weights=sum(each.weights for each in certificates),
        weights_not_zero=sum(each.weights - each.zeros for each in certificates),
        neurons=sum(layer.size for layer in program.layers),
        constant_bytes=constant_bytes(program),
        state_bytes_per_sample=state_bytes(program),
        instructions=len(program.instructions),
    )


def way_text(entry: AccuracyContract, collapse: CollapseContract | None = None) -> str:
    """Describe the way of an accuracy; ``collapse`` is the file's own, if known."""
    texts = {
        "bayesian": f"bayesian ({entry.draws} passes)",
        "mean_field": "mean-field, as trained",
        "sampled": f"sampled ({entry.draws} members)",
        "stochastic": "stochastic (1 pass)",
        "unreduced": "before pruning and rounding",
        "file": "this file" if collapse is None else f"this file: {collapse_text(collapse)}",
    }
    return texts[entry.way]


def collapse_text(collapse: CollapseContract) -> str:
    """Describe how the posterior became this network, separated by commas."""
    parts = [
        collapse.mode,
        "calibrated" if collapse.calibrated else "",
        "" if collapse.weights == "float32" else collapse.weights,
        "" if collapse.prune is None else f"pruned below {collapse.prune:g}",
    ]
    return ", ".join(part for part in parts if part)
