"""Neurons of another library as constants of ours.

A source's neuron is v' = β v + g i, with i' = α i + I where it has synapses with a time constant. Divided by the gain g
it is u' = β u + i, which fires at θ/g and is reset by amounts over g: weights stay the source's own, to the bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from axonnx.base.errors import AxonnxError

Number = float | Tensor


@dataclass(frozen=True)
class Neuron:
    """Constants in the source's own units; ``strict``: fires where v > θ, not where v ≥ θ.

    ``recurrent`` and ``bias``: weights from its own spikes to its current ([n, n], or [n] or [1] from each neuron to
    itself), and a current that is always there. ``inputs``: weights that the neurons hold themselves.
    ``fires`` False: a leaky integrator, which only a read-out, or other neurons, can hear.
    """

    decay: Number
    threshold: Number = 0.0
    strict: bool = False
    zeroed: Number = 0.0
    taken: Number = 0.0
    late_zeroed: Number = 0.0
    late_taken: Number = 0.0
    synaptic_decay: Number | None = None
    gain: Number = 1.0
    recurrent: Tensor | None = None
    bias: Tensor | None = None
    fires: bool = True
    notes: tuple[str, ...] = ()
    inputs: Tensor | None = None

    def constants(self, where: str) -> dict[str, Tensor]:
        """Return what ``models.general.GeneralLIF`` holds, in float32."""
        gain = wide(self.gain)
        if not bool((gain > 0).all()):
            raise AxonnxError(
                f"{where}: its gain is {float(gain.min()):g}; neurons whose input counts less than nothing "
                f"have no form here"
            )
        level = (wide(self.threshold) / gain).float()
        if self.strict:
            level = torch.nextafter(level, torch.tensor(torch.inf))
        found = {"decay": wide(self.decay).float(), "threshold": level}
        found |= {name: wide(getattr(self, name)).float() for name in ("zeroed", "late_zeroed")}
        found |= {name: (wide(getattr(self, name)) / gain).float() for name in ("taken", "late_taken")}
        if self.synaptic_decay is not None:
            found["synaptic_decay"] = wide(self.synaptic_decay).float()
        _check(found, where)
        return found


def wide(number: Number) -> Tensor:
    """In double precision, cut from whatever made it."""
    return torch.as_tensor(number).detach().double().cpu()


def uniform(number: Number, where: str, what: str) -> float:
    """Return the one number that it is for all neurons."""
    value = wide(number)
    bad = int((~torch.isfinite(value)).sum())
    if bad:
        raise AxonnxError(
            f"{where}: {what} is NaN or infinite in {bad} of {value.numel()} neurons; expected finite numbers. Check "
            f"the time constants and resistances, or save the network again"
        )
    if value.numel() != 1 and not bool((value == value.flatten()[0]).all()):
        raise AxonnxError(f"{where}: {what} differs from neuron to neuron; here it must be one for the layer")
    return float(value.flatten()[0])


def refuse(where: str, kind: str, why: str) -> AxonnxError:
    """Return the refusal of a layer that has no exact form."""
    return AxonnxError(f"{where}: this {kind} cannot be imported exactly: {why}")


def _check(found: dict[str, Tensor], where: str) -> None:
    for name, value in found.items():
        if not bool(torch.isfinite(value).all()):
            raise AxonnxError(f"{where}: {name} is not finite; train the network again, with a lower rate")
    for name in ("decay", "synaptic_decay"):
        if name in found and not bool(((found[name] >= 0) & (found[name] <= 1)).all()):
            low, high = float(found[name].min()), float(found[name].max())
            raise AxonnxError(
                f"{where}: {name.replace('_', ' ')} is {low:g} … {high:g}; expected 0 … 1. Of continuous time: choose "
                f"a time step that is shorter than the time constant"
            )


def attribute(module: Any, name: str, where: str) -> Any:
    """Return a field of a source's layer; if this version of the library lacks it, name the version."""
    if not hasattr(module, name):
        kind = type(module)
        raise AxonnxError(f"{where}: {kind.__module__}.{kind.__name__} has no {name!r}; this version is not known here")
    return getattr(module, name)
