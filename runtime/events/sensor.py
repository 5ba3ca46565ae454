"""The size of a sensor in pixels, and its polarities."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class Sensor(BaseModel):
    """The sensor that recorded the events: columns, rows, and 1 or 2 polarities."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    width: int = Field(ge=1, le=65536, description="columns")
    height: int = Field(default=1, ge=1, le=65536, description="rows")
    polarities: Literal[1, 2] = Field(default=2, description="1: events have no sign")
