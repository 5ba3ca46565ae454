"""What a comparison of compiled code with its file found, as JSON."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, NonNegativeInt, computed_field

from axonnx.runtime.measure.comparison import Difference
from axonnx.runtime.measure.engine_result import EngineImplementation
from axonnx.runtime.measure.result_files import Found


class CompiledProgram(EngineImplementation):
    """One build of the code against the numpy engine."""

    spikes: NonNegativeInt = 0
    logits: NonNegativeInt = 0
    decisions: NonNegativeInt = 0


class CompiledResult(Found):
    """compiled.json of a verification: a folder of compiled code against the file that it should be made of."""

    format: Literal[1] = 1
    training_network: Literal["not compared"] = "not compared"
    model: str
    file_sha256: str
    folder: str
    target: str
    source: str = Field(description="where the input came from")
    data_sha256: str | None = None
    ties: NonNegativeInt = Field(description="expected membranes exactly on their thresholds")
    fired: dict[str, NonNegativeInt] = Field(description="expected spikes of each layer")
    implementations: tuple[CompiledProgram, ...] = ()
    left_out: tuple[str, ...] = Field((), description="builds that were not made, and why")
    failures: tuple[str, ...] = Field((), description="what is wrong beside single numbers")

    @computed_field  # type: ignore[prop-decorator]
    @property
    def compiled(self) -> Literal["equal", "different"]:
        """Whether everything was compared and nothing differs."""
        compared = bool(self.implementations) and all(entry.numbers for entry in self.implementations)
        return "equal" if compared and not self.failures and self.first_difference is None else "different"

    @property
    def verified(self) -> bool:
        """Whether the folder does what the file does, bit for bit."""
        return self.compiled == "equal"

    @computed_field  # type: ignore[prop-decorator]
    @property
    def first_difference(self) -> Difference | None:
        """Of the first build that differs."""
        return next((entry.first for entry in self.implementations if entry.first is not None), None)
