"""Norse's LIFBoxCell, LIFCell, LIFRecurrentCell and LICell, and LIFBox, LIF, LIFRecurrent and LI, which run in time.

    i = i + I (+ R z);   v' = v + Δt/τ_mem ((v_leak − v) + i);   i' = i − Δt/τ_syn i      (without i in a box cell)
    o' = 1 where v' > θ;   then v' = v_reset where it fired

From v_leak on, u = v − v_leak: β = 1 − Δt/τ_mem, g = Δt/τ_mem, α = 1 − Δt/τ_syn.
"""

from __future__ import annotations

from typing import Any

from axonnx.export.convert.sources.neuron import Neuron, attribute, refuse, wide

KINDS = ("LIFBoxCell", "LIFCell", "LIFRecurrentCell", "LICell", "LIFBox", "LIF", "LIFRecurrent", "LI")


def neuron_of(module: Any, kind: str, where: str) -> Neuron:
    """The constants of a layer of Norse."""
    p, dt = attribute(module, "p", where), float(attribute(module, "dt", where))
    share = dt * wide(p.tau_mem_inv)
    synaptic = None if "Box" in kind else 1.0 - dt * wide(p.tau_syn_inv)
    note = f"{where}: Δt = {dt:g} s, forward Euler as in Norse"
    common: dict[str, Any] = {"decay": 1.0 - share, "gain": share, "synaptic_decay": synaptic, "notes": (note,)}
    if kind.startswith("LI") and not kind.startswith("LIF"):
        if bool((wide(p.v_leak) != 0).any()):
            raise refuse(where, kind, "v_leak is not 0, and its output is the membrane itself")
        return Neuron(fires=False, **common)
    method = getattr(getattr(p, "reset_method", None), "__name__", "reset_value")
    if method not in ("reset_value", "reset_subtract"):
        raise refuse(where, kind, f"its reset is {method!r}; known are reset_value and reset_subtract")
    leak, threshold = wide(p.v_leak), wide(p.v_th)
    to_value = method == "reset_value"
    recurrent = getattr(module, "recurrent_weights", None) if "Recurrent" in kind else None
    inputs = getattr(module, "input_weights", None) if "Recurrent" in kind else None
    return Neuron(
        threshold=threshold - leak,
        strict=True,
        zeroed=1.0 if to_value else 0.0,
        taken=leak - wide(p.v_reset) if to_value else threshold,
        recurrent=None if recurrent is None else recurrent.detach(),
        inputs=None if inputs is None else inputs.detach(),
        **common,
    )
