"""Estimate the energy of operations from a table of constants, 45 nm by default."""

from __future__ import annotations

import tomllib
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from axonnx.base.errors import AxonnxError
from axonnx.runtime.measure.result_files import Found


class EnergyParts(Found):
    """Energy of each kind of operation in nJ, for one inference."""

    accumulates: float
    multiply_accumulates: float
    membrane_updates: float

    @property
    def total(self) -> float:
        """Sum in nJ."""
        return self.accumulates + self.multiply_accumulates + self.membrane_updates


class Hardware(BaseModel):
    """Energy of one operation in pJ. The defaults are for 32-bit floats in 45 nm (Horowitz, ISSCC 2014)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = "45 nm, 32-bit float (Horowitz 2014)"
    accumulate_pj: float = Field(default=0.9, ge=0, description="one addition of a weight, for a spike")
    multiply_accumulate_pj: float = Field(default=4.6, ge=0, description="one product and sum, for a graded input")
    membrane_update_pj: float = Field(default=5.5, ge=0, description="decay, charge and reset of one neuron")

    def cost_nj(self, accumulates: float, multiply_accumulates: float, membrane_updates: float) -> EnergyParts:
        """Return the energy of each kind of operation in nJ."""
        return EnergyParts(
            accumulates=1e-3 * self.accumulate_pj * accumulates,
            multiply_accumulates=1e-3 * self.multiply_accumulate_pj * multiply_accumulates,
            membrane_updates=1e-3 * self.membrane_update_pj * membrane_updates,
        )


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
