"""snnTorch's Leaky, RLeaky, Synaptic and RSynaptic.

mem' = β mem + i − θ o  (subtract, one step later)      mem' = β mem (1 − o) + i  (zero, of Leaky)
mem' = (β mem + i)(1 − o)  (zero, of the others)        o' = 1 where mem' > θ
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from axonnx.export.convert.sources.neuron import Neuron, attribute, refuse, wide

KINDS = ("Leaky", "RLeaky", "Synaptic", "RSynaptic")
RESETS = {0: "subtract", 1: "zero", 2: "none"}


def neuron_of(module: Any, kind: str, where: str) -> Neuron:
    """The constants of a layer of snnTorch."""
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
    recurrent, bias = _recurrent(module, kind, where)
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


def _recurrent(module: Any, kind: str, where: str) -> tuple[Tensor | None, Tensor | None]:
    """Weights and bias from a layer's own spikes."""
    if not kind.startswith("R"):
        return None, None
    inner = attribute(module, "recurrent", where)
    if isinstance(inner, nn.Linear):
        return inner.weight.detach(), None if inner.bias is None else inner.bias.detach()
    if isinstance(inner, nn.Conv2d):
        raise refuse(where, kind, "its recurrent connections are a convolution; only dense ones and V are known")
    return wide(attribute(inner, "V", where)).float().flatten(), None
