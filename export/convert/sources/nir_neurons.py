"""NIR's neurons, which are differential equations, in steps of Δt (forward Euler).

    LIF      τ v̇ = v_leak − v + R I          β = 1 − Δt/τ, g = R Δt/τ
    CubaLIF  τ_syn i̇ = −i + w_in S           α = 1 − Δt/τ_syn, gain w_in Δt/τ_syn, and the membrane as in LIF
    IF       v̇ = R I                         β = 1, g = R: a step's input counts once, whatever Δt is
    fires where v > θ, then v = v_reset; membranes count from v_leak, where they begin

LI, CubaLI and I are the same without firing; Threshold has no memory.
"""

from __future__ import annotations

from typing import Any

from axonnx.base.errors import AxonnxError
from axonnx.export.convert.sources.neuron import Neuron, refuse, wide

FIRING = ("LIF", "CubaLIF", "IF", "Threshold")
INTEGRATING = ("LI", "CubaLI", "I")
KINDS = (*FIRING, *INTEGRATING)


def neuron_of(node: Any, kind: str, where: str, dt: float | None) -> Neuron:
    """The constants of a node of NIR."""
    if kind == "Threshold":
        return Neuron(decay=0.0, threshold=wide(node.threshold), strict=True)
    leak = wide(getattr(node, "v_leak", 0.0))
    common = _membrane(node, kind, where, dt)
    if kind in INTEGRATING:
        if bool((leak != 0).any()):
            raise refuse(where, kind, "v_leak is not 0, and its output is the membrane itself")
        return Neuron(fires=False, **common)
    reset = wide(0.0 if node.v_reset is None else node.v_reset)
    return Neuron(threshold=wide(node.v_threshold) - leak, strict=True, zeroed=1.0, taken=leak - reset, **common)


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
