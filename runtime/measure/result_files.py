"""Results as JSON files: the base class of results, and a reader."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from axonnx.base.errors import AxonnxError
from axonnx.base.files import read_at_most

MOST_BYTES = 1 << 28


class Found(BaseModel):
    """A part of a result. Types are strict, unknown keys of later versions are ignored, and NaN is kept."""

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore", ser_json_inf_nan="constants")


Result = TypeVar("Result", bound=BaseModel)


def read_result(kind: type[Result], path: str | Path) -> Result:
    """Read a result from a JSON file.

    Args:
        kind: Type of the result.
        path: File to read.

    Raises:
        AxonnxError: If the file does not hold such a result; the message states where it differs.
    """
    try:
        text = read_at_most(path, MOST_BYTES).decode("utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        raise AxonnxError(f"{path}: cannot be read: {fault}") from None
    try:
        return kind.model_validate_json(text)
    except ValidationError as fault:
        first = fault.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the text itself"
        raise AxonnxError(f"{path}: {place}: {first['msg']}. Write it again with this version of axonnx") from None
