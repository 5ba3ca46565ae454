"""Results of shards of one verification as they stand in files; what is none is refused with the place of the fault."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, NonNegativeInt, PositiveInt, ValidationError

from axonnx.runtime.errors import AxonnxError


class Part(BaseModel):
    """What merging adds up; more may be there."""

    model_config = ConfigDict(strict=True, extra="allow")


class Stage(Part):
    """One step of a verification."""

    name: str
    ok: bool
    lines: list[str]


class Implementation(Part):
    """One runtime against the reference: counts, all but its name and its largest difference."""

    name: str
    samples: NonNegativeInt
    spikes: NonNegativeInt
    membranes: NonNegativeInt
    logits: NonNegativeInt
    spikes_differing: NonNegativeInt
    membranes_differing: NonNegativeInt
    logits_differing: NonNegativeInt
    max_logit_difference: float


class Accuracy(Part):
    """Right decisions."""

    name: str
    right: NonNegativeInt
    samples: PositiveInt
    nll: float


class Shard(Part):
    """A result of ``axonnx verify``."""

    format: Literal[1]
    model: str
    verdict: Literal["equal", "different"]
    mismatches: NonNegativeInt
    compared: dict[str, NonNegativeInt]
    stages: list[Stage]
    implementations: list[Implementation]
    accuracy: list[Accuracy]
    unrounded: dict[str, float] | None = None
    first_divergence: dict[str, Any] | None


def read_shards(paths: Sequence[str]) -> list[dict[str, Any]]:
    """The results in these files, which have the same stages, implementations and scores."""
    parts = [_read(Path(path)) for path in paths]
    for path, part in zip(paths, parts, strict=True):
        if _outline(part) != _outline(parts[0]):
            raise AxonnxError(f"{path}: has other stages or implementations than {paths[0]}; verify both alike")
    return parts


def _read(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text("utf-8")
        Shard.model_validate_json(text)
        result: dict[str, Any] = json.loads(text)
    except ValidationError as fault:
        first = fault.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the text itself"
        raise AxonnxError(f"{path}: is no result of axonnx verify ({place}: {first['msg']}); verify again") from None
    except (ValueError, RecursionError) as fault:
        raise AxonnxError(f"{path}: is no result of axonnx verify ({fault}); verify again") from None
    return result


def _outline(part: dict[str, Any]) -> object:
    names = [[entry["name"] for entry in part[key]] for key in ("stages", "implementations", "accuracy")]
    return names, sorted(part["compared"]), [sorted(entry) for entry in part["implementations"]]
