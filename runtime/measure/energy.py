"""What operations cost: energy of a table of constants, 45 nm by default."""

from __future__ import annotations

import tomllib
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from axonnx.base.errors import AxonnxError
from axonnx.runtime.measure.result_files import Found


class EnergyParts(Found):
    """nJ of each kind of operation, in one inference."""

    accumulates: float
    multiply_accumulates: float
    membrane_updates: float

    @property
    def total(self) -> float:
        """nJ of all of them."""
        return self.accumulates + self.multiply_accumulates + self.membrane_updates


class Hardware(BaseModel):
    """Energy of one operation in pJ. The defaults are 32-bit floating point in 45 nm (Horowitz, ISSCC 2014)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = "45 nm, 32-bit float (Horowitz 2014)"
    accumulate_pj: float = Field(default=0.9, ge=0, description="one addition: a spike met a weight")
    multiply_accumulate_pj: float = Field(default=4.6, ge=0, description="one product and sum: a graded input did")
    membrane_update_pj: float = Field(default=5.5, ge=0, description="decay, charge and reset of one neuron")

    def cost_nj(self, accumulates: float, multiply_accumulates: float, membrane_updates: float) -> EnergyParts:
        """nJ of each kind of operation."""
        return EnergyParts(
            accumulates=1e-3 * self.accumulate_pj * accumulates,
            multiply_accumulates=1e-3 * self.multiply_accumulate_pj * multiply_accumulates,
            membrane_updates=1e-3 * self.membrane_update_pj * membrane_updates,
        )


def read_hardware(path: str | Path | None) -> Hardware:
    """The user's own table (TOML), or the default."""
    if path is None:
        return Hardware()
    try:
        return Hardware.model_validate(tomllib.loads(Path(path).read_text("utf-8")))
    except (ValueError, RecursionError) as fault:  # no TOML, no UTF-8, or another table
        known = ", ".join(Hardware.model_fields)
        raise AxonnxError(f"{path}: not a table of energies ({fault}); it may hold: {known}") from None
