"""The findings of ``axonnx doctor`` as typed values for JSON."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class Finding(BaseModel):
    """A frozen part of the diagnosis without unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Extra(Finding):
    """An extra of the package, ``axonnx[name]``."""

    name: str
    missing: tuple[str, ...] = Field(description="packages that it needs but that are not installed")


class Processor(Finding):
    """The processor and the memory of this machine."""

    architecture: str
    model: str = Field(description="empty if the system does not state it")
    processors: int = Field(description="number of logical processors")
    usable: int = Field(description="number of processors that this process may use")
    instruction_sets: tuple[str, ...] = Field(description="instruction sets that the kernels can use")
    memory_bytes: int | None = Field(description="total memory; None if the system does not state it")


class Program(Finding):
    """A compiler or interpreter on the path."""

    name: str
    path: str
    version: str = Field(description="first line of its version text")


class CoreFinding(Finding):
    """The native core: the instruction set in use, or the reason why there is no core."""

    isa: str | None = Field(description="instruction set in use; None if there is no core")
    isas: tuple[str, ...] = Field(description="sets that this build has and this processor supports, the best first")
    forced: str | None = Field(description="value of AXONNX_ISA; None if it is not set")
    note: str = Field(description="why there is no core, and what to do")


class EngineFinding(Finding):
    """The result of an engine on small files with known answers."""

    name: str
    status: Literal["equal", "different", "missing", "failed"]
    numbers: int = Field(description="logits compared with those of the training networks, bit for bit")
    differing: int
    seconds: float = Field(description="time to load and run the files")
    note: str = Field(description="what is missing, or what failed")


class Cache(Finding):
    """A folder of files that can be made again."""

    name: str
    path: str
    files: int
    bytes: int


class Data(Finding):
    """A data set that training knows by name."""

    name: str
    found: str | None = Field(description="its first file, or 'built in'; None if it was not found")


class Diagnosis(Finding):
    """The whole diagnosis, which belongs in every bug report."""

    axonnx: str
    python: str
    system: str
    packages: dict[str, str] = Field(description="installed versions")
    extras: tuple[Extra, ...]
    processor: Processor
    programs: tuple[Program, ...]
    core: CoreFinding
    engines: tuple[EngineFinding, ...]
    caches: tuple[Cache, ...]
    data_root: str | None = Field(description="value of AXONNX_DATA")
    data: tuple[Data, ...]

    @property
    def well(self) -> bool:
        """Whether no available engine fails or gives wrong bits."""
        return all(engine.status in ("equal", "missing") for engine in self.engines)
