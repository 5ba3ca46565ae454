"""A network that someone else wrote, tried before it is trained: its layers are ours, and its wiring runs."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from axonnx.models.general import DirectReadout
from axonnx.models.maths.posterior import GaussianPosterior
from axonnx.models.network import Network, SpikingNetwork
from axonnx.models.neurons import LeakyReadout, LinearReadout, Neurons
from axonnx.models.normalisation import BatchNorm, ChannelScale
from axonnx.models.run import State

OURS = (GaussianPosterior, Neurons, LeakyReadout, LinearReadout, BatchNorm, ChannelScale)  # what has parameters
READOUTS = (LeakyReadout, LinearReadout, DirectReadout)
INSTEAD: dict[type[nn.Module], str] = {
    nn.Linear: "axonnx.models.Linear, called as self.layer(x, run)",
    nn.Conv2d: "axonnx.models.Conv2d, called as self.layer(x, run)",
    nn.BatchNorm1d: "the variant's normalisation, which is part of axonnx.models.Linear",
    nn.BatchNorm2d: "the variant's normalisation, which is part of axonnx.models.Conv2d",
}
KNOWN = (
    *(nn.ModuleList, nn.ModuleDict, nn.Sequential, nn.Identity, nn.Flatten, nn.AvgPool2d, nn.MaxPool2d),
    *(nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d),
)
LAYERS = "layers of axonnx.models: Linear, Conv2d, LIF, BinaryNeuron, LeakyReadout, LinearReadout"


def check_network(network: Network, shape: tuple[int, ...], classes: int) -> None:
    """Refuse (``ValueError``) what could be trained, but neither read out nor exported; ``shape`` is a sample's."""
    check_layers(network)
    only_readout(network)
    spiking = isinstance(network, SpikingNetwork)
    x = torch.randint(0, 2, (3, 2, *shape) if spiking else (2, *shape), generator=torch.Generator().manual_seed(0))
    trial = copy.deepcopy(network).double().eval()  # in float64 a tie of roundings is out of the question
    with torch.no_grad():
        logits = _logits(trial, x.double())
        if logits.shape != (2, classes):
            raise ValueError(
                f"compute() gives logits of {list(logits.shape)} for 2 samples; expected [2, {classes}], the classes "
                f"of the data, from {'LeakyReadout' if spiking else 'LinearReadout'}"
            )
        if isinstance(trial, SpikingNetwork):
            _check_steps(trial, x.double(), logits)


def check_layers(network: nn.Module) -> None:
    """Refuse parameters of layers that have no collapsed form."""
    for name, module in network.named_modules():
        if type(module).__module__.startswith("torch.nn.") and not isinstance(module, (*KNOWN, *INSTEAD)):
            raise ValueError(
                f"the layer {name!r} is a torch.nn.{type(module).__name__}, which has no form that gives the same bits "
                f"in every runtime; known are {', '.join(kind.__name__ for kind in KNOWN)}, and {LAYERS}"
            )
        if next(module.parameters(recurse=False), None) is None or isinstance(module, OURS):
            continue
        kind = type(module)
        instead = INSTEAD.get(kind, LAYERS)
        raise ValueError(
            f"the layer {name or 'compute()'!r} is a {kind.__module__}.{kind.__qualname__} with parameters of its own, "
            f"which have no exported form; use {instead}"
        )


def only_readout(network: nn.Module) -> nn.Module:
    """Return the one read-out."""
    found = {name: module for name, module in network.named_modules() if isinstance(module, READOUTS)}
    if len(found) == 1:
        return next(iter(found.values()))
    what = f"{len(found)} read-outs ({', '.join(found)})" if found else "no read-out"
    raise ValueError(
        f"the network has {what}; expected one, whose logits compute() returns: axonnx.models.LeakyReadout with time, "
        f"LinearReadout without"
    )


def _logits(network: Network, x: Tensor) -> Tensor:
    """Return what the network's read-out gives, which is what ``compute`` must return."""
    given: list[Tensor] = []
    handle = only_readout(network).register_forward_hook(lambda _layer, _given, out: given.append(out))
    try:
        logits: Tensor = network(x).logits
    finally:
        handle.remove()
    if not any(out is logits for out in given):
        raise ValueError("compute() changes what its read-out returns; it must return the read-out's logits as is")
    return logits


def _check_steps(network: SpikingNetwork, x: Tensor, logits: Tensor) -> None:
    """Check that single steps, as a device runs them, give the same."""
    state: State | None = None
    for step in x.unbind(0):
        output = network.step(step, state)
        state = output.state
    if not torch.allclose(output.logits, logits, rtol=1e-6, atol=1e-9):
        raise ValueError(
            "step by step the network gives other logits than over a whole sequence: it hears a later layer (set "
            "layerwise = False), or keeps a state outside of its layers, where each time step finds it missing (keep "
            "it in LIF or LeakyReadout, and read it with run.state_of(layer))"
        )
