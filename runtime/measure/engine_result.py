"""What a comparison of engines found, as JSON: written by ``axonnx verify FILE --engines``."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, NonNegativeInt, computed_field

from axonnx.runtime.measure.comparison import Difference
from axonnx.runtime.measure.result_files import Found


class EngineImplementation(Found):
    """One implementation against the numpy engine, number by number."""

    name: str
    samples: NonNegativeInt = 0
    numbers: NonNegativeInt = 0
    differing: NonNegativeInt = 0
    first: Difference | None = None
    differences: tuple[Difference, ...] = Field((), description="the first numbers that differ, in order")


class EngineResult(Found):
    """engines.json: no verdict on the training network, which was not compared."""

    format: Literal[1] = 1
    training_network: Literal["not compared"] = "not compared"
    model: str
    file_sha256: str
    source: str = Field("", description="where the input came from")
    data_sha256: str | None = None
    structure: tuple[str, ...] = Field((), description="what holds of the file itself")
    refusal: str | None = Field(None, description="why the file cannot be run at all")
    ties: NonNegativeInt = Field(0, description="membranes that were put exactly on their thresholds")
    implementations: tuple[EngineImplementation, ...] = ()

    @computed_field  # type: ignore[prop-decorator]
    @property
    def engines(self) -> Literal["equal", "different"]:
        """Whether the file is sound, something was compared, and nothing differs."""
        compared = bool(self.implementations) and all(entry.numbers for entry in self.implementations)
        return "equal" if self.refusal is None and compared and self.first_difference is None else "different"

    @property
    def verified(self) -> bool:
        """Whether all engines give the same bits; the training network is not compared."""
        return self.engines == "equal"

    @computed_field  # type: ignore[prop-decorator]
    @property
    def first_difference(self) -> Difference | None:
        """Of the first implementation that differs."""
        return next((entry.first for entry in self.implementations if entry.first is not None), None)
