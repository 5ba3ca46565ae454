"""SpikingJelly's IFNode, LIFNode and ParametricLIFNode.

    v' = v + x            v' = v + (x − (v − v_reset))/τ            v' = v − (v − v_reset)/τ + x  (decay_input=False)
    o' = 1 where v' ≥ θ;  then v' = v_reset where it fired, or v' − θ where v_reset is None

From v_reset on, u = v − v_reset is a neuron that is reset to zero and rests there.
"""

from __future__ import annotations

from typing import Any

import torch

from axonnx.export.convert.sources.neuron import Neuron, attribute, refuse, wide

KINDS = ("IFNode", "LIFNode", "ParametricLIFNode")


def neuron_of(module: Any, kind: str, where: str) -> Neuron:
    """The constants of a layer of SpikingJelly."""
    threshold, reset = float(attribute(module, "v_threshold", where)), attribute(module, "v_reset", where)
    share = _share(module, kind, where)  # 1/τ
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


def _share(module: Any, kind: str, where: str) -> torch.Tensor:
    if kind == "IFNode":
        return wide(1.0)
    if kind == "LIFNode":
        return 1.0 / wide(attribute(module, "tau", where))
    weight = attribute(module, "w", where).detach()
    if weight.numel() != 1:
        raise refuse(where, kind, f"its w has {weight.numel()} numbers; one was expected")
    return wide(weight.sigmoid())  # in float32, as the source has it
