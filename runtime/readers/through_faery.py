"""Formats that the optional package faery (LGPL) decodes for us: AEDAT 4, EVT 3, Event Stream.

faery does not say what else was in a file, so nothing is counted in `skipped`. An Event Stream that was cut off reads
as a shorter one: the format has no mark by which to tell.
"""

import importlib
from pathlib import Path
from typing import Any

import numpy as np

from axonnx.runtime.bin_settings import Sensor
from axonnx.runtime.errors import AxonnxError
from axonnx.runtime.readers.binary import read_bytes, read_head, whole_records
from axonnx.runtime.readers.prophesee import read_header
from axonnx.runtime.readers.recording import Recording, events_from

FILE_TYPE = {"aedat4": "aedat", "evt3": "evt", "es": "es"}
# An EVT header need not state the sensor's size. No sensor is as large as this, so it shows that none was stated.
UNSTATED = (65535, 65535)


def read(path: Path, format_name: str) -> Recording:
    """Events of a file in a format that only faery knows; times as faery gives them, in microseconds."""
    _check_whole(path, format_name)
    faery = _faery(path, format_name)
    try:
        stream = faery.events_stream_from_file(path, dimensions_fallback=UNSTATED, file_type=FILE_TYPE[format_name])
        size, array = stream.dimensions(), stream.to_array()
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # faults in a file come as bare Exception, or as a panic, which is no Exception
        raise AxonnxError(
            f"{path}: faery cannot read it as {format_name} ({error}). Was it cut off, or is it another format?"
        ) from None
    sensor = None if size == UNSTATED or 0 in size else Sensor(width=size[0], height=size[1])
    events = events_from(path, array["t"], array["x"], array["y"], array["p"].astype(np.uint8))
    return Recording(events, format_name, sensor)


def _check_whole(path: Path, format_name: str) -> None:
    """Refuse files that are missing, empty, or end in the middle of a word, which faery would pass over."""
    head = read_head(path)
    if format_name == "evt3":
        whole_records(path, read_bytes(path), read_header(head)[1], "<u2")


def _faery(path: Path, format_name: str) -> Any:
    try:
        return importlib.import_module("faery")
    except ImportError:
        raise AxonnxError(
            f"{path}: {format_name} is read by faery, which is not installed: pip install 'axonnx[io]'."
        ) from None
