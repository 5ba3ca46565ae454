"""What a source comes to: layers of ours as data, their numbers, and what was assumed on the way."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor, nn

from axonnx.base.errors import AxonnxError
from axonnx.export.convert.neuron import Neuron, uniform, wide
from axonnx.models.described import INPUT, Layer
from axonnx.models.pooling import FilledPool2d

SYNAPSES = ("linear", "conv2d")
Rule = Literal["spike count", "sum", "mean", "last", "maximum"]
POOLS = ("max_pool", "average_pool", "sum_pool", "filled_pool")


@dataclass
class Plan:
    """Layers in order, what each one gives, and the tensors of their state by full name."""

    layers: list[Layer] = field(default_factory=list)
    tensors: dict[str, Tensor] = field(default_factory=dict)
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)  # of what a layer gives, without the batch
    currents: set[str] = field(default_factory=set)  # those that give currents, not spikes
    sources: dict[str, str] = field(default_factory=dict)  # layer -> what the source calls it
    gains: dict[str, float] = field(default_factory=dict)  # synapse -> what its weights were multiplied with
    factors: dict[str, float] = field(default_factory=dict)  # layer -> what its values lack; weights behind it have it
    taken_in: dict[str, float] = field(default_factory=dict)  # synapse -> the factor that its weights have taken in
    merged: dict[str, tuple[str, str | None]] = field(default_factory=dict)  # synapse -> the source's second, its bias
    gone: dict[str, str] = field(default_factory=dict)  # layer that was merged -> the source of the other
    folded: dict[str, list[str]] = field(default_factory=dict)  # synapse -> batch norms in its weights
    exact: set[str] = field(default_factory=set)  # neurons whose gain is a power of two, so that it rounds nothing
    diagonal: set[str] = field(default_factory=set)  # neurons of which each hears itself alone
    made: dict[str, nn.Module] = field(default_factory=dict)  # layers that are used as they are
    notes: list[str] = field(default_factory=list)
    rule: Rule | None = None  # how the source makes one output of those of all time steps, if that shows
    read: int = 0  # which of the values that the last layer of neurons returns is the output

    def layer(self, name: str) -> Layer:
        """Return the layer of that name."""
        if name in self.gone:
            raise AxonnxError(
                f"{self.sources[name]}: is heard twice, by {self.gone[name]!r} and by another; an integrator between "
                f"weights has them alone behind it"
            )
        return next(layer for layer in self.layers if layer.name == name)

    def add(self, source: str, kind: str, of: tuple[str, ...], shape: tuple[int, ...], **options: Any) -> str:
        """One more layer; its name."""
        for each in set(of) - {INPUT}:
            self.layer(each)  # refused where it is gone
        name = self._free(source or kind)
        self.layers.append(Layer(name, kind, of, options))
        self.shapes[name] = shape
        self.sources[name] = source
        keeps = kind in ("flatten", "add", "dropout", *POOLS)
        if kind in (*SYNAPSES, "leak") or (keeps and all(each in self.currents for each in of)):
            self.currents.add(name)
        lacking = {self.factors.get(each, 1.0) for each in of}
        if lacking != {1.0} and kind not in SYNAPSES:
            if len(lacking) != 1 or kind not in ("flatten", "dropout", "delay", *POOLS):
                raise AxonnxError(
                    f"{source or kind}: hears averages over sides that are no powers of two, whose factor goes into "
                    f"weights; put weights right behind the pool, or pool over powers of two"
                )
            self.factors[name] = lacking.pop()
        return name

    def pool(self, source: str, how: str, of: str, window: tuple[int, int]) -> str:
        """Add a pool over windows side by side; what they do not cover is left out, as torch does.

        A mean over sides that are no powers of two is a sum over windows that zeros fill up to the next ones, and the
        rest of the factor goes into the weights behind it.
        """
        shape = self.shapes[of]
        out = (shape[0], shape[1] // window[0], shape[2] // window[1])
        if how == "max_pool" or not any(side & (side - 1) for side in window):
            return self.add(source, how, (of,), out, window=list(window))
        if of in self.currents:
            raise AxonnxError(
                f"{source or how}: averages currents over {window[0]} × {window[1]}, which is not exact in float32; "
                f"pool over powers of two, or the spikes of the neurons behind it"
            )
        name = self.add(source, "filled_pool", (of,), out, window=list(window))
        made = FilledPool2d(*window)
        times = made.factor * (window[0] * window[1] if how == "sum_pool" else 1.0)
        self.factors[name] = self.factors.get(name, 1.0) * times
        self.notes.append(f"{source or how}: the factor {times:.6g} of its means stands in the weights behind it")
        return name

    def synapse(
        self, source: str, weight: Tensor, bias: Tensor | None, of: str, shape: tuple[int, ...], **how: Any
    ) -> str:
        """Weights, with zeros where a source has no bias."""
        for what, given in (("weights", weight), ("bias", bias)):
            if given is not None and not bool(torch.isfinite(given).all()):
                bad = int((~torch.isfinite(given)).sum())
                raise AxonnxError(
                    f"{source}: {bad} of its {given.numel()} {what} are NaN or infinite; expected finite numbers. "
                    f"Train the network again with a lower learning rate, or save it again"
                )
        if of in self.currents:
            return through_integrator(self, source, weight, bias, of)
        if of in self.factors:
            weight = (weight.detach().double() * self.factors[of]).float()
        outputs, inputs = weight.shape[0], weight.shape[1] * int(how.get("groups", 1))
        kind = "linear" if weight.dim() == 2 else "conv2d"
        if kind == "conv2d":
            how["kernel"] = list(weight.shape[2:])
        name = self.add(source, kind, (of,), shape, inputs=inputs, outputs=outputs, **how)
        key = f"layers.{name}."
        self.tensors[key + "posterior.raw_mean"] = weight.detach().float().clone()
        self.tensors[key + "norm.bias"] = torch.zeros(outputs) if bias is None else bias.detach().float().clone()
        self.tensors[key + "norm.scale"] = torch.ones(outputs)
        if of in self.factors:
            self.taken_in[name] = self.factors[of]
        return name

    def fold(self, name: str, scale: Tensor, shift: Tensor) -> None:
        """Put a (W x + b) + s into the weights themselves."""
        weight, bias = (self.tensors[f"layers.{name}.{part}"] for part in ("posterior.raw_mean", "norm.bias"))
        rows = scale.double().reshape(-1, *(1,) * (weight.dim() - 1))
        weight.copy_((weight.double() * rows).float())
        bias.copy_((bias.double() * scale.double() + shift.double()).float())

    def neurons(self, source: str, neuron: Neuron, of: str) -> str:
        """Add a layer of neurons; a leaky integrator becomes a leaky current, or two if it has a synaptic one."""
        shape = self.shapes[of]
        self.notes += neuron.notes
        if neuron.bias is not None:
            self._add_bias(source, of, neuron.bias)
        if not neuron.fires:
            return self._integrator(source, neuron, of)
        constants = neuron.constants(source)
        recurrent = None if neuron.recurrent is None else _square(neuron.recurrent, shape, source)
        options: dict[str, Any] = {"constants": _told(constants, shape, source)}
        if recurrent is not None:
            options["recurrent"] = len(recurrent)
        if neuron.synaptic_decay is not None:
            options["synaptic"] = True
        name = self.add(source, "neurons", (of,), shape, **options)
        if bool((torch.frexp(wide(neuron.gain)).mantissa == 0.5).all()):
            self.exact.add(name)
        for key, value in constants.items():
            self.tensors[f"layers.{name}.{key}"] = _fitting(value, shape, source)
        if recurrent is not None:
            self.tensors[f"layers.{name}.recurrent.posterior.raw_mean"] = recurrent
            if neuron.recurrent is not None and neuron.recurrent.dim() < 2:
                self.diagonal.add(name)
        return name

    def own(self, source: str, neurons: nn.Module, of: str) -> str:
        """Add a layer of our own neurons, with all that it learns."""
        name = self.add(source, "neurons", (of,), self.shapes[of])
        self.made[name] = neurons
        return name

    def readout(self, of: str, decay: float = 0.0) -> None:
        """Read out the mean over time of what a layer gives; several positions are made flat first."""
        if len(self.shapes[of]) != 1:
            of = self.add("", "flatten", (of,), (int(torch.Size(self.shapes[of]).numel()),))
        name = self.add("readout", "readout", (of,), self.shapes[of], decay=decay)
        self.tensors[f"layers.{name}.decay"] = torch.tensor(decay)

    @property
    def reads_spikes(self) -> bool:
        """Whether spikes are read out, and not a membrane."""
        return self.layers[-1].of[0] not in self.currents

    def decide(self, rule: Rule, scale: float, fitted: int) -> None:
        """Put the decision rule into the read-out; outputs times ``scale`` are logits, fitted on so many samples."""
        *before, last = self.layers
        options = {**last.options, "rule": rule, "scale": scale, "fitted": fitted}
        self.layers = [*before, replace(last, options=options)]

    def _integrator(self, source: str, neuron: Neuron, of: str) -> str:
        """v' = β v + g i: the gain goes into the weights of the one synapse before it."""
        if of not in self.currents:
            raise AxonnxError(
                f"{source}: a leaky integrator hears {of!r}, which gives no current; put weights before it"
            )
        gain, synapse = uniform(neuron.gain, source, "its gain"), self.layer(of)
        if gain != 1.0:
            if synapse.kind not in SYNAPSES:
                raise AxonnxError(f"{source}: its gain of {gain:g} goes into weights, and {of!r} before it has none")
            self.fold(of, torch.full((int(synapse.options["outputs"]),), gain), torch.zeros(()))
            self.gains[of] = gain
        found = of
        decays = [neuron.decay] if neuron.synaptic_decay is None else [neuron.synaptic_decay, neuron.decay]
        for decay in decays:
            value = float(torch.tensor(uniform(decay, source, "its decay"), dtype=torch.float32))
            found = self.add(source, "leak", (found,), self.shapes[of], decay=value)
            self.tensors[f"layers.{found}.decay"] = torch.tensor(value)
        return found

    def _add_bias(self, source: str, of: str, bias: Tensor) -> None:
        synapse = self.layer(of)
        if synapse.kind not in SYNAPSES:
            raise AxonnxError(f"{source}: the bias of its recurrent weights needs a synapse right before it")
        self.fold(of, torch.ones(int(synapse.options["outputs"])), bias.double())
        self.folded.setdefault(of, []).append(source + ".recurrent")

    def _free(self, source: str) -> str:
        base = re.sub(r"\W", "_", source)
        base = base if base and not base[0].isdigit() else f"layer_{base}".rstrip("_")
        taken = {INPUT, *self.gone, *(layer.name for layer in self.layers)}
        name, number = base, 1
        while name in taken or hasattr(nn.ModuleDict, name):
            number += 1
            name = f"{base}_{number}"
        return name


def _square(weight: Tensor, shape: tuple[int, ...], source: str) -> Tensor:
    """Recurrent weights [n, n]; of one number for each neuron a diagonal."""
    if len(shape) != 1:
        raise AxonnxError(
            f"{source}: recurrent neurons in maps of {list(shape)}; only flat layers hear themselves here"
        )
    weight = weight.detach().float()
    return weight.clone() if weight.dim() == 2 else torch.diag(weight.flatten().expand(shape[0]).clone())


def _fitting(value: Tensor, shape: tuple[int, ...], source: str) -> Tensor:
    """Return a constant for all neurons, or in a shape that broadcasts to them."""
    if value.numel() == 1:
        return value.reshape(())
    if value.dim() > len(shape) and value.shape[: value.dim() - len(shape)].numel() == 1:
        value = value.reshape(value.shape[value.dim() - len(shape) :])
    try:
        fits = torch.broadcast_shapes(value.shape, shape) == torch.Size(shape)
    except RuntimeError:
        fits = False
    if not fits:
        raise AxonnxError(f"{source}: constants of {list(value.shape)} do not fit neurons of {list(shape)}")
    return value.clone()


def _told(constants: Mapping[str, Tensor], shape: tuple[int, ...], source: str) -> dict[str, Any]:
    """Constants as a description has them: numbers, or shapes where they differ from neuron to neuron."""
    fitting = {name: _fitting(value, shape, source) for name, value in constants.items()}
    return {name: float(wide(v)) if v.dim() == 0 else list(v.shape) for name, v in fitting.items()}


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
    """Return what integrators hear, and the integrators, the last one first."""
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
    """Note for a merged synapse what was done to the weights that became part of it."""
    plan.sources[after] = plan.sources[before]
    if before in plan.gains:
        plan.gains[after] = plan.gains.pop(before)
    if before in plan.folded:
        plan.folded[after] = plan.folded.pop(before)
