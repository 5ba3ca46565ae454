"""Read the formats that the optional package faery (LGPL) decodes: AEDAT 4, EVT 3, Event Stream.

faery does not report what else is in a file, so nothing is counted in `skipped`. A truncated Event Stream is read as a
shorter one, because the format does not mark its end.
"""

from pathlib import Path

from axonnx.runtime.events.sensor import Sensor
from axonnx.runtime.readers.binary import read_bytes, read_head, whole_records
from axonnx.runtime.readers.confined import read_confined
from axonnx.runtime.readers.prophesee import read_header
from axonnx.runtime.readers.recording import Recording, events_from

FILE_TYPE = {"aedat4": "aedat", "evt3": "evt", "es": "es"}
UNSTATED = (65535, 65535)  # what confined_child.py returns for an unknown size


def read(path: Path, format_name: str) -> Recording:
    """Read the events of a file in a format that faery decodes; times are in microseconds."""
    _check_whole(path, format_name)
    (width, height), t, x, y, p = read_confined(path, "faery", FILE_TYPE[format_name])
    stated = (width, height) != UNSTATED and width > 0 and height > 0
    sensor = Sensor(width=int(width), height=int(height)) if stated else None
    return Recording(events_from(path, t, x, y, p), format_name, sensor)


def _check_whole(path: Path, format_name: str) -> None:
    """Refuse files that are missing, empty, or end in the middle of a word, which faery would ignore."""
    head = read_head(path)
    if format_name == "evt3":
        whole_records(path, read_bytes(path), read_header(head)[1], "<u2")
