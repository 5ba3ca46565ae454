"""Leaky integrators between two layers of weights, which become one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from axonnx.base.errors import AxonnxError
from axonnx.models.described import Layer

if TYPE_CHECKING:
    from axonnx.export.convert.plan import Plan


def through_integrator(plan: Plan, source: str, weight: Tensor, bias: Tensor | None, of: str) -> str:
    """W₂ LI(W₁ x + b₁) + b₂ = LI(W₂ W₁ x + W₂ b₁) + b₂, where all integrators leak alike; the layer that gives it.

    An integrator's output is any real number: weights behind it would add up such numbers, in an order that shows.
    """
    root, leaks = _before(plan, of)
    alone = sum(layer.of.count(each.name) for layer in plan.layers for each in (root, *leaks)) == len(leaks)
    if not leaks or not alone or root.kind != "linear" or weight.dim() != 2:
        raise AxonnxError(
            f"{source}: hears the current of {plan.sources[of]!r}, any real number, so that sums over its weights "
            f"depend on their order. Between two synapses there must be neurons that fire, or a leaky integrator with "
            f"one decay between two dense layers and nothing beside them (or merge the two into one layer)"
        )
    first, shift = (plan.tensors[f"layers.{root.name}.{part}"].double() for part in ("posterior.raw_mean", "norm.bias"))
    first = first / plan.taken_in.pop(root.name, 1.0)  # which the new synapse takes in again
    second, names = weight.detach().double(), f"{plan.sources[root.name]}_{source}"
    _remove(plan, (root, *leaks), source)
    start = plan.synapse(names, (second @ first).float(), (second @ shift).float(), root.of[0], (len(second),))
    _take_over(plan, root.name, start)
    found, biased = start, None
    for leak in reversed(leaks):
        decay = leak.options["decay"]
        found = plan.add(f"{names}_{leak.name}", "leak", (found,), (len(second),), decay=decay)
        plan.tensors[f"layers.{found}.decay"] = torch.tensor(decay)
    if bias is not None and bool(bias.any()):  # b₂ is added behind the integrator: by a synapse of zeros
        zeros = torch.zeros(len(second), first.shape[1])
        biased = plan.synapse(f"{source}_bias", zeros, bias, root.of[0], (len(second),))
        plan.sources[biased] = ""
        found = plan.add("", "add", (found, biased), (len(second),))
    plan.merged[start] = source, biased
    plan.notes.append(f"{source}: stands in the weights before {plan.sources[of]!r}, which leaks for all alike")
    return found


def _before(plan: Plan, of: str) -> tuple[Layer, list[Layer]]:
    """What integrators hear, and the integrators, the last one first."""
    leaks, root = [], plan.layer(of)
    while root.kind == "leak":
        leaks.append(root)
        root = plan.layer(root.of[0])
    return root, leaks


def _remove(plan: Plan, layers: tuple[Layer, ...], source: str) -> None:
    plan.layers = [layer for layer in plan.layers if layer not in layers]
    for layer in layers:
        plan.gone[layer.name] = source
        for key in [key for key in plan.tensors if key.startswith(f"layers.{layer.name}.")]:
            del plan.tensors[key]


def _take_over(plan: Plan, before: str, after: str) -> None:
    """What was done to a synapse's weights was done to those that it is part of."""
    plan.sources[after] = plan.sources[before]
    if before in plan.gains:
        plan.gains[after] = plan.gains.pop(before)
    if before in plan.folded:
        plan.folded[after] = plan.folded.pop(before)
