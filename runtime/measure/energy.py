"""Estimate the energy of an inference from its operations and its memory traffic.

The default costs are those of 45 nm at 0.9 V (M. Horowitz, "Computing's energy problem", ISSCC 2014): additions and
products of integers and floats, and 64-bit reads of memories of three sizes. What counts as traffic follows Yan et al.,
"Reconsidering the energy efficiency of spiking neural networks" (arXiv 2409.08290).
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from axonnx.base.errors import AxonnxError
from axonnx.runtime.measure.result_files import Found

Width = Literal["float32", "int16", "int8", "int4", "int2"]

# Bytes of a weight; those of 4 and 2 bits lie in bytes of their own.
WIDTHS: dict[Width, int] = {"float32": 4, "int16": 2, "int8": 1, "int4": 1, "int2": 1}
ADDITIONS: dict[Width, float] = {"float32": 0.9, "int16": 0.1, "int8": 0.1, "int4": 0.1, "int2": 0.1}  # pJ; of 32 bits
# Horowitz has products of 8 bits (0.2 pJ) and 32 bits (3.1 pJ), so energy grows as the square of the width.
PRODUCTS: dict[Width, float] = {"float32": 3.7, "int16": 0.8, "int8": 0.2, "int4": 0.2, "int2": 0.2}
MEMORIES = ((8 << 10, 10 / 8), (32 << 10, 20 / 8), (1 << 20, 100 / 8))  # bytes; pJ a byte, from reads of 64 bits
DRAM_PJ_PER_BYTE = 1300 / 8  # the lower end of 1.3 to 2.6 nJ


class EnergyParts(Found):
    """Energy by cause in nJ: three kinds of operations, and the traffic of three kinds of data."""

    accumulates: float = 0.0
    multiply_accumulates: float = 0.0
    membrane_updates: float = 0.0
    weights: float = 0.0
    states: float = 0.0
    spikes: float = 0.0

    def __add__(self, other: EnergyParts) -> EnergyParts:
        return EnergyParts(**{name: value + getattr(other, name) for name, value in self})

    @property
    def operations(self) -> float:
        """Sum of all operations in nJ."""
        return self.accumulates + self.multiply_accumulates + self.membrane_updates

    @property
    def memory(self) -> float:
        """Sum of all memory traffic in nJ."""
        return self.weights + self.states + self.spikes

    @property
    def total(self) -> float:
        """Sum in nJ."""
        return self.operations + self.memory


class Hardware(BaseModel):
    """Energy of one operation, and of one byte read or written, in pJ."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = "45 nm (Horowitz 2014)"
    accumulate_pj: float | None = Field(default=None, ge=0, description="one addition of a weight; None: by its width")
    multiply_accumulate_pj: float | None = Field(
        default=None, ge=0, description="one product of a weight and its addition; None: by the weight's width"
    )
    membrane_update_pj: float = Field(
        default=5.5, ge=0, description="decay, charge and reset of one neuron, in float32"
    )
    memory_pj_per_byte: float | None = Field(
        default=None, ge=0, description="one byte read or written; None: by the size of the memory"
    )

    def accumulate(self, width: Width) -> float:
        """Return the energy of adding a weight of this width."""
        return ADDITIONS[width] if self.accumulate_pj is None else self.accumulate_pj

    def multiply_accumulate(self, width: Width) -> float:
        """Return the energy of multiplying a weight of this width and adding the product."""
        if self.multiply_accumulate_pj is None:
            return PRODUCTS[width] + ADDITIONS[width]
        return self.multiply_accumulate_pj

    def byte(self, capacity: int) -> float:
        """Return the energy of a byte from the smallest memory that holds ``capacity`` bytes."""
        if self.memory_pj_per_byte is not None:
            return self.memory_pj_per_byte
        return next((cost for size, cost in MEMORIES if capacity <= size), DRAM_PJ_PER_BYTE)


def read_hardware(path: str | Path | None) -> Hardware:
    """Read a table of energies from a TOML file, or return the default table.

    Raises:
        AxonnxError: If the file is not such a table.
    """
    if path is None:
        return Hardware()
    try:
        return Hardware.model_validate(tomllib.loads(Path(path).read_text("utf-8")))
    except (ValueError, RecursionError) as fault:  # not TOML, not UTF-8, or another table
        known = ", ".join(Hardware.model_fields)
        raise AxonnxError(f"{path}: is not a table of energies ({fault}); expected any of: {known}") from None
