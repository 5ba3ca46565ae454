"""NIR's neurons, which are differential equations, in steps of Δt (forward Euler).

    LIF      τ v̇ = v_leak − v + R I          β = 1 − Δt/τ, g = R Δt/τ
    CubaLIF  τ_syn i̇ = −i + w_in S           α = 1 − Δt/τ_syn, gain w_in Δt/τ_syn, and the membrane as in LIF
    IF       v̇ = R I                         β = 1, g = R: a step's input counts once, whatever Δt is
    fires where v > θ, then v = v_reset; membranes count from v_leak, where they begin

LI, CubaLI and I are the same without firing; Threshold has no memory. NIR does not say which reset its authors used,
when it acts, or whether a membrane equal to θ fires: `Assumed` says so. Our own files state it in metadata.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from axonnx.base.errors import AxonnxError
from axonnx.export.convert.neuron import Neuron, refuse, wide

FIRING = ("LIF", "CubaLIF", "IF", "Threshold")
INTEGRATING = ("LI", "CubaLI", "I")
KINDS = (*FIRING, *INTEGRATING)
Reset = Literal["value", "zero", "subtract", "late-zero", "late-subtract"]
Tie = Literal["silent", "fires"]
AMOUNTS = {"value": "sets it to v_reset", "zero": "sets it to 0", "subtract": "takes v_threshold − v_reset from it"}


@dataclass(frozen=True)
class Assumed:
    """What NIR leaves open: what a spike does to its membrane, when, and whether a membrane equal to θ fires."""

    reset: Reset = "value"
    tie: Tie = "silent"
    stated: bool = field(default=False, compare=False)  # by the file

    def __post_init__(self) -> None:
        for name, known in (("reset", get_args(Reset)), ("tie", get_args(Tie))):
            if getattr(self, name) not in known:
                raise AxonnxError(f"{name} is {getattr(self, name)!r}; expected one of {', '.join(known)}")

    @property
    def late(self) -> bool:
        """Whether a spike acts on its membrane one step later, after the decay and the input."""
        return self.reset.startswith("late-")

    @property
    def amount(self) -> str:
        """The reset without its time: value, zero or subtract."""
        return self.reset.removeprefix("late-")

    def note(self) -> str:
        """Return the assumption as a sentence."""
        when = "one step later, after decay and input" if self.late else "at once"
        return (
            f"reset {self.reset}: a spike {AMOUNTS[self.amount]}, {when}; tie {self.tie}: a membrane equal to its "
            f"threshold {'fires' if self.tie == 'fires' else 'stays silent'}. The file "
            f"{'states' if self.stated else 'does not state'} this"
        )


NIRS_OWN = Assumed()  # NIR's equations as they are written


def assumed_of(nodes: Mapping[str, Any], given: Assumed) -> Assumed:
    """Return what the nodes' metadata state, or what is given if they state nothing.

    Raises:
        AxonnxError: If nodes state different resets, or another one than is given.
    """
    found: dict[Assumed, str] = {}
    for name, node in nodes.items():
        said = {key: _text(value) for key, value in (getattr(node, "metadata", None) or {}).items()}
        if type(node).__name__ in FIRING and said.keys() >= {"reset", "tie"}:
            try:
                found.setdefault(Assumed(said["reset"], said["tie"], stated=True), name)
            except AxonnxError as fault:
                raise AxonnxError(f"{name}: its metadata: {fault}") from None
    if len(found) > 1:
        raise AxonnxError(f"{' and '.join(list(found.values())[:2])} state different resets; expected one in a file")
    if not found:
        return given
    stated = next(iter(found))
    if given not in (NIRS_OWN, stated):
        raise AxonnxError(
            f"the file states reset {stated.reset} and tie {stated.tie}; give no other reset and tie than these, not "
            f"{given.reset} and {given.tie}",
            options=("reset", "tie"),
        )
    return stated


def _text(value: Any) -> Any:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def neuron_of(node: Any, kind: str, where: str, dt: float | None, assumed: Assumed) -> Neuron:
    """Return the constants of a node of NIR."""
    strict = assumed.tie == "silent"
    if kind == "Threshold":
        return Neuron(decay=0.0, threshold=wide(node.threshold), strict=strict)
    leak = wide(getattr(node, "v_leak", 0.0))
    common = _membrane(node, kind, where, dt)
    if kind in INTEGRATING:
        if bool((leak != 0).any()):
            raise refuse(where, kind, "v_leak is not 0, and its output is the membrane itself")
        return Neuron(fires=False, **common)
    reset = wide(0.0 if node.v_reset is None else node.v_reset)
    level, to_zero = wide(node.v_threshold), assumed.amount != "subtract"
    taken = {"value": leak - reset, "zero": leak, "subtract": level - reset}[assumed.amount]
    when = "late_" if assumed.late else ""
    resets: dict[str, Any] = {f"{when}zeroed": 1.0 if to_zero else 0.0, f"{when}taken": taken}
    return Neuron(threshold=level - leak, strict=strict, **resets, **common)


def _membrane(node: Any, kind: str, where: str, dt: float | None) -> dict[str, Any]:
    if kind in ("IF", "I"):
        note = f"{where}: {kind} adds r times its input in each step, whatever the time step is"
        return {"decay": 1.0, "gain": wide(node.r), "notes": (note,)}
    if dt is None:
        raise AxonnxError(
            f"{where}: {kind} is a differential equation; give the time step that the network was trained with, in "
            f"seconds (snnTorch writes 1e-4, Norse 1e-3)",
            options=("dt",),
        )
    synaptic = kind.startswith("Cuba")
    share = dt / wide(node.tau_mem if synaptic else node.tau)
    found: dict[str, Any] = {"decay": 1.0 - share, "gain": wide(node.r) * share}
    found["notes"] = (f"{where}: forward Euler with Δt = {dt:g} s; membranes begin at v_leak",)
    if synaptic:
        of_synapse = dt / wide(node.tau_syn)
        found["synaptic_decay"] = 1.0 - of_synapse
        found["gain"] = found["gain"] * wide(node.w_in) * of_synapse
        found["notes"] += (f"{where}: a step's input reaches the membrane in the same step",)
    return found
