"""The definition of a frame: sensor, length of a bin, and value of a cell."""

from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from axonnx.base.errors import AxonnxError
from axonnx.runtime.events.arrays import Sensor

INT64_MAX = 2**63 - 1
MOST_BINS = 2**20  # in one recording or window
MOST_CELLS = 2**28  # in one bin
Origin = Literal["zero", "first"]


class Binning(BaseModel):
    """How events become frames: bins of bin_us microseconds each, over a down-sampled sensor.

    With ``most_events``, a bin ends with its last event or with its time, whichever comes first, and the next bin
    begins where it ended. Of events with equal times the first ones, in their order, belong to the bin that they end.

    Examples:
        >>> binning = Binning(sensor=Sensor(width=128, height=128), bins=50, bin_us=10_000, downsample=4)
        >>> binning.shape
        (50, 2, 32, 32)
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    sensor: Sensor = Field(description="the sensor that recorded the events")
    bins: int = Field(ge=1, le=MOST_BINS, description="number of bins")
    bin_us: int = Field(ge=1, le=INT64_MAX, description="length of a bin in microseconds")
    most_events: int | None = Field(
        default=None,
        ge=1,
        le=2**31,
        description="a bin ends with this many events, if its time does not end it before; only written if it is set",
    )
    origin: Origin = Field(
        default="zero",
        description="start of bin 0: time zero of the recording's clock, or the first event that is on the "
        "sensor and has a known polarity",
    )
    values: Literal["count", "binary"] = Field(
        default="count", description="count events up to clip, or store 1 if there was any event"
    )
    clip: int = Field(default=255, ge=1, le=255, description="the largest count")
    downsample: int = Field(
        default=1,
        ge=1,
        le=65536,
        description="side of the squares of pixels that are summed, a divisor of the sensor's sides; a sensor of "
        "height 1 is summed along its width only",
    )
    polarity: Literal["keep", "merge"] = Field(
        default="keep", description="one channel for each polarity, or one for both"
    )

    @classmethod
    def over(
        cls,
        duration_us: int,
        bins: int,
        sensor: Sensor,
        *,
        most_events: int | None = None,
        origin: Origin = "zero",
        values: Literal["count", "binary"] = "count",
        clip: int = 255,
        downsample: int = 1,
        polarity: Literal["keep", "merge"] = "keep",
    ) -> Self:
        """Make a binning of exactly `bins` equal bins over `duration_us`.

        Args:
            duration_us: Length of all bins together in microseconds.
            bins: Number of bins.
            sensor: Sensor that recorded the events.
            most_events: Events that end a bin before its time does. Default: none do.
            origin: Start of bin 0, as in ``Binning``.
            values: Counts or single bits, as in ``Binning``.
            clip: Largest count.
            downsample: Side of the squares of pixels that are summed.
            polarity: One channel for each polarity, or one for both.

        Raises:
            AxonnxError: If the duration does not divide into bins of whole microseconds.
        """
        if bins < 1 or duration_us < bins:
            raise AxonnxError(
                f"binning: {bins} bins over {duration_us} µs; expected at least one bin, and at least 1 µs for each."
            )
        if duration_us % bins:
            nearest = max(1, (2 * duration_us + bins) // (2 * bins)) * bins
            raise AxonnxError(
                f"binning: {duration_us} µs cannot be divided into {bins} bins of whole microseconds;"
                f" the nearest possible duration is {nearest} µs."
            )
        return cls(
            sensor=sensor,
            bins=bins,
            bin_us=duration_us // bins,
            most_events=most_events,
            origin=origin,
            values=values,
            clip=clip,
            downsample=downsample,
            polarity=polarity,
        )

    @model_serializer(mode="wrap")
    def _as_before(self, made: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave ``most_events`` out if it is not set: such files have the same bytes as before it was added."""
        found: dict[str, Any] = made(self)
        if self.most_events is None:
            found.pop("most_events", None)
        return found

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.duration_us > INT64_MAX:
            raise ValueError(
                f"{self.bins} bins of {self.bin_us} µs exceed the range of int64; use fewer or shorter bins"
            )
        if self.most_events is not None and self.bin_us == 1:
            raise ValueError("bins that events can end last at least 2 µs; their numbers must fit 64 bits")
        for side, step in (("width", self.downsample), ("height", self.row_step)):
            size = getattr(self.sensor, side)
            if size % step:
                raise ValueError(f"downsample {step} does not divide the sensor's {side} {size}; use a divisor of it")
        if self.cells > MOST_CELLS:
            raise ValueError(f"{self.cells} cells in a bin; expected at most {MOST_CELLS}. Use a larger downsample")
        return self

    @property
    def row_step(self) -> int:
        """Number of rows that are summed: `downsample`, or 1 if there is only one row."""
        return 1 if self.sensor.height == 1 else self.downsample

    @property
    def channels(self) -> int:
        """1 if polarities are merged, otherwise the sensor's polarities."""
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
        """Shape (channels, height, width) of one bin."""
        return self.channels, self.height, self.width

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Shape (bins, channels, height, width) of a recording."""
        return self.bins, *self.frame_shape

    @property
    def cells(self) -> int:
        """Number of values in one bin."""
        return self.channels * self.height * self.width

    @property
    def duration_us(self) -> int:
        """Microseconds from the origin to the end of the last bin."""
        return self.bins * self.bin_us

    @property
    def limit(self) -> int:
        """The largest value that a frame can hold."""
        return 1 if self.values == "binary" else self.clip
