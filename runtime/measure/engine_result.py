"""What a comparison of engines found, as JSON: written by ``axonnx verify FILE --engines``."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, NonNegativeInt, computed_field

from axonnx.runtime.format.names import LOGITS
from axonnx.runtime.measure.result_files import Found


class EngineDifference(Found):
    """The first number of an implementation that is not the specification's."""

    implementation: str
    what: str = Field(description="logits, spikes/<layer> or membrane/<layer>")
    index: tuple[int, ...]
    expected: float
    found: float

    def when(self) -> float:
        """Its time step, the order of differences; logits come after all steps."""
        return float("inf") if self.what == LOGITS else self.index[0]

    def __str__(self) -> str:
        return f"{self.implementation}: {self.what} {list(self.index)} is {self.found!r}, expected {self.expected!r}"


class EngineImplementation(Found):
    """One implementation against the numpy engine, number by number."""

    name: str
    samples: NonNegativeInt = 0
    numbers: NonNegativeInt = 0
    differing: NonNegativeInt = 0
    first: EngineDifference | None = None


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
    def first_difference(self) -> EngineDifference | None:
        """Of the first implementation that differs."""
        return next((entry.first for entry in self.implementations if entry.first is not None), None)
