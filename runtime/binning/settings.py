"""What a frame is: the sensor, the length of a bin, and what a count becomes."""

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from axonnx.base.errors import AxonnxError
from axonnx.runtime.events.sensor import Sensor

INT64_MAX = 2**63 - 1
MOST_BINS = 2**20  # in one recording or window
MOST_CELLS = 2**28  # in one bin
Origin = Literal["zero", "first"]


class Binning(BaseModel):
    """How events become frames: bins of bin_us microseconds each, over a down-sampled sensor."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    sensor: Sensor = Field(description="the sensor that recorded the events")
    bins: int = Field(ge=1, le=MOST_BINS, description="number of bins")
    bin_us: int = Field(ge=1, le=INT64_MAX, description="length of a bin in microseconds")
    origin: Origin = Field(
        default="zero",
        description="where bin 0 begins: at time zero of the recording's clock, or at its first event that is on the "
        "sensor and of a known polarity",
    )
    values: Literal["count", "binary"] = Field(
        default="count", description="counts of events up to clip, or 1 where there was any event"
    )
    clip: int = Field(default=255, ge=1, le=255, description="the largest count")
    downsample: int = Field(
        default=1,
        ge=1,
        le=65536,
        description="sum over squares of this many pixels a side, a divisor of the sensor's sides; a sensor of height "
        "1 is summed along its width only",
    )
    polarity: Literal["keep", "merge"] = Field(
        default="keep", description="a channel for each polarity, or both in one"
    )

    @classmethod
    def over(
        cls,
        duration_us: int,
        bins: int,
        sensor: Sensor,
        *,
        origin: Origin = "zero",
        values: Literal["count", "binary"] = "count",
        clip: int = 255,
        downsample: int = 1,
        polarity: Literal["keep", "merge"] = "keep",
    ) -> Self:
        """A binning of exactly `bins` equal bins over `duration_us`; a duration that does not divide is refused."""
        if bins < 1 or duration_us < bins:
            raise AxonnxError(
                f"binning: {bins} bins over {duration_us} µs; expected at least one bin, and a microsecond for each."
            )
        if duration_us % bins:
            nearest = max(1, (2 * duration_us + bins) // (2 * bins)) * bins
            raise AxonnxError(
                f"binning: {duration_us} µs do not divide into {bins} bins of whole microseconds;"
                f" the nearest duration that does is {nearest} µs."
            )
        return cls(
            sensor=sensor,
            bins=bins,
            bin_us=duration_us // bins,
            origin=origin,
            values=values,
            clip=clip,
            downsample=downsample,
            polarity=polarity,
        )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.duration_us > INT64_MAX:
            raise ValueError(f"{self.bins} bins of {self.bin_us} µs end beyond int64; use fewer or shorter bins")
        for side, step in (("width", self.downsample), ("height", self.row_step)):
            size = getattr(self.sensor, side)
            if size % step:
                raise ValueError(f"downsample {step} does not divide the sensor's {side} {size}; use a divisor of it")
        if self.cells > MOST_CELLS:
            raise ValueError(f"{self.cells} cells in a bin; at most {MOST_CELLS} are possible. Use a larger downsample")
        return self

    @property
    def row_step(self) -> int:
        """Rows that become one: `downsample`, or 1 where there is but one row."""
        return 1 if self.sensor.height == 1 else self.downsample

    @property
    def channels(self) -> int:
        """1 when polarities are merged, else the sensor's polarities."""
        return 1 if self.polarity == "merge" else self.sensor.polarities

    @property
    def height(self) -> int:
        """Rows after down-sampling."""
        return self.sensor.height // self.row_step

    @property
    def width(self) -> int:
        """Columns after down-sampling."""
        return self.sensor.width // self.downsample

    @property
    def frame_shape(self) -> tuple[int, int, int]:
        """(channels, height, width) of one bin."""
        return self.channels, self.height, self.width

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """(bins, channels, height, width) of a recording."""
        return self.bins, *self.frame_shape

    @property
    def cells(self) -> int:
        """Values in one bin."""
        return self.channels * self.height * self.width

    @property
    def duration_us(self) -> int:
        """Microseconds from the origin to the end of the last bin."""
        return self.bins * self.bin_us

    @property
    def limit(self) -> int:
        """The largest value a frame can hold."""
        return 1 if self.values == "binary" else self.clip
