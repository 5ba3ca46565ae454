"""A source network as the calls that it makes while it runs: layers, and the functions between them.

The network runs on a few steps of input. What it calls is written down with the tensors that go in and out, so any
wiring shows, however the network is written; nothing of its code is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from axonnx.export.convert.sources.known import holds_neurons


@dataclass(frozen=True)
class Call:
    """A layer (``module``) or a function, in its ``number``-th call; what went in and came out."""

    name: str
    module: nn.Module | None
    function: Any
    arguments: tuple[Any, ...]
    options: dict[str, Any]
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    number: int = 0
    sources: tuple[Origin | None, ...] = ()  # which call made each input, at that time


@dataclass(frozen=True)
class Origin:
    """One of a call's outputs."""

    call: Call
    output: int


@dataclass
class Trace:
    """All calls in order, and which of them made a tensor."""

    calls: list[Call] = field(default_factory=list)
    made_by: dict[int, Origin] = field(default_factory=dict)
    kept: list[Any] = field(default_factory=list)  # so that no tensor's id is used twice
    counts: dict[str, int] = field(default_factory=dict)

    def add(self, call: Call) -> None:
        """One more call, whose inputs are what they are now: a later one may write over them."""
        call = replace(call, sources=tuple(self.made_by.get(id(tensor)) for tensor in call.inputs))
        self.calls.append(call)
        self.kept.append((call.inputs, call.outputs))
        for number, tensor in reversed(list(enumerate(call.outputs))):
            self.made_by[id(tensor)] = Origin(call, number)

    def origin(self, tensor: Tensor) -> Origin | None:
        """The last call that made a tensor; None of what was there before."""
        return self.made_by.get(id(tensor))

    def of(self, name: str) -> list[Call]:
        """Every call of a layer."""
        return [call for call in self.calls if call.module is not None and call.name == name]


class _Recorder(TorchFunctionMode):
    """Writes down functions that are called outside of layers."""

    def __init__(self, trace: Trace) -> None:
        super().__init__()
        self.trace, self.inside = trace, 0

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = function(*args, **(kwargs or {}))
        if function is Tensor.__iter__:
            parts = tuple(out)
            if not self.inside:
                self.trace.add(Call("unbind", None, torch.unbind, args, {}, tensors_in(args), parts))
            return iter(parts)
        if not self.inside:
            outputs = tensors_in(out)
            if outputs:
                name = getattr(function, "__name__", str(function))
                self.trace.add(Call(name, None, function, args, kwargs or {}, tensors_in((args, kwargs)), outputs))
        return out


@contextmanager
def recorded(network: nn.Module) -> Iterator[Trace]:
    """While the block lasts, calls of the network's layers and of functions between them are written down."""
    trace = Trace()
    recorder = _Recorder(trace)
    with ExitStack() as stack:
        for name, module in network.named_modules():
            if is_layer(module):
                stack.callback(_watch(name, module, recorder))
        with torch.no_grad(), recorder:
            yield trace


def is_layer(module: nn.Module) -> bool:
    """Neurons, and whatever holds no other layer."""
    return holds_neurons(module) or next(module.children(), None) is None


def _watch(name: str, module: nn.Module, recorder: _Recorder) -> Callable[[], None]:
    """Write down calls of one layer, and nothing that happens inside of it."""
    waiting: list[Any] = []

    def before(_module: nn.Module, args: Any, kwargs: Any) -> None:
        recorder.inside += 1
        waiting.append((args, dict(kwargs)))

    def after(_module: nn.Module, _args: Any, _kwargs: Any, out: Any) -> None:
        recorder.inside -= 1
        args, kwargs = waiting.pop()
        if recorder.inside:
            return
        number = recorder.trace.counts.get(name, 0)
        recorder.trace.counts[name] = number + 1
        call = Call(name, module, None, args, kwargs, tensors_in((args, kwargs)), tensors_in(out), number)
        recorder.trace.add(call)

    first = module.register_forward_pre_hook(before, with_kwargs=True)
    last = module.register_forward_hook(after, with_kwargs=True)

    def remove() -> None:
        first.remove()
        last.remove()

    return remove


def tensors_in(value: Any) -> tuple[Tensor, ...]:
    """All tensors of nested lists, tuples and tables, in order."""
    if isinstance(value, Tensor):
        return (value,)
    if isinstance(value, dict):
        return tuple(tensor for part in value.values() for tensor in tensors_in(part))
    if isinstance(value, list | tuple):
        return tuple(tensor for part in value for tensor in tensors_in(part))
    return ()
