"""Every spike operator by the training code's own formulas: what its body must give, to the last bit.

The bodies of ``runtime.format.opset`` are what a file computes; nothing here reads them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from axonnx.models.general import Adaptation, Dynamics, adapt, charge, read_last, read_maximum, reset_late
from axonnx.models.maths.current import Current
from axonnx.models.maths.firing import decide
from axonnx.models.neurons import Reset, integrate
from axonnx.models.pooling import pool_pairs
from axonnx.models.resonate import turn
from axonnx.models.run import LIFState

Formula = Callable[[Any], tuple[Tensor, ...]]  # of the inputs, as attributes


def _lif(reset: Reset) -> Formula:
    def formula(v: Any) -> tuple[Tensor, ...]:
        state = LIFState(v.membrane, None, v.spikes)
        membrane, _ = integrate(Current(v.current), state, v.decay, v.threshold, reset)
        return membrane, decide(membrane - v.threshold, None, None)

    return formula


def _stochastic_lif(reset: Reset) -> Formula:
    def formula(v: Any) -> tuple[Tensor, ...]:
        arriving, state = Current(v.current, v.arriving_variance), LIFState(v.membrane, v.variance, v.spikes)
        membrane, variance = integrate(arriving, state, v.decay, v.threshold, reset)
        assert variance is not None
        return membrane, variance, decide(membrane - v.threshold, variance + v.base_variance, v.noise)

    return formula


def _leaky_sum(v: Any) -> tuple[Tensor, ...]:
    membrane = v.decay * v.membrane + v.current
    return membrane, v.total + membrane


def _general_lif(v: Any) -> tuple[Tensor, ...]:
    p = Dynamics(*(getattr(v, name) for name in Dynamics._fields))
    membrane = reset_late(charge(v.current, v.membrane, v.spikes, p), v.spikes, p)
    return membrane, decide(membrane - v.threshold, None, None)


def _adaptive_lif(v: Any) -> tuple[Tensor, ...]:
    p = Dynamics(*(getattr(v, name) for name in Dynamics._fields))
    adapted = adapt(v.adaptation, v.membrane, v.spikes, Adaptation(*(getattr(v, name) for name in Adaptation._fields)))
    membrane = reset_late(charge(v.current, v.membrane, v.spikes, p) - v.current_gain * adapted, v.spikes, p)
    return membrane, adapted, decide(membrane - (v.threshold + v.threshold_gain * adapted), None, None)


def _resonate_and_fire(v: Any) -> tuple[Tensor, ...]:
    membrane, resonance = turn(v.current, v.membrane, v.resonance, v.spikes, vars(v))
    return membrane, resonance, decide(membrane - v.threshold, None, None)


def _recurrent_activity(v: Any) -> tuple[Tensor, ...]:
    squares = v.spikes * v.spikes
    return (squares.sum(-1, keepdim=True) - squares,)


def _kept(v: Any, membrane: Tensor, of: str = "") -> Tensor:
    """Return what a leak leaves of an integer membrane, in float64: all these numbers are exact there."""
    lost, scale, above, below, least = (
        getattr(v, of + name).double() for name in ("lost", "scale", "round_above", "round_below", "least")
    )
    leak = ((membrane * lost + torch.where(membrane < 0, below, above)) / scale).floor()
    at_least = least.where(membrane > 0, torch.full_like(membrane, -torch.inf))
    return membrane - torch.maximum(leak, at_least)


def _integer_charge(v: Any, number: Tensor) -> Tensor:
    fired, number = number.clamp(max=1).double(), number.double()
    left = torch.where((v.zeroed * fired).bool(), 0.0, v.membrane.double()) - v.taken * number
    charged = _kept(v, left) + v.current
    kept: Tensor = torch.where((v.late_zeroed * fired).bool(), 0.0, charged)
    late: Tensor = v.late_taken * number
    return kept - late


def _integer_lif(v: Any) -> tuple[Tensor, ...]:
    membrane = _integer_charge(v, v.spikes)
    return membrane.float(), (membrane >= v.threshold).float()


def _integer_burst(v: Any) -> tuple[Tensor, ...]:
    membrane = _integer_charge(v, v.counts)
    several = (membrane / v.threshold.double()).floor()
    return membrane.float(), several.clamp(min=0).minimum(v.most.double()).float()


def _integer_current(v: Any) -> tuple[Tensor, ...]:
    return ((_kept(v, v.synaptic.double(), "synaptic_") + v.current).float(),)


def _integer_sum(v: Any) -> tuple[Tensor, ...]:
    membrane = _kept(v, v.membrane.double()) + v.current
    return membrane.float(), (v.total + v.unit.double() * membrane).float()


FORMULAS: dict[str, Formula] = {
    "Heaviside": lambda v: (decide(v.current - v.threshold, None, None),),
    "StochasticHeaviside": lambda v: (decide(v.current - v.threshold, v.variance, v.noise),),
    "LIF": _lif("subtract"),
    "LIFToZero": _lif("zero"),
    "StochasticLIF": _stochastic_lif("subtract"),
    "StochasticLIFToZero": _stochastic_lif("zero"),
    "LeakySum": _leaky_sum,
    "LeakyLast": lambda v: read_last(v.current, v.membrane, v.total, v.decay),
    "LeakyMaximum": lambda v: read_maximum(v.current, v.membrane, v.total, v.begun, v.decay),
    "LeakyCurrent": lambda v: (v.synaptic_decay * v.synaptic + v.current,),
    "GeneralLIF": _general_lif,
    "AdaptiveLIF": _adaptive_lif,
    "ResonateAndFire": _resonate_and_fire,
    "IntegerLIF": _integer_lif,
    "IntegerBurst": _integer_burst,
    "IntegerCurrent": _integer_current,
    "IntegerSum": _integer_sum,
    "RecurrentActivity": _recurrent_activity,
    "PoolPairs": lambda v: (pool_pairs(v.x),),
}
