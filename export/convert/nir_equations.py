"""NIR's equations in double precision, step by step: what an import of a NIR file is held against.

Nothing here is shared with the import: no decay, no gain, no layer of ours. Membranes are in the file's own units.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as nnf
from torch import Tensor

from axonnx.base.errors import AxonnxError
from axonnx.export.convert.neuron import wide
from axonnx.export.convert.nir_graph import FlatGraph
from axonnx.export.convert.nir_neurons import Assumed

Weights = Mapping[str, tuple[Tensor, Tensor]]


class Equations:
    """One graph; ``weights`` replace its own, by name."""

    def __init__(self, graph: FlatGraph, dt: float | None, weights: Weights, assumed: Assumed) -> None:
        self.graph, self.dt, self.weights, self.assumed = graph, dt, weights, assumed
        self.state: dict[str, dict[str, Tensor]] = {}
        self.before: dict[str, Tensor] = {}
        self.arrived: dict[str, list[Tensor]] = {}  # at delays, of every step so far

    def run(self, x: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        """Return what every node gives, [T, B, …], and the output node's input."""
        steps: dict[str, list[Tensor]] = {}
        begin, end = self.graph.only("Input"), self.graph.only("Output")
        shape = [int(side) for side in self.graph.nodes[begin].input_type["input"]]
        for frame in x.double():
            values = {begin: frame.reshape(len(frame), *shape)}
            self._value(end, values)
            self.before = values
            for name, value in values.items():
                steps.setdefault(name, []).append(value)
        found = {name: torch.stack(value) for name, value in steps.items()}
        return found, found[end]

    def _value(self, name: str, values: dict[str, Tensor]) -> Tensor:
        if name not in values:
            node, kind = self.graph.nodes[name], type(self.graph.nodes[name]).__name__
            total: Tensor | float = 0.0
            for each in self.graph.heard[name]:
                looped = name in self.graph.heard[each] and self.graph.heard[each] == (name,)
                total = total + (self._again(each) if looped else self._value(each, values))
            assert isinstance(total, Tensor)
            values[name] = self._gives(name, node, kind, total)
        return values[name]

    def _again(self, name: str) -> Tensor | float:
        """Recurrent weights on the spikes of the step before."""
        (neuron,) = self.graph.heard[name]
        if neuron not in self.before:
            return torch.as_tensor(self._bias(name)).double()
        return self._gives(name, self.graph.nodes[name], type(self.graph.nodes[name]).__name__, self.before[neuron])

    def _bias(self, name: str) -> Any:
        own = getattr(self.graph.nodes[name], "bias", 0.0)
        return self.weights[name][1] if name in self.weights else own

    def _gives(self, name: str, node: Any, kind: str, x: Tensor) -> Tensor:
        if kind in ("Affine", "Linear", "Conv1d", "Conv2d"):
            return self._linear(name, node, kind, x)
        if kind == "Output":
            return x
        if kind == "Flatten":
            return x.flatten(1)
        if kind == "Scale":
            return x if name in self.weights else x * torch.as_tensor(node.scale).double()
        if kind in ("AvgPool2d", "SumPool2d"):
            side = [int(number) for number in node.kernel_size]
            mean = nnf.avg_pool2d(x, side, [int(number) for number in node.stride])
            return mean * side[0] * side[1] if kind == "SumPool2d" else mean
        if kind == "Delay":
            return self._later(name, node, x)
        if kind == "Threshold":
            return self._fires(x, torch.as_tensor(node.threshold)).double()
        return self._neurons(name, node, kind, x)

    def _later(self, name: str, node: Any, x: Tensor) -> Tensor:
        """y(t) = x(t − τ), with a τ for each neuron; before the first step there was nothing."""
        arrived = self.arrived.setdefault(name, [])
        arrived.append(x)
        steps = torch.round(torch.as_tensor(node.delay).double() / (self.dt or 1.0)).long().expand(x.shape[1:])
        out = torch.zeros_like(x)
        for ago in range(min(len(arrived), int(steps.max()) + 1)):
            out = torch.where(steps == ago, arrived[-1 - ago], out)
        return out

    def _linear(self, name: str, node: Any, kind: str, x: Tensor) -> Tensor:
        weight = torch.as_tensor(self.weights[name][0] if name in self.weights else node.weight).double()
        bias = torch.as_tensor(self._bias(name)).double()
        bias = bias.expand(len(weight)) if bias.dim() == 0 else bias
        if kind in ("Affine", "Linear"):
            return nnf.linear(x.flatten(1), weight, bias)
        how = {part: _numbers(getattr(node, part)) for part in ("stride", "padding", "dilation")}
        convolve = nnf.conv1d if kind == "Conv1d" else nnf.conv2d
        shape = [len(weight), *node.weight.shape[1:]]
        return convolve(x, weight.reshape(shape), bias, groups=int(node.groups), **how)

    def _neurons(self, name: str, node: Any, kind: str, x: Tensor) -> Tensor:
        p = {part: _one(torch.as_tensor(value).double()) for part, value in vars(node).items() if _is_number(value)}
        leak = p.get("v_leak", torch.zeros(()).double())
        state = self.state.setdefault(name, {"v": leak + torch.zeros_like(x), "i": torch.zeros_like(x)})
        dt = self.dt or 1.0
        if kind.startswith("Cuba"):
            state["i"] = state["i"] + dt / p["tau_syn"] * (p["w_in"] * x - state["i"])
            x = state["i"]
        if kind in ("IF", "I"):
            v = state["v"] + p["r"] * x
        else:
            v = state["v"] + dt / p["tau_mem" if kind.startswith("Cuba") else "tau"] * (leak - state["v"] + p["r"] * x)
        if kind in ("LI", "CubaLI", "I"):
            state["v"] = v
            return v
        if self.assumed.late:
            state["v"] = self._reset(v, state.get("fired", torch.zeros_like(v)).bool(), p)
            state["fired"] = self._fires(state["v"], p["v_threshold"]).double()
            return state["fired"]
        fired = self._fires(v, p["v_threshold"])
        state["v"] = self._reset(v, fired, p)
        return fired.double()

    def _fires(self, v: Tensor, threshold: Tensor) -> Tensor:
        return v >= threshold if self.assumed.tie == "fires" else v > threshold

    def _reset(self, v: Tensor, fired: Tensor, p: Mapping[str, Tensor]) -> Tensor:
        """Membranes after the spikes ``fired``."""
        at = p.get("v_reset", torch.zeros(()).double())
        after = {"value": at, "zero": torch.zeros_like(v), "subtract": v - (p["v_threshold"] - at)}
        return torch.where(fired, after[self.assumed.amount], v)


def _numbers(value: Any) -> list[int]:
    return [int(number) for number in torch.as_tensor(value).flatten().tolist()]


def _one(value: Tensor) -> Tensor:
    """One number where all neurons have the same."""
    return value.flatten()[0] if value.numel() and bool((value == value.flatten()[0]).all()) else value


def _is_number(value: Any) -> bool:
    return not isinstance(value, str | dict) and value is not None and hasattr(value, "dtype")


NEAR = 1e-6  # of a time step: how far a delay in seconds may be from a whole number of them

MOST_KEPT = 10**7  # values that a delay line holds


class Late(NamedTuple):
    """All delays in time steps, ascending, and which of them each neuron has."""

    delays: tuple[int, ...]
    which: Tensor


def delay_steps(seconds: Any, shape: Sequence[int], dt: float | None, name: str) -> Late:
    """Delays of seconds as whole time steps."""
    if dt is None:
        raise AxonnxError(f"{name}: Delay is in seconds; give the time step in seconds, e.g. 1e-3", options=("dt",))
    given = wide(seconds)
    try:
        steps = (given / dt).expand(tuple(shape))
    except RuntimeError:
        raise AxonnxError(f"{name}: delays of {list(given.shape)} do not fit what arrives, {list(shape)}") from None
    whole = torch.round(steps)
    wrong = ~((steps - whole).abs() <= NEAR) | (whole < 0)
    if bool(wrong.any()):
        raise AxonnxError(
            f"{name}: a delay of {float(steps[wrong][0] * dt):g} s is no whole number of time steps of {dt:g} s"
        )
    kept = int(whole.max()) * whole.numel()
    if kept > MOST_KEPT:
        raise AxonnxError(
            f"{name}: a delay of {int(whole.max()):,} time steps keeps {kept:,} values; expected at most {MOST_KEPT:,}"
        )
    delays, which = torch.unique(whole.long(), return_inverse=True)
    return Late(tuple(int(delay) for delay in delays), which)


def taken_apart(weight: Tensor, late: Late, groups: int, name: str) -> Tensor:
    """W_k = W where the neuron (or channel) before it has delay k, and 0 elsewhere: [out, delays · in, …]."""
    which = late.which
    if weight.dim() > 2:
        rows = which.flatten(1)
        if groups != 1 or not bool((rows == rows[:, :1]).all()):
            raise AxonnxError(f"{name}: delays that differ within a channel, or before a convolution in groups")
        which = rows[:, 0]
    mask = torch.nn.functional.one_hot(which.flatten(), len(late.delays)).T.to(weight.dtype)  # [delays, in]
    parts = [weight * row.reshape(1, -1, *(1,) * (weight.dim() - 2)) for row in mask]
    return torch.cat(parts, 1)


def put_together(weight: Tensor, shape: Sequence[int]) -> Tensor:
    """Return the source's weights again, of ``shape``: at most one of W_k is not zero."""
    times = weight.shape[1] // int(shape[1])
    return weight if times < 2 else weight.unflatten(1, (times, int(shape[1]))).sum(1)
