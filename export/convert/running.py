"""A source network run as its authors would, step by step or whole, and the calls that it makes: layers and functions.

The network runs on a few steps of input. What it calls is written down with the tensors that go in and out, so any
wiring shows, however the network is written; nothing of its code is read.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from axonnx.base.errors import AxonnxError
from axonnx.export.convert.known_neurons import holds_neurons


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
        """Return the last call that made a tensor; None of what was there before."""
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


Layout = Literal["maps", "line", "flat"]
TRIAL = 3  # steps, of two samples
UNKNOWN = -1


@dataclass(frozen=True)
class Form:
    """How a network is called: with whole sequences [T, B, …] or one step at a time; maps, lines or rows of numbers."""

    sequence: bool
    layout: Layout
    output: int = 0  # which of the values it returns has the classes
    repeats: int = 0  # time steps in which a network by itself shows one image [B, …]; 0: it does not

    def shaped(self, x: Tensor) -> Tensor:
        """[T, B, C, H, W] as the network takes it."""
        return {"maps": x, "line": x.squeeze(-2) if x.shape[-2] == 1 else x, "flat": x.flatten(2)}[self.layout]


@dataclass
class Recorded:
    """A run: its calls, its output of all steps (or of the sum over them), and the input as it went in."""

    trace: Trace
    outputs: list[Tensor]
    x: Tensor
    spikes: dict[str, Tensor]


def reset(network: nn.Module) -> None:
    """Every state to where it begins."""
    for module in network.modules():
        for name in ("reset_mem", "reset") if holds_neurons(module) else ():
            method = getattr(module, name, None)
            if callable(method):
                method()
                break


def run(network: nn.Module, x: Tensor, form: Form) -> Recorded:
    """Run ``network`` on [T, B, C, H, W], from rest."""
    given = form.shaped(x)
    reset(network)
    with recorded(network) as trace:
        if form.repeats:
            _check_image(x, form)
            outputs = [_chosen(network(given[0]), form.output)]
        elif form.sequence:
            out = network(given)
            outputs = [_chosen(out, form.output)]
        else:
            outputs = list(_steps(network, given, form.output))
    steps = len(x) if form.repeats != UNKNOWN else _own_steps(network, trace)
    return Recorded(trace, outputs, given, _spikes(network, trace, steps))


def _check_image(x: Tensor, form: Form) -> None:
    """Refuse steps that differ from those in which the network shows one image by itself."""
    if form.repeats != UNKNOWN and (len(x) != form.repeats or not torch.equal(x, x[:1].expand_as(x))):
        raise AxonnxError(
            f"the network shows one image in {form.repeats} time steps by itself; the data has {len(x)} steps, or "
            f"images that change. Give images, each repeated {form.repeats} times",
            settings={"data.repeat": form.repeats},
        )


def _own_steps(network: nn.Module, trace: Trace) -> int:
    """Return the number of time steps that the network ran by itself."""
    counts = {len(trace.of(name)) for name, module in network.named_modules() if holds_neurons(module)} - {0}
    if len(counts) != 1 or counts == {1}:
        raise AxonnxError(f"its neurons run {sorted(counts)} times on one image; expected each as often")
    return counts.pop()


def _steps(network: nn.Module, x: Tensor, output: int) -> Iterator[Tensor]:
    states: tuple[Any, ...] = _first_states(network)
    places = _places(network)
    for step in x.unbind(0):
        out = network(step, *states)
        yield _chosen(out, output)
        rest = tuple(out[1:]) if isinstance(out, tuple | list) else ()
        if places > 1 and len(rest) != places - 1:
            raise AxonnxError(
                f"{type(network).__name__}.forward takes {places - 1} states and returns {len(rest)} values beside its "
                f"first; return the output and then every state, in the order of the arguments"
            )
        states = rest if places > 1 else ()


def _parameters(network: nn.Module) -> list[inspect.Parameter]:
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [p for p in inspect.signature(network.forward).parameters.values() if p.kind in kinds]


def _places(network: nn.Module) -> int:
    return len(_parameters(network))


def _first_states(network: nn.Module) -> tuple[Any, ...]:
    """Nothing where a state may be left out; else an empty tensor, which snnTorch makes zeros of."""
    required = [p for p in _parameters(network)[1:] if p.default is inspect.Parameter.empty]
    return tuple(torch.zeros(0) for _ in required)


def _chosen(out: Any, number: int) -> Tensor:
    values = out if isinstance(out, tuple | list) else (out,)
    if not 0 <= number < len(values) or not isinstance(values[number], Tensor):
        found = tensors_in(out)
        raise AxonnxError(f"the network returns {len(found)} tensors, and value number {number} is none of them")
    value: Tensor = values[number]
    return value.to_dense() if value.is_sparse else value


def _spikes(network: nn.Module, trace: Trace, steps: int) -> dict[str, Tensor]:
    """Return what each layer of neurons gave, [T, B, …], by its name in the source."""
    found = {}
    for name, module in network.named_modules():
        if holds_neurons(module) and (calls := trace.of(name)):
            first = [call.outputs[0] for call in calls]
            found[name] = first[0] if len(first) == 1 else torch.stack(first)
            if len(found[name]) != steps:
                raise AxonnxError(
                    f"{name}: gave {len(found[name])} outputs in {steps} time steps; expected one in each"
                )
    return found


def find_form(network: nn.Module, shape: tuple[int, ...], output: int = 0) -> tuple[Form, Recorded]:
    """How this network is called, found by trying; and a run on a few steps of random input."""
    random = torch.Generator().manual_seed(0)
    x = torch.randint(0, 2, (TRIAL, 2, *shape), generator=random).float()
    layouts: list[Layout] = ["maps", "line", "flat"] if shape[1] == 1 else ["maps", "flat"]
    if shape[0] == shape[1] == 1:
        layouts = ["flat"]
    faults = []
    for layout in layouts:
        for sequence in (True, False):
            form = Form(sequence, layout, output)
            try:
                seen = run(network, x, form)
            except AxonnxError as fault:
                faults.append(fault)
                continue
            except Exception as fault:
                faults.append(AxonnxError(f"{type(fault).__name__}: {fault}"))
                continue
            if sequence and not _in_time(network, seen.trace):
                continue  # a step that took the sequence for a batch
            return form, seen
    for layout in layouts:  # images, for which the network has a loop of its own
        try:
            seen = run(network, x, Form(True, layout, output, UNKNOWN))
        except Exception as fault:
            faults.append(AxonnxError(str(fault)))
            continue
        return Form(True, layout, output, _own_steps(network, seen.trace)), seen
    told = "; ".join(dict.fromkeys(str(fault).splitlines()[0] for fault in faults))
    raise AxonnxError(
        f"{type(network).__name__} runs neither on sequences [T, B, …] nor step by step on [B, …] nor on images, with "
        f"samples of {list(shape)}: {told}"
    )


def _in_time(network: nn.Module, trace: Trace) -> bool:
    """Whether its neurons saw every step, or a whole sequence that they take for one."""
    kinds = {name: module for name, module in network.named_modules() if holds_neurons(module)}
    for name, module in kinds.items():
        calls = len(trace.of(name))
        whole = getattr(module, "step_mode", None) == "m" or type(module).__name__ in (
            "LIF",
            "LIFBox",
            "LI",
            "LIFRecurrent",
        )
        if calls not in (0, 1 if whole else TRIAL):
            return False
    return True
