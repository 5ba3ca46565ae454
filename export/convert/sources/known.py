"""Which layers of which libraries are known, by their classes' names: no library is imported for that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import nn

from axonnx.export.convert.sources import norse_neurons, snntorch_neurons, spikingjelly_neurons
from axonnx.export.convert.sources.neuron import Neuron
from axonnx.export.convert.sources.own_neurons import StandIn

LIBRARIES: dict[str, tuple[tuple[str, ...], Callable[[Any, str, str], Neuron]]] = {
    "snntorch": (snntorch_neurons.KINDS, snntorch_neurons.neuron_of),
    "spikingjelly": (spikingjelly_neurons.KINDS, spikingjelly_neurons.neuron_of),
    "norse": (norse_neurons.KINDS, norse_neurons.neuron_of),
}
NAMES = {"snntorch": "snnTorch", "spikingjelly": "SpikingJelly", "norse": "Norse"}


def library_of(module: nn.Module) -> str | None:
    """The library that a layer of neurons comes from, as Python names it."""
    library = type(module).__module__.partition(".")[0]
    return library if library in LIBRARIES else None


def kind_of(module: nn.Module) -> str | None:
    """The class, or the nearest it is derived from, that is known as neurons."""
    for base in type(module).__mro__:
        library = base.__module__.partition(".")[0]
        if library in LIBRARIES and base.__name__ in LIBRARIES[library][0]:
            return base.__name__ if base is type(module) else None
    return None


def holds_neurons(module: nn.Module) -> bool:
    """Whether this is a layer of neurons."""
    return isinstance(module, StandIn) or (library_of(module) is not None and kind_of(module) is not None)


def neuron_of(module: nn.Module, where: str) -> Neuron:
    """The constants of a layer of neurons."""
    library, kind = library_of(module), kind_of(module)
    assert library is not None
    assert kind is not None
    return LIBRARIES[library][1](module, kind, where)
