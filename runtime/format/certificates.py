"""Verify a synapse's certificate from the weights in the file.

The exactness of every engine rests on it: weights and biases are multiples of 2^−s, and no partial sum can reach 2²⁴
units in the last place. An edited weight, or a bound that is too small, is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.runtime.format.contract import SynapseContract
from axonnx.runtime.format.values import UNITS, Values

Floats = NDArray[np.float32]

LARGEST_INTEGERS = {"int16": 2**15 - 1, "int8": 2**7 - 1, "int4": 2**3 - 1, "int2": 1}  # of stored weights


@dataclass(frozen=True, eq=False)
class Synapse:
    """A weight tensor [out, …] with its bias, the values that reach it, and its certificate."""

    name: str
    weight: Floats
    bias: Floats | None
    reached_by: Values
    stated: SynapseContract

    def largest_sums(self) -> NDArray[np.float64]:
        """Return Σ_j |w_ij| · x_max + |b_i| for each output i, with the stated x_max; exact on dyadic terms."""
        rows: NDArray[np.float64] = np.abs(self.weight.reshape(len(self.weight), -1).astype(np.float64)).sum(1)
        rows = rows * self.stated.input_max
        return rows if self.bias is None else rows + np.abs(self.bias.astype(np.float64))

    def units(self, bits: int | None = None) -> float:
        """Return the largest partial sum in units in the last place."""
        bits = self.stated.input_bits if bits is None else bits
        return float(self.largest_sums().max()) * 2.0 ** (self.stated.grid + bits)


def check_synapse(synapse: Synapse, where: str) -> None:
    """Refuse a synapse whose certificate is wrong."""
    stated = synapse.stated
    for what, values in (("weight", synapse.weight), ("bias", synapse.bias)):
        if values is not None:
            _check_grid(values, stated.grid, f"{where}: synapse {synapse.name!r}: its {what}")
    if not synapse.reached_by.dyadic:
        raise AxonnxError(
            f"{where}: synapse {synapse.name!r} receives real numbers of any size, so its sums depend on their order. "
            f"Connect synapses to spikes, counts or averages of them over power-of-two windows only"
        )
    if stated.input_max < synapse.reached_by.largest or stated.input_bits < synapse.reached_by.bits:
        raise AxonnxError(
            f"{where}: synapse {synapse.name!r} is certified for inputs up to {stated.input_max:g} with "
            f"{stated.input_bits} fractional bits, but inputs up to {synapse.reached_by.largest:g} with "
            f"{synapse.reached_by.bits} fractional bits can arrive. Export the network again"
        )
    _check_stored(synapse, where)
    check_bound(synapse.units(), [synapse], where)


def _check_stored(synapse: Synapse, where: str) -> None:
    """Refuse weights that are not integers of the stated width times 2^lift."""
    stated = synapse.stated
    if stated.lift is None:
        if stated.stored_as in ("int4", "int2"):
            raise AxonnxError(
                f"{where}: synapse {synapse.name!r} has weights of {stated.stored_as}, but its certificate states no "
                f"lift. Export the network again"
            )
        return
    _check_grid(synapse.weight, -stated.lift, f"{where}: synapse {synapse.name!r}: its weight")
    most = LARGEST_INTEGERS.get(stated.stored_as)
    largest = float(np.abs(synapse.weight).max()) * 2.0**-stated.lift
    if most is not None and largest > most:
        raise AxonnxError(
            f"{where}: synapse {synapse.name!r} holds the integer weight {largest:g}; expected at most {most} in "
            f"{stated.stored_as}. A weight was changed; export the network again"
        )


def check_bound(units: float, together: list[Synapse], where: str) -> None:
    """Check that the largest sum of these synapses is under 2²⁴ units, and that none of them states less."""
    names = " and ".join(repr(synapse.name) for synapse in together)
    if not units < UNITS:
        raise AxonnxError(
            f"{where}: sums of synapse {names} can reach {units:g} units of 2^-{together[0].stated.grid}; only sums "
            f"below {UNITS} units are exact. A weight or bias was changed; export the network again"
        )
    for synapse in together:
        if synapse.stated.bound < units:
            raise AxonnxError(
                f"{where}: sums of synapse {names} can reach {units:g} units, but the certificate of {synapse.name!r} "
                f"states {synapse.stated.bound:g}. A weight or the certificate was changed; export the network again"
            )


def exact_together(a: Synapse, b: Synapse) -> bool:
    """Return whether one accumulator can sum both synapses in any order, with the same bits."""
    return a.stated.grid == b.stated.grid and joint_units(a, b) < UNITS


def joint_units(a: Synapse, b: Synapse) -> float:
    """Return the largest sum of two synapses that are added, in units of the finer last place."""
    bits = max(a.stated.input_bits, b.stated.input_bits)
    return a.units(bits) + b.units(bits)


def _check_grid(values: NDArray[Any], grid: int, what: str) -> None:
    scaled = values.astype(np.float64) * 2.0**grid
    off = scaled != np.rint(scaled)
    if off.any():
        index = tuple(int(axis[0]) for axis in np.nonzero(off))
        raise AxonnxError(
            f"{what} {list(index)} is {float(values[index])!r}, which is not a multiple of 2^-{grid}: {int(off.sum())} "
            f"of {values.size} numbers are off the grid, so sums are not exact. Export the network again"
        )
