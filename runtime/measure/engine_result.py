"""What implementations were found to do against the numpy engine, as JSON: engines, and folders of compiled code.

Neither result is a verdict on the training network, which was not compared.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, NonNegativeInt, computed_field

from axonnx.runtime.measure.comparison import Comparison, Difference
from axonnx.runtime.measure.result_files import Found


class EngineImplementation(Found):
    """One implementation against the numpy engine, number by number."""

    name: str
    samples: NonNegativeInt = 0
    numbers: NonNegativeInt = 0
    differing: NonNegativeInt = 0
    first: Difference | None = None
    differences: tuple[Difference, ...] = Field((), description="the first numbers that differ, in order")

    @staticmethod
    def figures(found: Comparison) -> dict[str, Any]:
        """Return what a comparison gives for these fields."""
        plain = {key: getattr(found, key) for key in ("name", "samples", "numbers", "differing", "first")}
        return {**plain, "differences": tuple(found.differences)}


class CompiledProgram(EngineImplementation):
    """One build of compiled code."""

    spikes: NonNegativeInt = 0
    logits: NonNegativeInt = 0
    decisions: NonNegativeInt = 0


class _AgainstNumpy(Found):
    """What both results have."""

    format: Literal[1] = 1
    training_network: Literal["not compared"] = "not compared"
    model: str
    file_sha256: str
    source: str = Field("", description="where the input came from")
    data_sha256: str | None = None
    ties: NonNegativeInt = Field(0, description="membranes that were exactly on their thresholds")
    implementations: tuple[EngineImplementation, ...] = ()

    @computed_field  # type: ignore[prop-decorator]
    @property
    def first_difference(self) -> Difference | None:
        """Of the first implementation that differs."""
        return next((entry.first for entry in self.implementations if entry.first is not None), None)

    def _equal(self) -> Literal["equal", "different"]:
        """Whether something was compared in every implementation, and nothing differs."""
        compared = bool(self.implementations) and all(entry.numbers for entry in self.implementations)
        return "equal" if compared and self.first_difference is None else "different"


class EngineResult(_AgainstNumpy):
    """engines.json: every engine on a file."""

    structure: tuple[str, ...] = Field((), description="what holds of the file itself")
    refusal: str | None = Field(None, description="why the file cannot be run at all")

    @computed_field  # type: ignore[prop-decorator]
    @property
    def engines(self) -> Literal["equal", "different"]:
        """Whether the file is sound, something was compared, and nothing differs."""
        return self._equal() if self.refusal is None else "different"

    @property
    def verified(self) -> bool:
        """Whether all engines give the same bits."""
        return self.engines == "equal"


class CompiledResult(_AgainstNumpy):
    """compiled.json of a verification: a folder of compiled code against the file that it should be made of."""

    folder: str
    target: str
    fired: dict[str, NonNegativeInt] = Field(description="expected spikes of each layer")
    implementations: tuple[CompiledProgram, ...] = ()
    left_out: tuple[str, ...] = Field((), description="builds that were not made, and why")
    failures: tuple[str, ...] = Field((), description="what is wrong beside single numbers")

    @computed_field  # type: ignore[prop-decorator]
    @property
    def compiled(self) -> Literal["equal", "different"]:
        """Whether everything was compared and nothing differs."""
        return "different" if self.failures else self._equal()

    @property
    def verified(self) -> bool:
        """Whether the folder does what the file does, bit for bit."""
        return self.compiled == "equal"
