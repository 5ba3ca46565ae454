"""``bayesian``: a torch module with a posterior over its weights, for a training loop of one's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any, Literal

import torch
from torch import Tensor, nn

from axonnx.base.errors import AxonnxError
from axonnx.export.convert.importing import fill
from axonnx.export.convert.plan import SYNAPSES, Plan
from axonnx.export.convert.source import TorchSource, torch_source
from axonnx.models import (
    MEAN_FIELD,
    BinaryNeuron,
    GaussianPosterior,
    Network,
    Output,
    Regulariser,
    Sample,
    SpikingNetwork,
    Variant,
)
from axonnx.models.described import INPUT, DescribedBinaryNetwork, DescribedNetwork, Layer
from axonnx.models.synapses import Synapse
from axonnx.models.variant import BAYESIAN
from axonnx.models.variant import variant as named
from axonnx.train.objective import START, ascend, numbers

LIKELY_SIDES = (32, 28, 34, 16, 64, 8, 128, 48, 24, 40, 56, 96)  # of images, tried before all others
LARGEST_SIDE = 256
TARGET, RATE = 3.0, 0.05  # as in training from a configuration


class BayesianModule(nn.Module):
    """A network of ours that is called like any torch module: x in, logits [B, classes] out.

    In training mode neurons fire with the noise of the weights' posterior; in evaluation mode without noise.

    Attributes:
        network: The network that is trained and exported.
        shape: The shape of a sample's time step, or None if any shape may reach the network.
        output: What the layers did in the last pass; see `axonnx.models.Output`.
        repeats: Time steps in which one image is shown; 0 if each time step comes from outside.
        multipliers: The weight of each layer in `regulariser`.
    """

    def __init__(
        self,
        network: Network,
        shape: tuple[int, ...] | None = None,
        repeats: int = 0,
        source: TorchSource | None = None,
        sampling: bool = True,
    ) -> None:
        super().__init__()
        self.network, self.shape, self.repeats, self.source, self.sampling = network, shape, repeats, source, sampling
        self.output: Output | None = None
        self.multipliers: dict[str, float] = {}

    @property
    def spiking(self) -> bool:
        """Whether the network has time."""
        return isinstance(self.network, SpikingNetwork)

    def forward(self, x: Tensor) -> Tensor:
        """Logits [B, classes] of sequences [T, B, …], or of images [B, …] if the network has no time of its own."""
        fire = Sample() if self.training and self.sampling else MEAN_FIELD
        self.output = self.network(self.arranged(x), fire)
        return self.output.logits

    def arranged(self, x: Tensor) -> Tensor:
        """``x`` as the network takes it; another shape is refused."""
        lead = 2 if self.spiking and not self.repeats else 1
        fits = self.shape is None or tuple(x.shape[lead:]) == self.shape
        if self.shape is not None and self.shape[:-1] == (1,) * (len(self.shape) - 1):  # flattened at once
            fits = x.dim() > lead and prod(x.shape[lead:]) == prod(self.shape)
        if not fits:
            expected = ", ".join(["T", "B", *map(str, self.shape or ())][2 - lead :])
            raise AxonnxError(f"the network got an input of {list(x.shape)}; it takes [{expected}]")
        return x.expand(self.repeats, *x.shape) if self.repeats else x

    def get_extra_state(self) -> dict[str, float]:
        """Return the regulariser's weights, which a checkpoint keeps."""
        return dict(self.multipliers)

    def set_extra_state(self, state: Mapping[str, float]) -> None:
        """Take over the regulariser's weights of a checkpoint."""
        self.multipliers = dict(state)

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the last pass, whose tensors belong to a graph that cannot be copied."""
        return {**self.__dict__, "output": None}


def bayesian(
    module: nn.Module,
    classes: int | None = None,
    *,
    shape: Sequence[int] | None = None,
    variant: str | Variant = BAYESIAN,
    std: float | None = None,
) -> BayesianModule:
    """Make a copy of a torch module whose weights have a posterior: weights become its means, with σ beside them.

    The module has ``nn.Linear`` and ``nn.Conv2d`` layers, neurons of Axonnx, snnTorch, SpikingJelly or Norse, and the
    usual layers around them (pools, batch norm, dropout, flatten, sums, concatenations). It runs once on random input,
    so any wiring is possible. Batch norm becomes part of the weights before it, which have a scale and a bias for each
    channel from then on. Weights behind the last neurons are point estimates.

    Args:
        module: The module, trained or not; or a network of `axonnx.models`, which is used as it is.
        classes: How many classes it tells apart; refused if the module has another number of outputs.
        shape: Shape of one time step, or of one image: (channels, height, width), or (numbers,). It is found from the
            layers if they allow only one.
        variant: How the network is made noisy, as in `axonnx.models.VARIANTS`.
        std: σ·√fan_in of the weights at the start (default: the variant's, 0.5).

    Returns:
        A module that gives logits [B, classes] of x [T, B, …] (images: [B, …]).

    Raises:
        AxonnxError: If a layer has no exact form, or the shape of the input cannot be found.

    Examples:
        >>> import snntorch, torch
        >>> from torch import nn
        >>> module = nn.Sequential(nn.Linear(16, 8), snntorch.Leaky(beta=0.9, init_hidden=True), nn.Linear(8, 3))
        >>> net = axonnx.bayesian(module, classes=3)
        >>> net(torch.ones(5, 2, 16)).shape  # five time steps, two samples
        torch.Size([2, 3])
    """
    chosen = named(variant) if isinstance(variant, str) else variant
    if std is not None:
        chosen = replace(chosen, initial_std=std)
    if isinstance(module, BayesianModule):
        return module
    if isinstance(module, Network):
        return BayesianModule(module, sampling=chosen.fire == "sample" and _noisy(module))
    if chosen.normalisation != "scale":
        raise AxonnxError(
            f"the variant's normalisation is {chosen.normalisation!r}; the weights of a module go with 'scale'"
        )
    source = _source(module, None if shape is None else tuple(int(side) for side in shape))
    outputs = source.plan.shapes[source.plan.layers[-1].name][0]
    if classes not in (None, outputs):
        raise AxonnxError(f"{type(module).__name__} has {outputs} outputs; expected one for each of {classes} classes")
    network = network_of(source.plan, chosen)
    known = None if shape is None and len(_convolutions(module)) else source.plan.shapes[INPUT]
    return BayesianModule(network, known, source.repeats, source, chosen.fire == "sample")


def regulariser(
    net: nn.Module,
    weight: float | Literal["auto"] = "auto",
    kind: Regulariser | None = None,
    *,
    target: float = TARGET,
    rate: float = RATE,
) -> Tensor:
    """Return the regulariser of the last pass of ``net``, to be added to the loss.

    Args:
        net: What `bayesian` gave, or a module that holds it (a LightningModule, a wrapper of several devices).
        weight: λ; "auto" finds one for each layer while the network learns, as training from a configuration does.
        kind: Which term it is (default: the mean of ((h* − θ)/κ)² over neurons and time steps).
        target: For "auto": the mean square that no layer should exceed.
        rate: For "auto": how fast ln λ moves in a step.

    Raises:
        AxonnxError: If ``net`` has not run yet, or is no Bayesian module.

    Examples:
        >>> import torch
        >>> from axonnx.models import LIF
        >>> from torch import nn
        >>> net = axonnx.bayesian(nn.Sequential(nn.Linear(16, 8), LIF(), nn.Linear(8, 3)))
        >>> logits = net(torch.ones(5, 2, 16))
        >>> (nn.functional.cross_entropy(logits, torch.tensor([0, 2])) + axonnx.regulariser(net)).shape
        torch.Size([])
    """
    inner = next((part for part in net.modules() if isinstance(part, BayesianModule)), None)
    if inner is None:
        raise AxonnxError(f"{type(net).__name__} has no regulariser; give the module that axonnx.bayesian returns")
    if inner.output is None:
        raise AxonnxError("the regulariser is that of a pass; call net(x) first")
    kind, output = kind or Regulariser(), inner.output
    if weight != "auto":
        return weight * kind(inner.network, output)
    terms = kind.terms(inner.network, output)
    value = kind.added(terms, output.logits, {name: inner.multipliers.get(name, START) for name in terms})
    if inner.training:
        squares = {name: float(each) for name, each in kind.mean_squares(inner.network, output).items()}
        inner.multipliers = numbers(ascend(inner.multipliers, squares, target, rate))
    return value


regularizer = regulariser


def network_of(plan: Plan, variant: Variant) -> Network:
    """Return the plan's layers with its numbers; without time if all its neurons have none."""
    binary = bool(plan.made) and all(isinstance(neurons, BinaryNeuron) for neurons in plan.made.values())
    binary = binary and all(layer.kind != "neurons" or layer.name in plan.made for layer in plan.layers)
    plan = _with_readout(plan) if binary else plan
    points = _points(plan)
    layers = [replace(layer, options=points.get(layer.name, layer.options)).as_table() for layer in plan.layers]
    network = fill((DescribedBinaryNetwork if binary else DescribedNetwork)(layers, variant, plan.made), plan)
    for name in plan.diagonal:  # what the module does not connect stays unconnected
        posterior: Any = network.get_submodule(f"layers.{name}.recurrent.posterior")
        posterior.mask = torch.eye(len(posterior.raw_mean))
    return network


def _points(plan: Plan) -> dict[str, Any]:
    """Options of the point estimates: synapses that no neuron hears, and zeros that only carry a bias."""
    heard: set[str] = set()  # by neurons, directly or through other layers
    biases = {bias for _, bias in plan.merged.values()}
    for layer in reversed(plan.layers):
        if layer.kind == "neurons" or layer.name in heard:
            heard |= set(layer.of)
    return {
        layer.name: {**layer.options, "point": True}
        for layer in plan.layers
        if layer.kind in SYNAPSES and (layer.name not in heard or layer.name in biases)
    }


def _with_readout(plan: Plan) -> Plan:
    """Return the plan of a network without time: its last weights are its read-out."""
    *before, last, _ = plan.layers
    if last.kind != "linear":
        raise AxonnxError(f"the last layer is {last.name!r} ({last.kind}); a network without time ends in nn.Linear")
    options = {key: last.options[key] for key in ("inputs", "outputs")}
    tensors, key = dict(plan.tensors), f"layers.{last.name}."
    tensors |= {key + "weight": tensors[key + "posterior.raw_mean"], key + "bias": tensors[key + "norm.bias"]}
    return replace(plan, layers=[*before, Layer(last.name, "linear_readout", last.of, options)], tensors=tensors)


def _source(module: nn.Module, shape: tuple[int, ...] | None) -> TorchSource:
    wrong = next((name for name, part in module.named_modules() if isinstance(part, Synapse)), None)
    if wrong is not None:
        raise AxonnxError(
            f"{wrong!r} is a layer of axonnx.models; in a plain module use nn.Linear and nn.Conv2d, or write the whole "
            f"network as an axonnx.models.SpikingNetwork"
        )
    if shape is not None:
        return torch_source(module, (1,) * (3 - len(shape)) + shape if len(shape) != 2 else (shape[0], 1, shape[1]))
    if not _convolutions(module):
        first = next((part for part in module.modules() if isinstance(part, nn.Linear)), None)
        if first is None:
            raise AxonnxError(f"{type(module).__name__} has no nn.Linear and no nn.Conv2d, so nothing to learn")
        return torch_source(module, (1, 1, first.in_features))
    return _of_any_side(module)


def _of_any_side(module: nn.Module) -> TorchSource:
    """Run the module on images of the first size that it takes; every size that it takes has the same layers."""
    first = _convolutions(module)[0]
    free = any(isinstance(part, nn.AdaptiveAvgPool2d) for part in module.modules())
    if isinstance(first, nn.Conv2d) and not free and any(isinstance(part, nn.Linear) for part in module.modules()):
        for side in (*LIKELY_SIDES, *range(4, LARGEST_SIDE + 1)):
            try:
                return torch_source(module, (first.in_channels, side, side))
            except AxonnxError as fault:
                if "runs neither on sequences" not in str(fault):
                    raise
    raise AxonnxError(
        f"{type(module).__name__}: the shape of its input cannot be told from its layers; give "
        f"shape=(channels, height, width)"
    )


def _convolutions(module: nn.Module) -> list[nn.Conv1d | nn.Conv2d]:
    return [part for part in module.modules() if isinstance(part, nn.Conv1d | nn.Conv2d)]


def _noisy(network: Network) -> bool:
    return any(part.log_std is not None for part in network.modules() if isinstance(part, GaussianPosterior))
