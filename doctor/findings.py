"""What ``axonnx doctor`` found, as one typed value for JSON."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class Finding(BaseModel):
    """Frozen, and nothing beside what is stated."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Extra(Finding):
    """An extra of the package, ``axonnx[name]``."""

    name: str
    missing: tuple[str, ...] = Field(description="packages that it needs and that are not installed")


class Processor(Finding):
    """What computes."""

    architecture: str
    model: str = Field(description="empty where the system does not say")
    processors: int = Field(description="logical ones")
    usable: int = Field(description="that this process may use")
    instruction_sets: tuple[str, ...] = Field(description="those that matter to our kernels")
    memory_bytes: int | None = Field(description="in all; None where the system does not say")


class Program(Finding):
    """A compiler or interpreter on the path."""

    name: str
    path: str
    version: str = Field(description="first line of what it says")


class CoreFinding(Finding):
    """The native core: which form of it runs here, or why none does."""

    isa: str | None = Field(description="the instruction set in use; None if there is no core")
    isas: tuple[str, ...] = Field(description="sets that this build has and this processor can run, the best first")
    forced: str | None = Field(description="what AXONNX_ISA names; None if it is not set")
    note: str = Field(description="why there is no core, and what to do")


class EngineFinding(Finding):
    """An engine on small files of known answers."""

    name: str
    status: Literal["equal", "different", "missing", "failed"]
    numbers: int = Field(description="logits compared with those of the training networks, bit for bit")
    differing: int
    seconds: float = Field(description="to load and run them")
    note: str = Field(description="what is missing, or went wrong")


class Cache(Finding):
    """A folder of files that can be made again."""

    name: str
    path: str
    files: int
    bytes: int


class Data(Finding):
    """A data set that training knows by name."""

    name: str
    found: str | None = Field(description="its first file; 'built in'; None where it is not there")


class Diagnosis(Finding):
    """Everything: the first thing to attach to a report of a fault."""

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
    data_root: str | None = Field(description="what AXONNX_DATA says")
    data: tuple[Data, ...]

    @property
    def well(self) -> bool:
        """No engine that is here gives wrong bits or fails."""
        return all(engine.status in ("equal", "missing") for engine in self.engines)
