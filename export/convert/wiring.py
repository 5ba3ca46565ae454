"""From the calls that a source network made to a plan: each layer, and what it hears."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from axonnx.base.errors import AxonnxError
from axonnx.export.convert.known_neurons import LIBRARIES, NAMES, StandIn, holds_neurons, library_of, neuron_of
from axonnx.export.convert.neuron import wide
from axonnx.export.convert.plan import SYNAPSES, Plan, Rule
from axonnx.export.convert.running import Call, Origin, Trace
from axonnx.models.described import INPUT

# Functions that put the outputs of time steps together; what they are of decides.
GATHERING = {"stack", "cat", "sum", "mean", "unsqueeze", "squeeze", "add", "__add__", "__radd__", "__iadd__", "add_"}
GATHERING |= {"div", "__truediv__", "mul", "__mul__", "__rmul__", "transpose", "permute", "zeros_like"}
MEANS = {"mean", "div", "__truediv__"}
SUMS = {"sum", "add", "__add__", "__radd__", "__iadd__", "add_"}
MAXIMA = {"max", "amax", "maximum"}
PARTS = {"__getitem__", "select"}
LAST = "the last time step"
RESETS = ("zeroed", "taken", "late_zeroed", "late_taken")
SAME = {"contiguous", "clone", "detach", "float", "to", "requires_grad_", "to_dense"}
RESHAPES = {"flatten", "view", "reshape", "squeeze", "unsqueeze", "unflatten"}


class Wiring:
    """Walks from the source's output back to its input, at one time step, and fills a plan."""

    def __init__(self, trace: Trace, x: Tensor, shape: tuple[int, ...], flat: bool, whole: bool) -> None:
        self.trace, self.x, self.lead, self.plan = trace, x, 2 if whole else 1, Plan()
        self.plan.shapes[INPUT] = shape
        self.input = INPUT if not flat else self.plan.add("", "flatten", (INPUT,), (int(torch.Size(shape).numel()),))
        self.done: dict[tuple[int, int], str] = {}
        self.uses: dict[tuple[int, int], int] = {}
        for call in trace.calls:
            for source in call.sources:
                if source is not None:
                    key = id(source.call), source.output
                    self.uses[key] = self.uses.get(key, 0) + 1

    def run(self, output: Tensor, last_only: bool) -> Plan:
        """Return the plan of the network whose classes are ``output``."""
        call, number = self._gathered(output, last_only)
        if call.module is not None and holds_neurons(call.module) and number > 0:
            self.done[id(call), number] = self._membrane(call, call.module, number)
        self.plan.readout(self._value(Origin(call, number)))
        return self.plan

    def _membrane(self, call: Call, module: nn.Module, number: int) -> str:
        """Neurons whose membrane is the network's output: a leaky integrator, where spikes do nothing to it."""
        neuron = neuron_of(module, call.name)
        if number != len(call.outputs) - 1 or any(bool(wide(getattr(neuron, name)).any()) for name in RESETS):
            raise AxonnxError(
                f"{call.name}: its state is the network's output, and spikes reset it; return its spikes, or give it "
                f"no reset (snnTorch: reset_mechanism='none') and return its membrane"
            )
        self.plan.read = number
        return self.plan.neurons(call.name, replace(neuron, fires=False), self._heard(call))

    def _gathered(self, output: Tensor, last_only: bool) -> tuple[Call, int]:
        """Return the layer whose outputs over time the result is made of."""
        waiting, seen, how = [self.trace.origin(output)], set(), set[str]()
        found: dict[tuple[str, int], list[Call]] = {}
        while waiting:
            origin = waiting.pop()
            if origin is None or (id(origin.call), origin.output) in seen:
                continue
            seen.add((id(origin.call), origin.output))
            if origin.call.module is not None and not _passes(origin.call.module):
                found.setdefault((origin.call.name, origin.output), []).append(origin.call)
            elif origin.call.module is not None or origin.call.name in GATHERING | MAXIMA | PARTS | SAME:
                waiting += origin.call.sources
                how.add(_last_of(origin.call) if origin.call.name in PARTS else origin.call.name)
            else:
                raise AxonnxError(
                    f"the network's output goes through {origin.call.name!r}; expected the outputs of every time step, "
                    f"or their sum, mean, maximum or last one"
                )
        if len(found) != 1:
            names = ", ".join(name for name, _ in found) or "none"
            raise AxonnxError(f"the network's output is made of {len(found)} layers ({names}); expected one")
        ((_, number), calls), *_ = found.items()
        last = max(calls, key=lambda call: call.number)
        alone = last_only and len(calls) == 1 and last.number > 0
        rules: dict[Rule, bool] = {
            "last": alone or LAST in how,
            "maximum": bool(how & MAXIMA),
            "mean": bool(how & MEANS),
            "sum": bool(how & SUMS) and not how & MEANS,
        }
        stated = [rule for rule, found in rules.items() if found]
        if len(stated) > 1:
            raise AxonnxError(
                f"the network's output is made by {' and '.join(stated)} of the outputs of {last.name!r}; expected one "
                f"of them, over time"
            )
        self.plan.rule = stated[0] if stated else None
        return last, number

    def _value(self, origin: Origin | None, tensor: Tensor | None = None) -> str:
        """Return the name of the layer that gives a tensor."""
        if origin is None:
            if tensor is None or tensor.untyped_storage().data_ptr() == self.x.untyped_storage().data_ptr():
                return self.input
            raise AxonnxError(
                "a layer hears a tensor that is neither the input nor made by a layer; keep it in a layer"
            )
        key = id(origin.call), origin.output
        if key not in self.done:
            call = origin.call
            self.done[key] = self._function(call) if call.module is None else self._module(call, call.module)
            for output in range(len(call.outputs)):  # spikes and states of one layer
                self.done.setdefault((id(call), output), self.done[key])
        return self.done[key]

    def _heard(self, call: Call, number: int = 0) -> str:
        """Return what a call's first (or other) tensor comes from."""
        return self._value(call.sources[number], call.inputs[number])

    def _module(self, call: Call, module: nn.Module) -> str:
        if holds_neurons(module):
            return self._neurons(call, module)
        rule = next((rule for kind, rule in MODULES if isinstance(module, kind)), None)
        if rule is None:
            raise AxonnxError(_unknown(call.name, module))
        return rule(self, call, module)

    def _neurons(self, call: Call, module: nn.Module) -> str:
        for source in call.sources[1:]:
            if source is not None and not (source.call.name == call.name and source.call.number == call.number - 1):
                if source.call.module is None and all(before is None for before in source.call.sources):
                    continue  # made of nothing: the state at the start
                raise AxonnxError(
                    f"{call.name}: its state comes from {source.call.name!r}, not from its own step before; a state is "
                    f"handed on as it is"
                )
        if isinstance(module, StandIn):
            return self.plan.own(call.name, module.neurons, self._heard(call))
        of, neuron = self._heard(call), neuron_of(module, call.name)
        if neuron.inputs is not None:
            shape = (neuron.inputs.shape[0],)
            of = self.plan.synapse(f"{call.name}.input_weights", neuron.inputs, None, of, shape)
        earlier = call.sources[0]
        if earlier is not None and earlier.call.number != call.number and holds_any(earlier.call):
            raise AxonnxError(f"{call.name}: hears {earlier.call.name!r} of another time step; only layers before it")
        return self.plan.neurons(call.name, neuron, of)

    def _function(self, call: Call) -> str:
        if call.name in SAME:
            return self._heard(call)
        if call.name in ("__getitem__", "select", "unbind", "__iter__") and self._of_input(call):
            return self.input
        if call.name in RESHAPES:
            return self._reshaped(call)
        if call.name in ("add", "__add__", "__iadd__", "__radd__", "add_") and len(call.inputs) == 2:
            one, other = self._heard(call, 0), self._heard(call, 1)
            return self.plan.add("", "add", (one, other), self.plan.shapes[one])
        if call.name in ("dropout", "dropout2d", "dropout1d"):
            return self._heard(call)
        if call.name == "cat":
            parts = tuple(self._heard(call, number) for number in range(len(call.inputs)))
            return self.plan.add("", "join", parts, tuple(call.outputs[0].shape[self.lead :]))
        if call.name == "stack" and self._over_time(call):
            return self._heard(call, len(call.inputs) - 1)
        if call.name in POOLS:
            return self._pooled(call, *POOLS[call.name](call))
        raise AxonnxError(
            f"the function {call.name!r} between layers has no exact form here; known are sums, concatenations, "
            f"flatten and pooling"
        )

    def _over_time(self, call: Call) -> bool:
        """Whether a layer's outputs of every time step are put together, for a layer that takes whole sequences."""
        names = {None if source is None else source.call.name for source in call.sources}
        numbers = [None if source is None else source.call.number for source in call.sources]
        return len(names) == 1 and numbers == list(range(len(call.inputs)))

    def _of_input(self, call: Call) -> bool:
        return call.sources[0] is None and call.inputs[0] is self.x

    def _reshaped(self, call: Call) -> str:
        """Follow a reshape: maps made flat count, a time axis folded into the batch does not."""
        of = self._heard(call)
        before, after = self.plan.shapes[of], tuple(call.outputs[0].shape)
        flat = int(torch.Size(before).numel())
        if after[-len(before) :] == before or before in ((*after[-2:-1], 1, *after[-1:]), after[-1:]):
            return of
        if after[-1] == flat and len(after) <= self.lead + 1:
            return self.plan.add("", "flatten", (of,), (flat,))
        raise AxonnxError(f"{call.name!r} makes {list(after)} of maps of {list(before)}; only flattening is known here")

    def _pooled(self, call: Call, how: str, window: Any, stride: Any, padding: Any, more: str = "") -> str:
        of = self._heard(call)
        name = call.name if call.module is not None else how
        shape = self.plan.shapes[of]
        sides, steps, pads = (
            _pair(side, len(call.outputs[0].shape) - self.lead == 2) for side in (window, stride, padding)
        )
        if len(shape) != 3:
            raise AxonnxError(f"{name}: pools what is no map, {list(shape)}")
        if more or any(pads) or tuple(steps) != tuple(sides):
            raise AxonnxError(
                f"{name}: windows of {list(sides)} with steps of {list(steps)}{more} over maps of {list(shape[1:])}; "
                f"only windows that stand side by side are exact in every engine"
            )
        if of in self.plan.currents and how == "average_pool" and sides[0] != sides[1]:
            raise AxonnxError(
                f"{name}: averages currents over {sides[0]} × {sides[1]}; over currents windows are square"
            )
        return self.plan.pool(call.name if call.module is not None else "", how, of, (sides[0], sides[1]))


def _last_of(call: Call) -> str:
    """Return that a call takes the last time step of all, or that it takes everything; refuse any other part.

    A part is a view, so that its place in memory says which one it is.
    """
    (whole, *_), (part, *_) = call.inputs, call.outputs
    if part.shape == whole.shape:
        return call.name
    offset = part.storage_offset() - whole.storage_offset()
    for axis in (0, 1):  # time, with or without a batch before it
        sides = list(whole.shape)
        count = sides.pop(axis) if len(sides) > axis else 0
        if count > 1 and list(part.shape) == sides and offset == (count - 1) * whole.stride(axis):
            return LAST
    raise AxonnxError(
        f"the network's output is a part, {list(part.shape)}, of the outputs of all time steps, {list(whole.shape)}; "
        f"return them all, or their sum, mean, maximum or last one"
    )


def holds_any(call: Call) -> bool:
    """Whether a call is one of a layer of neurons."""
    return call.module is not None and holds_neurons(call.module)


def _passes(module: nn.Module) -> bool:
    return isinstance(module, nn.Identity | nn.Dropout)


def _unknown(name: str, module: nn.Module) -> str:
    kind, library = type(module), library_of(module)
    if library is not None:
        return (
            f"{name}: {kind.__name__} of {NAMES[library]} has no exact form here; known are "
            f"{', '.join(LIBRARIES[library][0])}"
        )
    known = "Linear, Conv1d, Conv2d, AvgPool2d, MaxPool2d, BatchNorm1d, BatchNorm2d, Flatten, Dropout"
    return f"{name}: a {kind.__module__}.{kind.__name__} has no exact form here; known are {known}, and neurons"


def _pair(side: Any, line: bool = False) -> tuple[int, int]:
    """Of a window: one number for both axes, or one each; along a line there is one axis."""
    if isinstance(side, int):
        return (1, side) if line else (side, side)
    numbers = [int(number) for number in side]
    return (1, numbers[0]) if line else (numbers[0], numbers[-1])


def _linear(w: Wiring, call: Call, module: Any) -> str:
    of = w._heard(call)
    if len(w.plan.shapes[of]) != 1:
        if w.plan.shapes[of][:-1] != (1,) * (len(w.plan.shapes[of]) - 1):
            raise AxonnxError(
                f"{call.name}: a linear layer hears maps of {list(w.plan.shapes[of])}; flatten them first"
            )
        of = w.plan.add("", "flatten", (of,), (module.in_features,))
    return w.plan.synapse(call.name, module.weight, module.bias, of, (module.out_features,))


def _conv(w: Wiring, call: Call, module: Any) -> str:
    of, line = w._heard(call), isinstance(module, nn.Conv1d)
    if isinstance(module.padding, str) or module.padding_mode != "zeros":
        raise AxonnxError(f"{call.name}: padding {module.padding!r} ({module.padding_mode}); give zeros in numbers")
    sides = {
        "stride": _pair(module.stride, line),
        "padding": (0, _pair(module.padding)[0]) if line else _pair(module.padding),
        "dilation": _pair(module.dilation, line),
    }
    weight = module.weight.unsqueeze(2) if line else module.weight
    out = tuple(call.outputs[0].shape[-2:]) if line else tuple(call.outputs[0].shape[-3:])
    shape = (out[0], 1, out[1]) if line else out
    how: dict[str, Any] = {name: list(side) for name, side in sides.items()}
    return w.plan.synapse(call.name, weight, module.bias, of, shape, groups=module.groups, **how)


def _batch_norm(w: Wiring, call: Call, module: Any) -> str:
    """Put a = γ/√(v + ε) and β − μ a into the weights of the synapse before."""
    of, source = w._heard(call), call.sources[0]
    single = source is not None and w.uses[id(source.call), source.output] == 1
    if w.plan.layers and of != INPUT and w.plan.layer(of).kind in SYNAPSES and single and module.track_running_stats:
        scale = 1.0 / torch.sqrt(module.running_var.double() + module.eps)
        scale = scale if module.weight is None else scale * module.weight.detach().double()
        shift = -module.running_mean.double() * scale
        w.plan.fold(of, scale, shift if module.bias is None else shift + module.bias.detach().double())
        w.plan.folded.setdefault(of, []).append(call.name)
        return of
    raise AxonnxError(
        f"{call.name}: batch norm is folded into the layer before it, which must be its synapse and its alone"
    )


def _flatten(w: Wiring, call: Call, module: Any) -> str:
    of = w._heard(call)
    flat = int(torch.Size(w.plan.shapes[of]).numel())
    if call.outputs[0].shape[-1] != flat:
        raise AxonnxError(
            f"{call.name}: makes {list(call.outputs[0].shape)} of {list(w.plan.shapes[of])}; flatten whole maps"
        )
    return of if len(w.plan.shapes[of]) == 1 else w.plan.add(call.name, "flatten", (of,), (flat,))


def _dropout(w: Wiring, call: Call, module: Any) -> str:
    of = w._heard(call)
    return w.plan.add(call.name, "dropout", (of,), w.plan.shapes[of], p=float(module.p))


def _average(w: Wiring, call: Call, module: Any) -> str:
    more = (
        ", ceil_mode" if module.ceil_mode else ", divisor_override" if getattr(module, "divisor_override", None) else ""
    )
    return w._pooled(call, "average_pool", module.kernel_size, module.stride, module.padding, more)


def _whole(w: Wiring, call: Call, module: Any) -> str:
    before, after = w.plan.shapes[w._heard(call)][-2:], tuple(call.outputs[0].shape[-2:])
    if any(size % left for size, left in zip(before, after, strict=True)):
        raise AxonnxError(f"{call.name}: windows of different sizes; choose an output size that divides {list(before)}")
    sides = tuple(size // left for size, left in zip(before, after, strict=True))
    return w._pooled(call, "average_pool", sides, sides, 0)


def _largest(w: Wiring, call: Call, module: Any) -> str:
    more = ", dilation" if _pair(module.dilation) != (1, 1) else ", ceil_mode" if module.ceil_mode else ""
    return w._pooled(call, "max_pool", module.kernel_size, module.stride, module.padding, more)


def _sum_pool(w: Wiring, call: Call, module: Any) -> str:
    return w._pooled(
        call, "sum_pool", module.kernel_size, module.stride or module.kernel_size, getattr(module, "padding", 0)
    )


MODULES: list[tuple[Any, Callable[[Wiring, Call, Any], str]]] = [
    (nn.Linear, _linear),
    ((nn.Conv1d, nn.Conv2d), _conv),
    ((nn.BatchNorm1d, nn.BatchNorm2d), _batch_norm),
    (nn.Flatten, _flatten),
    ((nn.Dropout, nn.Dropout1d, nn.Dropout2d), _dropout),
    (nn.Identity, lambda w, call, _module: w._heard(call)),
    ((nn.AvgPool1d, nn.AvgPool2d), _average),
    ((nn.MaxPool1d, nn.MaxPool2d), _largest),
    (nn.AdaptiveAvgPool2d, _whole),
    (nn.LPPool2d, _sum_pool),
]


def _argument(call: Call, place: int, name: str, default: Any) -> Any:
    if name in call.options:
        return call.options[name]
    return call.arguments[place] if len(call.arguments) > place else default


def _of_function(how: str) -> Callable[[Call], tuple[Any, ...]]:
    def read(call: Call) -> tuple[Any, ...]:
        window = _argument(call, 1, "kernel_size", None)
        return how, window, _argument(call, 2, "stride", None) or window, _argument(call, 3, "padding", 0)

    return read


POOLS: dict[str, Callable[[Call], tuple[Any, ...]]] = {
    **dict.fromkeys(("max_pool2d", "boolean_dispatch", "_max_pool2d", "max_pool1d"), _of_function("max_pool")),
    **dict.fromkeys(("avg_pool2d", "avg_pool1d"), _of_function("average_pool")),
}
