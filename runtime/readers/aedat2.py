"""Read AEDAT 2.0 of jAER: a text header, then big-endian pairs of a 32-bit address and a 32-bit time in microseconds.

The meaning of an address depends on the chip, which the header names since 2014 (`# AEChip: …`). Decoded as in jAER:

    dvs128   bit 15 external input (skipped); y = bits 14…8; x = 127 − bits 7…1; ON (p = 1) if bit 0 is 0
    davis*   bit 31 frame or inertial sample, bit 10 external input (both skipped); y = bits 30…22;
             x = width − 1 − bits 21…12; ON (p = 1) if bit 11 is 1
    cochlea  AMS1b/AMS1c, binaural: x = channel 0 (high) … 63 (low) = bits 7…2;
             y = 8·bit 0 (1 low-pass, 0 band-pass cell) + 4·bit 1 (1 right ear, 0 left) + bits 9…8 (cell of four);
             p = 0; addresses with any bit above 9 (analogue samples) are skipped

For the cameras y counts from the bottom of the image, as in jAER. The camera part follows jAER's published source; it
was not checked with a camera's file. If the header names no chip, addresses of at most 10 bits are read as those of a
cochlea and addresses of at most 16 bits as those of a DVS128, and a note says so. Wider addresses are refused.
`format="aedat2-dvs128"` and similar names choose the chip.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.runtime.events.arrays import Events, Sensor
from axonnx.runtime.readers.binary import header_lines, read_bytes, require_magic, unwrap, whole_records
from axonnx.runtime.readers.recording import Recording, events_from

MAGIC = b"#!AER-DAT2.0"
RECORD = np.dtype([("address", ">u4"), ("t", ">i4")])

Words = NDArray[np.int64]


@dataclass(frozen=True)
class Chip:
    """How to read the addresses of one chip."""

    sensor: Sensor
    kind: str  # what the records are that are not events
    is_event: Callable[[Words], NDArray[np.bool_]]
    fields: Callable[[Words, Sensor], tuple[Words, Words, Words]]  # x, y, p


def _dvs128(address: Words, sensor: Sensor) -> tuple[Words, Words, Words]:
    return sensor.width - 1 - (address >> 1 & 0x7F), address >> 8 & 0x7F, 1 - (address & 1)


def _davis(address: Words, sensor: Sensor) -> tuple[Words, Words, Words]:
    return sensor.width - 1 - (address >> 12 & 0x3FF), address >> 22 & 0x1FF, address >> 11 & 1


def _cochlea(address: Words, _sensor: Sensor) -> tuple[Words, Words, Words]:
    cell = (address & 1) << 3 | (address >> 1 & 1) << 2 | address >> 8 & 3
    return address >> 2 & 0x3F, cell, np.zeros_like(address)


def _davis_chip(width: int, height: int) -> Chip:
    return Chip(
        Sensor(width=width, height=height),
        "frame, inertial or external input",
        lambda address: address & 0x8000_0400 == 0,
        _davis,
    )


CHIPS = {
    "cochlea": Chip(
        Sensor(width=64, height=16, polarities=1), "analogue sample", lambda address: address < 1 << 10, _cochlea
    ),
    "dvs128": Chip(Sensor(width=128, height=128), "external input", lambda address: address < 1 << 15, _dvs128),
    "davis128": _davis_chip(128, 128),
    "davis208": _davis_chip(208, 192),
    "davis240": _davis_chip(240, 180),
    "davis346": _davis_chip(346, 260),
    "davis640": _davis_chip(640, 480),
}

# The class names that jAER writes into the header, in lower case, without their package.
CHIP_OF_CLASS = {r"cochleaams\w*": "cochlea", "dvs128|tmpdiff128": "dvs128"} | {
    rf"{name}[a-z]*": name for name in CHIPS if name.startswith("davis")
}


def read(path: Path, chip: str | None = None) -> Recording:
    """Read the events of an AEDAT 2.0 file; the chip is given, named in the header, or guessed from the addresses."""
    data = read_bytes(path)
    require_magic(path, data, MAGIC, "AEDAT 2.0")
    lines, start = header_lines(data, b"#")
    records = whole_records(path, data, start, RECORD)
    address = records["address"].astype(np.int64)
    notes: tuple[str, ...] = ()
    if chip is None:
        chip, notes = _which_chip(path, lines, address)
    t = unwrap(records["t"].astype(np.int64), 32)
    events, skipped = _decode(path, CHIPS[chip], t, address)
    return Recording(events, "aedat2", CHIPS[chip].sensor, skipped, notes)


def _decode(path: Path, chip: Chip, t: Words, address: Words) -> tuple[Events, dict[str, int]]:
    keep = chip.is_event(address)
    x, y, p = chip.fields(address[keep], chip.sensor)
    others = int(np.count_nonzero(~keep))
    if len(x) and int(x.min()) < 0:
        raise AxonnxError(
            f"{path}: an address has column {chip.sensor.width - 1 - int(x.min())}, but the chip has only"
            f" {chip.sensor.width} columns; choose the right chip with format='aedat2-…', one of {', '.join(CHIPS)}."
        )
    return events_from(path, t[keep], x, y, p), {chip.kind: others} if others else {}


def _which_chip(path: Path, lines: list[str], address: Words) -> tuple[str, tuple[str, ...]]:
    """Return the chip, and a note if it was guessed from the addresses."""
    named = next((line.split("AEChip:", 1)[1].strip() for line in lines if "AEChip:" in line), None)
    if named is not None:
        return _chip_of_class(path, named), ()
    used = int(np.bitwise_or.reduce(address, initial=0)).bit_length()
    if used > 16:
        raise AxonnxError(
            f"{path}: the header names no AEChip and addresses use {used} bits; expected at most 16 (DVS128, cochlea)."
            f" Choose the chip with format='aedat2-…', one of {', '.join(CHIPS)}."
        )
    guess = "cochlea" if used <= 10 else "dvs128"
    note = f"the header names no AEChip; addresses use {used} bits, so they are read as those of a {guess}"
    return guess, (note,)


def _chip_of_class(path: Path, named: str) -> str:
    name = named.rsplit(".", 1)[-1].lower()
    for pattern, chip in CHIP_OF_CLASS.items():
        if re.fullmatch(pattern, name):
            return chip
    raise AxonnxError(
        f"{path}: the header names the unknown AEChip {named!r}; known chips are {', '.join(CHIPS)}."
        " If one of these uses the same addresses, choose it with format='aedat2-…'."
    )
