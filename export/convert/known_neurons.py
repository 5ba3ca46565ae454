"""Neurons of snnTorch, SpikingJelly and Norse as constants of ours, one function for each library.

They are known by the names of their classes, so that no library is imported.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from axonnx.export.convert.neuron import Neuron, attribute, refuse, wide
from axonnx.models import MEAN_FIELD, Current, Run, State
from axonnx.models.neurons import Neurons

KINDS_OF_NORSE = ("LIFBoxCell", "LIFCell", "LIFRecurrentCell", "LICell", "LIFBox", "LIF", "LIFRecurrent", "LI")


def norse_neuron(module: Any, kind: str, where: str) -> Neuron:
    """Return the constants of Norse's cells, and of its layers LIFBox, LIF, LIFRecurrent and LI, which run in time.

        i = i + I (+ R z);   v' = v + Δt/τ_mem ((v_leak − v) + i);   i' = i − Δt/τ_syn i      (without i in a box cell)
        o' = 1 where v' > θ;   then v' = v_reset where it fired

    From v_leak on, u = v − v_leak: β = 1 − Δt/τ_mem, g = Δt/τ_mem, α = 1 − Δt/τ_syn.
    """
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


KINDS_OF_SNNTORCH = ("Leaky", "RLeaky", "Synaptic", "RSynaptic")
RESETS = {0: "subtract", 1: "zero", 2: "none"}


def snntorch_neuron(module: Any, kind: str, where: str) -> Neuron:
    """Return the constants of snnTorch's Leaky, RLeaky, Synaptic and RSynaptic.

    mem' = β mem + i − θ o  (subtract, one step later)      mem' = β mem (1 − o) + i  (zero, of Leaky)
    mem' = (β mem + i)(1 − o)  (zero, of the others)        o' = 1 where mem' > θ
    """
    _refuse_extras(module, kind, where)
    threshold = wide(attribute(module, "threshold", where))
    reset = RESETS[int(attribute(module, "reset_mechanism_val", where))]
    if not getattr(module, "reset_delay", True) and reset == "subtract":
        raise refuse(
            where,
            kind,
            "with reset_delay=False a membrane that is still above its threshold after the reset is reset "
            "once more before it decides, and that once is taken back after it; use reset_delay=True",
        )
    recurrent, bias = _snntorch_recurrent(module, kind, where)
    return Neuron(
        decay=wide(attribute(module, "beta", where)).clamp(0, 1),
        threshold=threshold,
        strict=True,
        zeroed=1.0 if reset == "zero" and kind == "Leaky" else 0.0,
        late_zeroed=1.0 if reset == "zero" and kind != "Leaky" else 0.0,
        late_taken=threshold if reset == "subtract" else 0.0,
        synaptic_decay=wide(module.alpha).clamp(0, 1) if kind.endswith("Synaptic") else None,
        recurrent=recurrent,
        bias=bias,
    )


def _refuse_extras(module: Any, kind: str, where: str) -> None:
    if getattr(module, "inhibition", False):
        raise refuse(where, kind, "inhibition=True lets one neuron of a layer fire alone")
    if getattr(module, "state_quant", False):
        raise refuse(where, kind, "state_quant rounds membranes; import the network without it")
    factor = wide(getattr(module, "graded_spikes_factor", 1.0))
    if not bool((factor == 1).all()):
        raise refuse(
            where, kind, "graded_spikes_factor scales its spikes; put the factor into the next layer's weights"
        )
    if not getattr(module, "reset_delay", True) and kind != "Leaky":
        raise refuse(where, kind, "reset_delay=False; use reset_delay=True")


def _snntorch_recurrent(module: Any, kind: str, where: str) -> tuple[Tensor | None, Tensor | None]:
    """Weights and bias from a layer's own spikes."""
    if not kind.startswith("R"):
        return None, None
    inner = attribute(module, "recurrent", where)
    if isinstance(inner, nn.Linear):
        return inner.weight.detach(), None if inner.bias is None else inner.bias.detach()
    if isinstance(inner, nn.Conv2d):
        raise refuse(where, kind, "its recurrent connections are a convolution; only dense ones and V are known")
    return wide(attribute(inner, "V", where)).float().flatten(), None


KINDS_OF_SPIKINGJELLY = ("IFNode", "LIFNode", "ParametricLIFNode")


def spikingjelly_neuron(module: Any, kind: str, where: str) -> Neuron:
    """Return the constants of SpikingJelly's IFNode, LIFNode and ParametricLIFNode.

        v' = v + x       v' = v + (x − (v − v_reset))/τ       v' = v − (v − v_reset)/τ + x  (decay_input=False)
        o' = 1 where v' ≥ θ;  then v' = v_reset where it fired, or v' − θ where v_reset is None

    From v_reset on, u = v − v_reset is a neuron that is reset to zero and rests there.
    """
    threshold, reset = float(attribute(module, "v_threshold", where)), attribute(module, "v_reset", where)
    share = _spikingjelly_share(module, kind, where)  # 1/τ
    rest = 0.0 if reset is None else float(reset)
    if kind == "IFNode":
        decay, gain = wide(1.0), wide(1.0)
    else:
        decay, gain = 1.0 - share, share if attribute(module, "decay_input", where) else wide(1.0)
    return Neuron(
        decay=decay,
        threshold=threshold - rest,
        zeroed=0.0 if reset is None else 1.0,
        taken=threshold if reset is None else 0.0,
        gain=gain,
        notes=(f"{where}: membranes count from v_reset = {rest:g}",) if rest else (),
    )


def _spikingjelly_share(module: Any, kind: str, where: str) -> torch.Tensor:
    if kind == "IFNode":
        return wide(1.0)
    if kind == "LIFNode":
        return 1.0 / wide(attribute(module, "tau", where))
    weight = attribute(module, "w", where).detach()
    if weight.numel() != 1:
        raise refuse(where, kind, f"its w has {weight.numel()} numbers; one was expected")
    return wide(weight.sigmoid())  # in float32, as the source has it


LIBRARIES: dict[str, tuple[tuple[str, ...], Callable[[Any, str, str], Neuron]]] = {
    "snntorch": (KINDS_OF_SNNTORCH, snntorch_neuron),
    "spikingjelly": (KINDS_OF_SPIKINGJELLY, spikingjelly_neuron),
    "norse": (KINDS_OF_NORSE, norse_neuron),
}
NAMES = {"snntorch": "snnTorch", "spikingjelly": "SpikingJelly", "norse": "Norse"}


def library_of(module: nn.Module) -> str | None:
    """Return the library that a layer of neurons comes from, as Python names it."""
    library = type(module).__module__.partition(".")[0]
    return library if library in LIBRARIES else None


def kind_of(module: nn.Module) -> str | None:
    """Return the class, or the nearest it is derived from, that is known as neurons."""
    for base in type(module).__mro__:
        library = base.__module__.partition(".")[0]
        if library in LIBRARIES and base.__name__ in LIBRARIES[library][0]:
            return base.__name__ if base is type(module) else None
    return None


def holds_neurons(module: nn.Module) -> bool:
    """Whether this is a layer of neurons."""
    return isinstance(module, StandIn) or (library_of(module) is not None and kind_of(module) is not None)


def neuron_of(module: nn.Module, where: str) -> Neuron:
    """Return the constants of a layer of neurons."""
    library, kind = library_of(module), kind_of(module)
    assert library is not None
    assert kind is not None
    return LIBRARIES[library][1](module, kind, where)


class StandIn(nn.Module):
    """Neurons of ours that take plain tensors, one time step a call."""

    def __init__(self, neurons: Neurons) -> None:
        super().__init__()
        self.neurons = neurons
        self.state: State | None = None

    def reset(self) -> None:
        """Return to rest."""
        self.state = None

    def forward(self, x: Tensor) -> Tensor:
        """Spikes of the shape of the current ``x``."""
        run = Run(self, MEAN_FIELD, self.state)
        spikes: Tensor = self.neurons(Current(x), run)
        self.state = run.state(1)
        return spikes


def with_stand_ins(network: nn.Module) -> nn.Module:
    """Put a stand-in for each layer of our neurons into ``network``, and return it."""
    if isinstance(network, Neurons):
        return StandIn(network)
    for name, child in list(network.named_children()):
        if not isinstance(child, StandIn):
            setattr(network, name, with_stand_ins(child))
    return network
