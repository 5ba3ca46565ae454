"""What a reader gives: events in the order of the file, and what else the file said."""

from dataclasses import dataclass, field
from pathlib import Path

from numpy.typing import ArrayLike

from axonnx.base.errors import AxonnxError
from axonnx.runtime.events.arrays import Events, is_sorted, make_events
from axonnx.runtime.events.sensor import Sensor


@dataclass(frozen=True)
class Recording:
    """One recording: every event of the file in the file's order, which is that of time unless `in_order` is False."""

    events: Events
    format: str
    sensor: Sensor | None = None  # None where the file does not say
    skipped: dict[str, int] = field(default_factory=dict)  # records that are not events, by kind
    notes: tuple[str, ...] = ()  # what the reader had to assume
    label: int | None = None

    @property
    def in_order(self) -> bool:
        """True where no event is earlier than the one before it."""
        return is_sorted(self.events)


def events_from(path: Path, t: ArrayLike, x: ArrayLike, y: ArrayLike = 0, p: ArrayLike = 0) -> Events:
    """Events of a file; what does not fit is refused with the file's name."""
    try:
        return make_events(t, x, y, p)
    except AxonnxError as error:
        raise AxonnxError(f"{path}: {error}") from None
