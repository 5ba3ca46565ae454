"""What an exported file promises: all that its holder needs to know."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from torch import Tensor

from axonnx.base.errors import AxonnxError
from axonnx.base.plain_text import check_names
from axonnx.export.collapsed import Collapsed
from axonnx.export.graph.assemble import Form
from axonnx.export.graph.capture import Member, constant
from axonnx.export.graph.grid import width_of
from axonnx.models.general import DirectReadout
from axonnx.runtime.format.contract import (
    AccuracyContract,
    CollapseContract,
    Contract,
    DecisionContract,
    LayerContract,
    MeasuredOn,
    Provenance,
)
from axonnx.runtime.format.names import NOISE, tensor_of
from axonnx.runtime.format.opset import OPS, READOUTS

STATED = ("threshold", "decay")  # constants whose range a contract tells


def make_contract(
    collapsed: Collapsed,
    classes: tuple[str, ...],
    form: Form,
    accuracy: Sequence[AccuracyContract] = (),
    provenance: Provenance | None = None,
    measured: MeasuredOn | None = None,
    units: tuple[str, ...] | None = None,
) -> Contract:
    """Return the contract of a collapsed network; with ``units`` its outputs are real values of these names."""
    first = collapsed.members[0]
    spiking = first.captured.signature.spiking
    settings = collapsed.settings
    logits = logits_of(collapsed)
    if len(classes) != logits:
        raise AxonnxError(f"{len(classes)} classes are named; the network tells {logits} apart")
    check_names(classes, "class")
    return Contract(
        kind="spiking" if spiking else "binary",
        form=form,
        dynamics="integer" if settings.integers else "float",
        classes=classes,
        units=units,
        input=collapsed.input,
        collapse=CollapseContract(
            mode=settings.mode,
            members=settings.members,
            seed=settings.seed if settings.mode == "sampled" or collapsed.calibrated else None,
            calibrated=collapsed.calibrated,
            prune=settings.prune,
            weights=width_of(settings.weights),
        ),
        layers=tuple(layer for member in collapsed.members for layer in _layers(member)),
        synapses=collapsed.certificates,
        logits=_how_logits_follow(first),
        decision=_decision(first),
        accuracy=tuple(accuracy),
        measured=measured,
        provenance=provenance or Provenance(),
    )


def logits_of(collapsed: Collapsed) -> int:
    """How many classes the network tells apart."""
    return _logits(collapsed.members[0])


def _how_logits_follow(member: Member) -> Literal["total / steps", "total", "direct"]:
    if not member.captured.signature.spiking:
        return "direct"
    op = str(member.network.get_submodule(member.captured.signature.readout).op)
    return "total / steps" if READOUTS[op] == "mean" else "total"


def _logits(member: Member) -> int:
    """How many classes the read-out tells apart."""
    signature = member.captured.signature
    total = [slot.shape for slot in signature.states if slot.layer == signature.readout]
    return total[0][0] if total else constant(member.network, f"{signature.readout}.bias").numel()


def _decision(member: Member) -> DecisionContract | None:
    """Return the decision rule that an imported network's read-out holds."""
    readout = member.network.get_submodule(member.captured.signature.readout)
    if not isinstance(readout, DirectReadout) or readout.rule is None:
        return None
    return DecisionContract.model_validate({key: getattr(readout, key) for key in ("rule", "scale", "fitted")})


def _layers(member: Member) -> list[LayerContract]:
    found = []
    signature = member.captured.signature
    for name, module in member.network.named_modules():
        op, full = getattr(module, "op", None), member.prefix + name
        shapes = [slot.shape for slot in (*signature.states, *signature.traces) if slot.layer == name]
        if name == signature.readout:
            shapes = [(_logits(member),)]
        if op is None or not shapes:
            continue  # no neurons, or compute() never calls them
        spans = {key: _span(value) for key in STATED if isinstance(value := getattr(module, key, None), Tensor)}
        found.append(
            LayerContract(
                name=full,
                op=op,
                shape=shapes[0],
                reset=OPS[op].reset if op in OPS else None,
                states=tuple(tensor_of(slot.field, full) for slot in signature.states if slot.layer == name),
                noise=next((NOISE + full for slot in signature.noises if slot.layer == name), None),
                width=getattr(module, "width", None),
                unit=getattr(module, "counts_in", None),
                **spans,
            )
        )
    return found


def _span(constant: Tensor) -> float | tuple[float, float]:
    low, high = float(constant.min()), float(constant.max())
    return low if low == high else (low, high)
