"""The result of a reader: events in the order of the file, and its other contents."""

from dataclasses import dataclass, field
from pathlib import Path

from numpy.typing import ArrayLike

from axonnx.base.errors import AxonnxError
from axonnx.runtime.events.arrays import Events, Sensor, is_sorted, make_events


@dataclass(frozen=True)
class Recording:
    """One recording: all its events in the file's order.

    Attributes:
        events: Array with the fields t (microseconds), x, y and p.
        format: Name of the file's format.
        sensor: Sensor size. None if the file does not state it.
        skipped: Number of records that are not events, by kind.
        notes: Assumptions that the reader made.
        label: Class of the recording, if the file states it.
    """

    events: Events
    format: str
    sensor: Sensor | None = None  # None if the file does not state it
    skipped: dict[str, int] = field(default_factory=dict)  # records that are not events, by kind
    notes: tuple[str, ...] = ()  # assumptions that the reader made
    label: int | None = None

    @property
    def in_order(self) -> bool:
        """Whether no event is earlier than the one before it."""
        return is_sorted(self.events)


def events_from(path: Path, t: ArrayLike, x: ArrayLike, y: ArrayLike = 0, p: ArrayLike = 0) -> Events:
    """Make the events of a file; errors state the file's name."""
    try:
        return make_events(t, x, y, p)
    except AxonnxError as error:
        raise AxonnxError(f"{path}: {error}") from None
