"""Read the text headers of Prophesee files: `% keyword value` lines."""

import re

from axonnx.runtime.events.sensor import Sensor
from axonnx.runtime.readers.binary import header_lines


def read_header(data: bytes) -> tuple[dict[str, str], int]:
    """Return the values by keyword in lower case, and the offset of the first byte after the header."""
    lines, start = header_lines(data, b"% ", b"% end")
    pairs = (line[1:].strip().partition(" ") for line in lines)
    return {keyword.lower(): value.strip() for keyword, _, value in pairs}, start


def sensor_of(header: dict[str, str]) -> Sensor | None:
    """Return the sensor that the header states in any of the three forms in use; None if it states none."""
    geometry = re.fullmatch(r"(\d+)x(\d+)", header.get("geometry", ""))
    stated: dict[str, str] = dict(re.findall(r"(width|height)=(\d+)", header.get("format", "").lower()))
    width, height = (header.get(side, stated.get(side, "")) for side in ("width", "height"))
    if geometry:
        width, height = geometry[1], geometry[2]
    if not (width.isdecimal() and height.isdecimal() and 0 < int(width) <= 65536 and 0 < int(height) <= 65536):
        return None
    return Sensor(width=int(width), height=int(height))


def evt_version(header: dict[str, str]) -> str | None:
    """Return the version that the header of a `.raw` file states: 2.0, 2.1 or 3.0."""
    version = header.get("evt") or header.get("format", "").split(";")[0].upper().removeprefix("EVT")
    names = {"2": "2.0", "21": "2.1", "3": "3.0"}
    return names.get(version, version) or None
