"""Export: collapse a network, put it on the sum-exact grid, write it down as one ONNX file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import onnx
import torch
from torch import Tensor, fx, nn

from axonnx.base.errors import AxonnxError
from axonnx.base.files import replacing
from axonnx.export.collapse.layers import CollapsedBinaryNeuron, CollapsedLIF, CollapsedReadout
from axonnx.export.collapse.network import Mode, WeightChoice, collapse, needs_posterior
from axonnx.export.graph.assemble import INPUT, Form, Member, sequence_model, step_model, translate_step
from axonnx.export.graph.integers import store_as_integers
from axonnx.export.graph.translate import check_operators
from axonnx.export.grid.ranges import SYNAPSES, Range, input_ranges
from axonnx.export.grid.rounding import UNITS, Part, finest_grid, on_grid, units
from axonnx.export.step.trace import Trace, constant, operands, trace
from axonnx.models import Network
from axonnx.runtime.format.contract import (
    CollapseContract,
    Contract,
    InputContract,
    LayerContract,
    Measured,
    Provenance,
    SynapseContract,
)

Stored = Literal["float32", "int16", "int8"]
LARGEST = {"float32": None, "int16": 2**15 - 1, "int8": 2**7 - 1}


@dataclass(frozen=True)
class CollapseSettings:
    """How a posterior is collapsed."""

    mode: Mode = "mfa"
    members: int = 1
    seed: int = 0
    prune: float | None = None
    weights: Stored = "float32"

    def __post_init__(self) -> None:
        if self.members < 1 or (self.members > 1 and self.mode != "sampled"):
            raise AxonnxError(f"members is {self.members}; an ensemble of several is for mode 'sampled' alone")
        if self.prune is not None and not self.prune >= 0:
            raise AxonnxError(f"prune is {self.prune}; expected a signal-to-noise ratio of zero or more")


@dataclass(frozen=True)
class Collapsed:
    """A collapsed network on its grid (several for an ensemble), traced, with the certificate of every synapse."""

    members: tuple[Member, ...]
    settings: CollapseSettings
    input: InputContract
    certificates: tuple[SynapseContract, ...]
    calibrated: bool = False

    @property
    def networks(self) -> list[nn.Module]:
        """Ordinary torch modules that can be run, inspected and compared."""
        return [member.network for member in self.members]

    @property
    def network(self) -> Network:
        """The one network there is."""
        if len(self.members) != 1:
            raise AxonnxError(f"an ensemble has {len(self.members)} networks; see .networks")
        return self.members[0].network


def collapse_network(
    network: Network,
    input_contract: InputContract,
    settings: CollapseSettings | None = None,
    thresholds: Mapping[str, Tensor] | None = None,
) -> Collapsed:
    """Collapse ``network`` and put it on the grid; ``thresholds`` (of a calibration) replace the neurons' own."""
    settings = settings or CollapseSettings()
    if input_contract.name != INPUT:
        raise AxonnxError(f"the input is called {input_contract.name!r}; in a file it is always {INPUT!r}")
    if settings.mode != "mfa":
        needs_posterior(network)
    members: list[Member] = []
    certificates: list[SynapseContract] = []
    generator = torch.Generator().manual_seed(settings.seed) if settings.mode == "sampled" else None
    choice = WeightChoice(generator, settings.prune)
    for number in range(settings.members):
        prefix = f"member{number}/" if settings.members > 1 else ""
        collapsed = collapse(network, choice, stochastic=settings.mode == "stochastic")
        _set_thresholds(collapsed, thresholds or {})
        traced = members[0].trace if members else _traced(collapsed, input_contract)  # members differ in numbers alone
        certificates += put_on_grid(collapsed, traced, input_contract, settings.weights, prefix)
        members.append(Member(collapsed, traced, prefix))
    return Collapsed(tuple(members), settings, input_contract, tuple(certificates), bool(thresholds))


def _traced(collapsed: Network, arriving: InputContract) -> Trace:
    """The network's step, every operator of it known; with sums of squares short enough to be exact."""
    traced = trace(collapsed, arriving.shape)
    check_operators(traced)
    return trace(collapsed, arriving.shape) if _split_activities(collapsed, traced, arriving) else traced


@torch.no_grad()
def put_on_grid(
    network: Network, traced: Trace, arriving: InputContract, stored: Stored, prefix: str = ""
) -> list[SynapseContract]:
    """Round every synapse's weights and bias to its grid, in place; the certificates."""
    ranges = input_ranges(traced, _arriving_range(arriving))
    certificates = []
    for group in _groups(traced):
        names = [_names(traced, node) for node in group]
        parts = [_part(network, weight, bias, ranges[weight]) for weight, bias in names]
        trained = all(_is_trained(weight) for weight, _ in names)
        s = finest_grid(parts, LARGEST[stored] if trained else None, ", ".join(prefix + weight for weight, _ in names))
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
                    stored_as=stored if _is_trained(weight) else "float32",
                )
            )
    return certificates


def make_contract(
    collapsed: Collapsed,
    classes: tuple[str, ...],
    form: Form,
    accuracy: dict[str, Any] | None = None,
    provenance: Provenance | None = None,
    measured: Measured | None = None,
) -> Contract:
    """All that the file's holder needs to know."""
    first = collapsed.members[0]
    spiking = first.trace.signature.spiking
    settings = collapsed.settings
    logits = constant(first.network, f"{first.trace.signature.readout}.bias").numel()
    if len(classes) != logits:
        raise AxonnxError(f"{len(classes)} classes are named; the network tells {logits} apart")
    return Contract(
        kind="spiking" if spiking else "binary",
        form=form,
        classes=classes,
        input=collapsed.input,
        collapse=CollapseContract(
            mode=settings.mode,
            members=settings.members,
            seed=settings.seed if settings.mode == "sampled" or collapsed.calibrated else None,
            calibrated=collapsed.calibrated,
            prune=settings.prune,
            weights=settings.weights,
        ),
        layers=tuple(layer for member in collapsed.members for layer in _layers(member)),
        synapses=collapsed.certificates,
        logits="total / steps" if spiking else "direct",
        accuracy=accuracy or {},
        measured=measured,
        provenance=provenance or Provenance(),
    )


def build_model(collapsed: Collapsed, contract: Contract, with_traces: bool = False) -> onnx.ModelProto:
    """The ONNX model of a collapsed network."""
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


def _arriving_range(arriving: InputContract) -> Range:
    return Range(arriving.largest * 2.0**-arriving.shift, arriving.shift)


def _split_activities(network: Network, traced: Trace, arriving: InputContract) -> bool:
    """Make the sums of squares Σ x² that are too long for float32 shorter; whether there were any."""
    found = False
    for name, reached_by in input_ranges(traced, _arriving_range(arriving)).items():
        if name.endswith(".ones") and reached_by is not None:
            most = (UNITS - 1) // int(reached_by.largest * 2.0**reached_by.bits)
            if constant(network, name)[0].numel() > most:
                synapse: Any = network.get_submodule(name.removesuffix(".ones"))
                synapse.split_activity(most)
                found = True
    return found


def _set_thresholds(network: Network, thresholds: Mapping[str, Tensor]) -> None:
    for name, threshold in thresholds.items():
        neuron: Any = network.get_submodule(name)
        neuron.threshold = threshold.detach().float().clone()


def _groups(traced: Trace) -> list[list[fx.Node]]:
    """Synapses that share a grid: a recurrent sum and the sum it is added to can use one accumulator.

    A synapse that is called twice is the first call here; what reaches it holds for both.
    """
    calls: dict[tuple[str, str | None], fx.Node] = {}
    for node in traced.calls():
        if node.target in SYNAPSES:
            calls.setdefault(_names(traced, node), node)
    groups = {names: [node] for names, node in calls.items()}
    for node in traced.calls():
        terms = [term for term in operands(node) if isinstance(term, fx.Node) and term.target in SYNAPSES]
        if node.target == torch.ops.aten.add.Tensor and len(terms) == 2 and _recurrent(traced, terms):
            one, other = (groups[_names(traced, term)] for term in terms)
            if one is not other:
                one += other
                groups |= {_names(traced, term): one for term in other}
    return list({id(group): group for group in groups.values()}.values())


def _recurrent(traced: Trace, terms: list[fx.Node]) -> bool:
    return any(_names(traced, term)[0].endswith("recurrent_weight") for term in terms)


def _names(traced: Trace, node: fx.Node) -> tuple[str, str | None]:
    """The names of a synapse call's weight and bias."""
    _, weight, bias = (*operands(node), None)[:3]
    name = traced.constant_of(weight)
    assert name is not None, "a synapse's weight is a constant"
    return name, traced.constant_of(bias)


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


def _layers(member: Member) -> list[LayerContract]:
    found = []
    signature = member.trace.signature
    for name, module in member.network.named_modules():
        states = tuple(f"{slot.field}/{member.prefix}{name}" for slot in signature.states if slot.layer == name)
        shapes = [slot.shape for slot in (*signature.states, *signature.traces) if slot.layer == name]
        noise = next((f"noise/{member.prefix}{name}" for slot in signature.noises if slot.layer == name), None)
        common = {"name": member.prefix + name, "states": states, "noise": noise}
        if isinstance(module, CollapsedLIF | CollapsedBinaryNeuron) and not shapes:
            continue  # compute() never calls it
        if isinstance(module, CollapsedLIF):
            op = ("StochasticLIF" if module.stochastic else "LIF") + ("ToZero" if module.reset == "zero" else "")
            found.append(
                LayerContract(
                    **common,
                    op=op,
                    shape=shapes[0],
                    threshold=_span(module.threshold),
                    decay=_span(module.decay),
                    reset=module.reset,
                )
            )
        elif isinstance(module, CollapsedBinaryNeuron):
            op = "StochasticHeaviside" if module.stochastic else "Heaviside"
            found.append(LayerContract(**common, op=op, shape=shapes[0], threshold=_span(module.threshold)))
        elif isinstance(module, CollapsedReadout):
            op = "Gemm" if module.decay is None else "LeakySum"
            decay = None if module.decay is None else float(module.decay)
            found.append(LayerContract(**common, op=op, shape=(len(module.bias),), decay=decay))
    return found


def _span(constant: Tensor) -> float | tuple[float, float]:
    low, high = float(constant.min()), float(constant.max())
    return low if low == high else (low, high)
