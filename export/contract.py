"""What an exported file promises: all that its holder needs to know."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from axonnx.base.errors import AxonnxError
from axonnx.export.collapse.layers import (
    CollapsedBinaryNeuron,
    CollapsedCurrent,
    CollapsedDelay,
    CollapsedGeneral,
    CollapsedLIF,
    CollapsedReadout,
)
from axonnx.export.collapsed import Collapsed
from axonnx.export.graph.assemble import Form
from axonnx.export.step.capture import constant
from axonnx.export.step.member import Member
from axonnx.runtime.format.contract import (
    AccuracyContract,
    CollapseContract,
    Contract,
    LayerContract,
    MeasuredOn,
    Provenance,
)
from axonnx.runtime.format.names import DELAY_LINE, NOISE, tensor_of

NEURONS = (CollapsedLIF, CollapsedBinaryNeuron, CollapsedGeneral, CollapsedCurrent, CollapsedDelay)


def make_contract(
    collapsed: Collapsed,
    classes: tuple[str, ...],
    form: Form,
    accuracy: Sequence[AccuracyContract] = (),
    provenance: Provenance | None = None,
    measured: MeasuredOn | None = None,
) -> Contract:
    """The contract of a collapsed network."""
    first = collapsed.members[0]
    spiking = first.captured.signature.spiking
    settings = collapsed.settings
    logits = _logits(first)
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
        accuracy=tuple(accuracy),
        measured=measured,
        provenance=provenance or Provenance(),
    )


def _logits(member: Member) -> int:
    """How many classes the read-out tells apart."""
    signature = member.captured.signature
    total = [slot.shape for slot in signature.states if slot.layer == signature.readout]
    return total[0][0] if total else constant(member.network, f"{signature.readout}.bias").numel()


def _layers(member: Member) -> list[LayerContract]:
    found = []
    signature = member.captured.signature
    for name, module in member.network.named_modules():
        states = tuple(tensor_of(slot.field, member.prefix + name) for slot in signature.states if slot.layer == name)
        shapes = [slot.shape for slot in (*signature.states, *signature.traces) if slot.layer == name]
        noise = next((NOISE + member.prefix + name for slot in signature.noises if slot.layer == name), None)
        common = {"name": member.prefix + name, "states": states, "noise": noise}
        if isinstance(module, NEURONS) and not shapes:
            continue  # compute() never calls it
        if isinstance(module, CollapsedLIF):
            found.append(
                LayerContract(
                    **common,
                    op=module.op,
                    shape=shapes[0],
                    threshold=_span(module.threshold),
                    decay=_span(module.decay),
                    reset=module.reset,
                )
            )
        elif isinstance(module, CollapsedBinaryNeuron):
            op = "StochasticHeaviside" if module.stochastic else "Heaviside"
            found.append(LayerContract(**common, op=op, shape=shapes[0], threshold=_span(module.threshold)))
        elif isinstance(module, CollapsedGeneral):
            op = "AdaptiveLIF" if module.adaptive else "GeneralLIF"
            constants = {"threshold": _span(module.threshold), "decay": _span(module.decay)}
            found.append(LayerContract(**common, op=op, shape=shapes[0], **constants))
        elif isinstance(module, CollapsedCurrent):
            found.append(LayerContract(**common, op="LeakyCurrent", shape=shapes[0], decay=_span(module.decay)))
        elif isinstance(module, CollapsedDelay):
            found.append(LayerContract(**common, op=DELAY_LINE, shape=shapes[0]))
        elif isinstance(module, CollapsedReadout):
            op = "Gemm" if module.decay is None else "LeakySum"
            decay = None if module.decay is None else _span(module.decay)
            found.append(LayerContract(**common, op=op, shape=(_logits(member),), decay=decay))
    return found


def _span(constant: Tensor) -> float | tuple[float, float]:
    low, high = float(constant.min()), float(constant.max())
    return low if low == high else (low, high)
