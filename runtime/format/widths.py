"""Certify the widths of integer neurons: none saturates, so every order of additions has the same bits.

A membrane v keeps the share 1 − m / 2ˢ of itself in each time step, rounded, and A at most arrives. A spike takes R
from it one step later, or r at once. With n spikes at most

    |v| ≤ (A + 1) 2ˢ / m + n (max(r − θ, 0) + R),

because the rounding adds less than one, and a membrane that loses r ≤ θ when it has reached θ stays positive. One that
is set to zero first has no θ to lose.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from axonnx.runtime.format.opset import SpikeOp
from axonnx.runtime.format.values import UNITS, Values

Floats = NDArray[np.float32]

MOST_SHIFT = 16  # of a leak
MOST_BURST = 2**15
_INT32 = 2**31


class NotCertifiedError(Exception):
    """The reason why a layer's width cannot be certified."""


def largest_membrane(op: SpikeOp, current: Values, constants: Mapping[str, Floats]) -> int:
    """Return the largest |v| that integer neurons with these constants can reach.

    Args:
        op: An operator that computes in integers.
        current: What can arrive in a time step.
        constants: The operator's parameters.

    Raises:
        NotCertifiedError: If a constant is not allowed, or the bound does not fit.
    """
    if not current.dyadic or current.bits:
        raise NotCertifiedError(f"its current is {current}; expected whole numbers below 2²⁴")
    named = {name.removeprefix("synaptic_"): values for name, values in constants.items() if name != "unit"}
    values = {name: _whole(name, values) for name, values in named.items()}
    _check_constants(op, values)
    zero: NDArray[np.int64] = np.zeros(1, np.int64)
    threshold, most = values.get("threshold", zero), values.get("most", zero + 1)
    taken, late, zeroed = (values.get(name, zero) for name in ("taken", "late_taken", "zeroed"))
    kept = -((int(current.largest) + 1) * values["scale"] // -values["lost"])  # rounded up
    bounds = kept + most * (np.maximum(taken - threshold * (1 - zeroed), 0) + late)
    largest, left = int(bounds.max()), int((bounds + most * taken).max())
    if largest >= UNITS:
        raise NotCertifiedError(
            f"its membranes can reach {largest}; expected less than 2²⁴. Give it fewer bits of weights, or more leak"
        )
    if left * int(values["lost"].max()) + int(values["scale"].max()) >= _INT32:
        raise NotCertifiedError(
            f"its leak times a membrane of up to {left} can reach 2³¹; expected less. Give the leak a smaller scale"
        )
    return largest


def bits_of(largest: int) -> int:
    """Return the bits of a signed integer of this magnitude."""
    return largest.bit_length() + 1


def most_steps(largest: int) -> int:
    """Return the number of time steps over which the sum of such membranes stays below 2²⁴."""
    return (UNITS - 1) // max(largest, 1)


def _whole(name: str, values: Floats) -> NDArray[np.int64]:
    if not (np.abs(values) < UNITS).all() or (values != np.rint(values)).any():
        raise NotCertifiedError(f"its {name} is {float(values.ravel()[0])!r}; expected whole numbers below 2²⁴")
    return values.astype(np.int64)


def _check_constants(op: SpikeOp, values: Mapping[str, NDArray[np.int64]]) -> None:
    scale = values["scale"]
    ranges = {
        "scale": (1, 2**MOST_SHIFT),
        "lost": (1, int(scale.min())),
        "round_above": (0, int(scale.min()) - 1),
        "round_below": (0, int(scale.min()) - 1),
        "least": (0, 1),
        "threshold": (1, UNITS - 1),
        "most": (1, MOST_BURST),
        "taken": (0, UNITS - 1),
        "late_taken": (0, UNITS - 1),
        "zeroed": (0, 1),
        "late_zeroed": (0, 1),
    }
    for name, found in values.items():
        low, high = ranges[name]
        if found.min() < low or found.max() > high:
            raise NotCertifiedError(f"its {name} is {int(found.min())} … {int(found.max())}; expected {low} … {high}")
    if (scale & (scale - 1)).any():
        raise NotCertifiedError(f"its scale is {int(scale.max())}; expected powers of two")


def unit_bits(unit: Floats) -> int:
    """Return b of a read-out's unit 2^−b.

    Raises:
        NotCertifiedError: If it is not one power of two.
    """
    mantissa, exponent = math.frexp(float(unit.ravel()[0]))
    if (unit != unit.ravel()[0]).any() or mantissa != 0.5 or abs(exponent) > 64:
        raise NotCertifiedError(f"its unit is {float(unit.ravel()[0])!r}; expected one power of two")
    return 1 - exponent
