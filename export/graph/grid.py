"""Every synapse of a captured network, rounded to its grid; the certificates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, cast

import torch
from torch import fx

from axonnx.base.errors import AxonnxError
from axonnx.export.graph.capture import Captured, constant, operands
from axonnx.export.graph.integers import Placed
from axonnx.export.graph.ranges import SYNAPSES, Range, input_ranges
from axonnx.export.graph.rounding import Part, finest_grid, on_grid, units
from axonnx.models import Network
from axonnx.runtime.format.certificates import LARGEST_INTEGERS
from axonnx.runtime.format.contract import (
    InputContract,
    SynapseContract,
)
from axonnx.runtime.format.values import UNITS

Stored = Literal["int16", "int8", "float32", "integer8", "integer4", "integer2"]
# On the finest grid, which gives sums all of their 24 bits, most weights need one to five bits more than 16. Rounded to
# 16 bits they take half the memory and can be added as integers, at the same accuracy (docs/results.md, "What 16 bits
# cost").
Width = Literal["int16", "int8", "int4", "int2", "float32"]
DEFAULT_WEIGHTS: Stored = "int16"
LARGEST = {"float32": None, **LARGEST_INTEGERS}
INTEGER_NETWORKS: dict[str, Width] = {"integer8": "int8", "integer4": "int4", "integer2": "int2"}


def width_of(stored: Stored) -> Width:
    """Return the type of the weights: a network in integers is called by the bits of its weights."""
    return INTEGER_NETWORKS.get(stored, cast(Width, stored))


@torch.no_grad()
def put_on_grid(
    network: Network,
    captured: Captured,
    arriving: InputContract,
    stored: Width,
    prefix: str = "",
    integers: Mapping[str, Placed] | None = None,
) -> list[SynapseContract]:
    """Round every synapse's weights and bias to its grid, in place; the certificates.

    Weights among ``integers`` are whole numbers already.
    """
    integers = integers or {}
    ranges = input_ranges(captured, _arriving_range(arriving))
    certificates = []
    for group in _groups(captured):
        names = [_names(captured, node) for node in group]
        parts = [_part(network, weight, bias, ranges[weight]) for weight, bias in names]
        trained = all(_is_trained(weight) for weight, _ in names)
        placed = integers.get(names[0][0])
        most = LARGEST["int8" if integers else stored] if trained else None  # a last layer without neurons has 8 bits
        where = ", ".join(prefix + weight for weight, _ in names)
        s = finest_grid(parts, most, where) if placed is None else placed.grid
        for weight, bias in names:
            for name in (weight, bias) if bias else (weight,):
                constant(network, name).copy_(on_grid(constant(network, name), s))
        rounded = [_part(network, weight, bias, ranges[weight]) for weight, bias in names]
        for (weight, _), part in zip(names, rounded, strict=True):
            certificates.append(
                SynapseContract(
                    name=prefix + weight.rpartition(".")[0],
                    weight=prefix + weight,
                    grid=s,
                    input_max=part.reached_by.largest,
                    input_bits=part.reached_by.bits,
                    bound=units(rounded, s),
                    stored_as=_stored_as(stored, weight, placed, bool(integers)),
                    lift=None if placed is None else placed.lift,
                )
            )
    return certificates


def _stored_as(stored: Width, weight: str, placed: Placed | None, integers: bool) -> Width:
    if not _is_trained(weight):
        return "float32"
    return "int8" if integers and placed is None else stored


def _arriving_range(arriving: InputContract) -> Range:
    return Range(arriving.x_max, arriving.shift)


def split_activities(network: Network, captured: Captured, arriving: InputContract) -> bool:
    """Make the sums of squares Σ x² that are too long for float32 shorter; whether there were any."""
    found = False
    for name, reached_by in input_ranges(captured, _arriving_range(arriving)).items():
        if name.endswith(".ones") and reached_by is not None:
            most = (UNITS - 1) // int(reached_by.largest * 2.0**reached_by.bits)
            if constant(network, name)[0].numel() > most:
                synapse: Any = network.get_submodule(name.removesuffix(".ones"))
                synapse.split_activity(most)
                found = True
    return found


def _groups(captured: Captured) -> list[list[fx.Node]]:
    """Synapses that share a grid: a recurrent sum and the sum it is added to can use one accumulator.

    A synapse that is called twice is the first call here; what reaches it holds for both.
    """
    calls: dict[tuple[str, str | None], fx.Node] = {}
    for node in captured.calls():
        if node.target in SYNAPSES:
            calls.setdefault(_names(captured, node), node)
    groups = {names: [node] for names, node in calls.items()}
    for node in captured.calls():
        terms = [term for term in operands(node) if isinstance(term, fx.Node) and term.target in SYNAPSES]
        if node.target == torch.ops.aten.add.Tensor and len(terms) == 2 and _recurrent(captured, terms):
            one, other = (groups[_names(captured, term)] for term in terms)
            if one is not other:
                one += other
                groups |= {_names(captured, term): one for term in other}
    return list({id(group): group for group in groups.values()}.values())


def _recurrent(captured: Captured, terms: list[fx.Node]) -> bool:
    return any(_names(captured, term)[0].endswith("recurrent_weight") for term in terms)


def _names(captured: Captured, node: fx.Node) -> tuple[str, str | None]:
    """Return the names of a synapse call's weight and bias."""
    _, weight, bias = (*operands(node), None)[:3]
    name = captured.constant_of(weight)
    assert name is not None, "a synapse's weight is a constant"
    return name, captured.constant_of(bias)


def _part(network: Network, weight: str, bias: str | None, reached_by: Range | None) -> Part:
    if reached_by is None:
        raise AxonnxError(
            f"{weight}: real numbers of any size reach this synapse, so no grid can make its sums exact. Let spikes, "
            f"event counts or averages of them over power-of-two windows enter synapses, not currents"
        )
    return Part(constant(network, weight), None if bias is None else constant(network, bias), reached_by)


def _is_trained(weight: str) -> bool:
    """Weights that training made, and not the ones and variances beside them."""
    return weight.endswith((".weight", "recurrent_weight"))
