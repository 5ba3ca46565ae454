"""A network that data describes: layers by name, kind and what they hear. Imported networks are these.

Nothing of a description is code, so a run folder of such a network can be opened without running anything of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import torch
from torch import Tensor, nn

from axonnx.models.delays import DelayLine
from axonnx.models.general import Adaptation, DirectReadout, Dynamics, GeneralLIF, LeakyCurrent
from axonnx.models.maths.current import Current
from axonnx.models.maths.estimators import SurrogateGradient
from axonnx.models.network import BinaryNetwork, Network, SpikingNetwork
from axonnx.models.neurons import LinearReadout
from axonnx.models.pooling import AveragePool2d, FilledPool2d, MaxPool2d, over_maps, whole_windows
from axonnx.models.run import Run
from axonnx.models.synapses import Conv2d, Linear
from axonnx.models.variant import BAYESIAN, Variant

Value = Tensor | Current  # what passes between layers: spikes and counts, or a current
INPUT = "input"
READOUTS = ("readout", "linear_readout")


@dataclass(frozen=True)
class Layer:
    """One layer: ``of`` names what it hears, layers before it or ``input``; ``options`` are its kind's."""

    name: str
    kind: str
    of: tuple[str, ...]
    options: Mapping[str, Any] = field(default_factory=dict)

    def as_table(self) -> dict[str, Any]:
        """Return the layer as a configuration states it."""
        return {"name": self.name, "kind": self.kind, "of": list(self.of), **self.options}


class _Described(Network):
    """These layers, one after the other; the last one is the read-out. ``made`` has layers that exist already."""

    def __init__(
        self,
        layers: Sequence[Mapping[str, Any]],
        variant: Variant = BAYESIAN,
        made: Mapping[str, nn.Module] | None = None,
    ) -> None:
        super().__init__()
        self.description = read_layers(layers)
        self.layers, known = nn.ModuleDict(), made or {}
        for layer in self.description:
            try:
                self.layers[layer.name] = known.get(layer.name) or KINDS[layer.kind](variant, **layer.options)
            except (TypeError, KeyError) as fault:
                raise ValueError(f"layer {layer.name!r} ({layer.kind}) has wrong options: {fault}") from None

    def compute(self, x: Tensor, run: Run) -> Tensor:
        """Run every layer on what it hears."""
        values: dict[str, Value] = {INPUT: x}
        for layer in self.description:
            given = [values[name] for name in layer.of]
            values[layer.name] = _call(layer.kind, self.layers[layer.name], given, run)
        return cast(Tensor, values[self.description[-1].name])


class DescribedNetwork(_Described, SpikingNetwork):
    """A spiking network of described layers."""


class DescribedBinaryNetwork(_Described, BinaryNetwork):
    """A binary network of described layers."""


def read_layers(tables: Sequence[Mapping[str, Any]]) -> list[Layer]:
    """Read layers from the tables of a configuration; refuse by name what does not fit."""
    known, layers = {INPUT}, []
    for number, table in enumerate(tables):
        rest = dict(table)
        try:
            name, kind, of = str(rest.pop("name")), str(rest.pop("kind")), tuple(rest.pop("of"))
        except KeyError as missing:
            raise ValueError(
                f"layers[{number}] has no {missing}; a layer has a name, a kind and what it hears"
            ) from None
        if kind not in KINDS:
            raise ValueError(f"layer {name!r} is of the kind {kind!r}; known are {', '.join(KINDS)}")
        if not name.isidentifier() or name in known or hasattr(nn.ModuleDict, name):
            raise ValueError(f"a layer is called {name!r}; names are words of letters and digits, each once")
        unheard = [each for each in of if each not in known]
        if unheard or not of:
            raise ValueError(f"layer {name!r} hears {unheard or 'nothing'}; before it there are {', '.join(known)}")
        known.add(name)
        layers.append(Layer(name, kind, of, rest))
    if not layers or layers[-1].kind not in READOUTS:
        raise ValueError(f"the last layer must be of the kind {' or '.join(map(repr, READOUTS))}")
    return layers


class Flat(nn.Module):
    """Maps as one row of numbers."""

    def value(self, x: Value, run: Run) -> Value:
        """Return [(T,) B, …] as [(T,) B, n]."""
        first = 2 if run.sequence else 1
        return x.each(lambda part: part.flatten(first)) if isinstance(x, Current) else x.flatten(first)


class Pool(nn.Module):
    """A mean, a sum or a maximum over windows that stand side by side; what they do not cover is left out."""

    def __init__(self, how: str, window: Sequence[int]) -> None:
        super().__init__()
        self.how, self.window = how, (int(window[0]), int(window[1]))
        square = self.window[0] == self.window[1]
        self.mean = AveragePool2d(self.window[0]) if how in ("mean", "sum") and square else None
        self.other = {"max": MaxPool2d(self.window), "filled": FilledPool2d(*self.window)}.get(how)

    def value(self, x: Value, run: Run) -> Value:
        """Return the pooled value."""
        if isinstance(self.other, MaxPool2d) and isinstance(x, Current):
            return self.other.current(x)
        if self.other is not None and isinstance(x, Tensor):
            return cast(Tensor, self.other(x))
        times = self.window[0] * self.window[1] if self.how == "sum" else 1
        if isinstance(x, Current):
            if self.mean is None:
                raise ValueError(f"a mean of currents over {list(self.window)}; windows of currents are squares")
            pooled = self.mean.current(x.each(lambda part: whole_windows(part, self.window)))
            return pooled if times == 1 else pooled.each(lambda part: part * times)
        out = over_maps(x, lambda maps: nn.functional.avg_pool2d(whole_windows(maps, self.window), self.window))
        return out if times == 1 else out * times


class Sum(nn.Module):
    """Currents with currents, or spikes with spikes, added up."""


class Join(nn.Module):
    """Spikes side by side: channels of maps, or neurons."""


def _call(kind: str, module: nn.Module, given: list[Value], run: Run) -> Value:
    """Call a layer by its kind, because collapsed layers are of other classes."""
    x = given[0]
    if isinstance(module, Sum | Join):
        return _together(module, given)
    if isinstance(module, Flat | Pool):
        return module.value(x, run)
    if kind in ("neurons", "leak"):
        x = x if isinstance(x, Current) else Current(x)
    if kind == "dropout":
        return cast(Value, x.each(module) if isinstance(x, Current) else module(x))
    return cast(Value, module(x, run))


def _together(module: nn.Module, given: list[Value]) -> Value:
    plain = [value for value in given if isinstance(value, Tensor)]
    currents = [value for value in given if isinstance(value, Current)]
    if plain and currents:
        raise ValueError("a layer hears spikes and currents at once; put a synapse before it")
    if isinstance(module, Sum):
        total: Value = given[0]
        for value in given[1:]:
            total = total + value  # type: ignore[operator]
        return total
    if currents:
        raise ValueError("spikes are joined, not currents")
    return torch.cat(plain, -3 if plain[0].dim() > 3 else -1)


def _neurons(
    variant: Variant,
    *,
    synaptic: bool = False,
    recurrent: int | None = None,
    constants: Mapping[str, Any] | None = None,
) -> GeneralLIF:
    """Make neurons; constants are numbers, or the shapes of those that a checkpoint holds."""
    given = dict(constants or {})
    adapts = any(name in given for name in Adaptation._fields)
    unknown = set(given) - {*Dynamics._fields, *Adaptation._fields, "synaptic_decay"}
    if unknown:
        raise TypeError(f"neurons have no constant {sorted(unknown)[0]!r}")
    return GeneralLIF(
        Dynamics(*(constant(given.get(name, 0.0)) for name in Dynamics._fields)),
        variant,
        synaptic_decay=constant(given.get("synaptic_decay", 0.0)) if synaptic else None,
        adaptation=Adaptation(*(constant(given.get(name, 0.0)) for name in Adaptation._fields)) if adapts else None,
        recurrent=recurrent,
    )


def constant(given: float | Sequence[int]) -> Tensor:
    """Return a number, or zeros of a shape that are filled later."""
    return torch.zeros(tuple(given)) if isinstance(given, Sequence) else torch.tensor(float(given))


def _pool(how: str) -> Callable[..., nn.Module]:
    def make(_variant: Variant, *, window: Sequence[int]) -> nn.Module:
        if how in ("mean", "sum") and any(side < 1 or side & (side - 1) for side in window):
            raise ValueError(f"a window of {list(window)}; a mean over sides that are no powers of two is not exact")
        return Pool(how, window)

    return make


def _conv2d(
    variant: Variant,
    *,
    inputs: int,
    outputs: int,
    kernel: Sequence[int],
    stride: Sequence[int] = (1, 1),
    padding: Sequence[int] = (0, 0),
    dilation: Sequence[int] = (1, 1),
    groups: int = 1,
    point: bool = False,
) -> Conv2d:
    sides = {"stride": stride, "padding": padding, "dilation": dilation}
    pairs: dict[str, Any] = {name: (int(side[0]), int(side[1])) for name, side in sides.items()}
    return Conv2d(inputs, outputs, (int(kernel[0]), int(kernel[1])), _weights(variant, point), groups=groups, **pairs)


def _weights(variant: Variant, point: bool) -> Variant:
    """Return a variant of point estimates for weights that no neuron hears: logits have no noise that trains a σ."""
    return replace(variant, spread="none", kl=False, estimator=SurrogateGradient()) if point else variant


KINDS: dict[str, Callable[..., nn.Module]] = {
    "linear": lambda variant, *, inputs, outputs, point=False: Linear(inputs, outputs, _weights(variant, point)),
    "conv2d": _conv2d,
    "neurons": _neurons,
    "leak": lambda _variant, *, decay: LeakyCurrent(constant(decay)),
    "delay": lambda _variant, *, delays: DelayLine(delays),
    "flatten": lambda _variant: Flat(),
    "average_pool": _pool("mean"),
    "sum_pool": _pool("sum"),
    "max_pool": _pool("max"),
    "filled_pool": _pool("filled"),
    "dropout": lambda _variant, *, p=0.5: nn.Dropout(p),
    "add": lambda _variant: Sum(),
    "join": lambda _variant: Join(),
    "readout": lambda _variant, *, decay=0.0, **decision: DirectReadout(constant(decay), **decision),
    "linear_readout": lambda _variant, *, inputs, outputs: LinearReadout(inputs, outputs),
}


def numbers_in(layers: Sequence[Layer]) -> int:
    """Count the weights and constants of these layers, before any of them is made."""
    count = 0
    for layer in layers:
        o = layer.options
        if layer.kind in ("linear", "conv2d"):
            count += int(o["outputs"]) * (int(o["inputs"]) + 2) * math.prod(int(side) for side in o.get("kernel", ()))
        constants = [*dict(o.get("constants", {})).values(), o.get("decay", 0.0), [o.get("recurrent") or 0] * 2]
        count += sum(math.prod(int(side) for side in each) for each in constants if isinstance(each, Sequence))
    return count
