"""Results as JSON: the common ground of what verification and profiling write, and how anyone reads it back."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from axonnx.base.errors import AxonnxError
from axonnx.base.files import read_at_most

MOST_BYTES = 1 << 28


class Found(BaseModel):
    """A part of a result: types are strict, keys of later versions are passed over, NaN is written and read as such."""

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore", ser_json_inf_nan="constants")


Result = TypeVar("Result", bound=BaseModel)


def read_result(kind: type[Result], path: str | Path) -> Result:
    """A result that was written as JSON; anything else is refused with the place of the fault."""
    try:
        text = read_at_most(path, MOST_BYTES).decode("utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        raise AxonnxError(f"{path}: cannot be read: {fault}") from None
    return parse_result(kind, text, str(path))


def parse_result(kind: type[Result], text: str, where: str) -> Result:
    """The same from a text; ``where`` is what errors name."""
    try:
        return kind.model_validate_json(text)
    except ValidationError as fault:
        first = fault.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the text itself"
        raise AxonnxError(f"{where}: {place}: {first['msg']}. Write it again with this version of axonnx") from None
