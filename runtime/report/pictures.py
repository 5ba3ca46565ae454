"""Pictures that are not charts: events as PNG, samples of a data set, and where several files decide differently."""

from __future__ import annotations

import base64
import math
import struct
import zlib
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from axonnx.base.palette import LIGHT
from axonnx.runtime.measure.comparison import Agreement
from axonnx.runtime.report.markup import Html, cut, element, svg_file

LEVELS = 8  # of each polarity
FADING = 0.6  # of an event's brightness from one step to the next
WIDEST = 48  # pixels of a side; larger sensors are summed down
PIXELS = 1_000_000  # of all pictures of a page: keeps it small
GREY, TRUECOLOUR, INDEXED = 0, 2, 3  # kinds of PNG
ON, OFF = bytes.fromhex(LIGHT["c1"][1:]), bytes.fromhex(LIGHT["c2"][1:])

Levels = NDArray[np.uint8]


def sprite(frames: NDArray[np.integer], among: int = 1) -> str:
    """Frames [T, C, H, W] side by side in one picture, ``among`` so many, as a data URI; events fade step by step."""
    widest = min(WIDEST, max(8, math.isqrt(PIXELS // (len(frames) * among))))
    levels = picture_levels(faded(frames), widest)
    steps, height, width = levels.shape
    return data_uri(levels.transpose(1, 0, 2).reshape(height, steps * width))


def picture_levels(frames: NDArray[np.float64], widest: int = WIDEST) -> Levels:
    """Frames [T, C, H, W] as indices of the palette [T, h, w]: on-level + LEVELS · off-level."""
    small = shrink(frames, widest)
    channels = small if small.shape[1] == 2 else np.stack([small.sum(1), np.zeros_like(small[:, 0])], 1)
    largest = max(1.0, float(np.quantile(channels[channels > 0], 0.9))) if channels.any() else 1.0
    scaled = np.rint(channels * ((LEVELS - 1) / largest)).clip(0, LEVELS - 1).astype(np.uint8)
    mixed: Levels = scaled[:, 1] + LEVELS * scaled[:, 0]  # channel 1 is polarity on
    return mixed


def faded(frames: NDArray[np.integer]) -> NDArray[np.float64]:
    """Events as an eye sees them: each leaves a trace that fades."""
    trace = np.abs(frames.astype(np.float64))
    for step in range(1, len(trace)):
        np.maximum(trace[step], FADING * trace[step - 1], out=trace[step])
    return trace


def shrink(frames: NDArray[np.float64], widest: int = WIDEST) -> NDArray[np.float64]:
    """Return the same events on a sensor of ``widest`` pixels at the most."""
    factor = -(-max(frames.shape[-2:]) // widest)
    if factor == 1:
        return frames
    height, width = (-(-side // factor) * factor for side in frames.shape[-2:])
    padded = np.zeros((*frames.shape[:-2], height, width))
    padded[..., : frames.shape[-2], : frames.shape[-1]] = frames
    blocks = padded.reshape(*frames.shape[:-2], height // factor, factor, width // factor, factor)
    summed: NDArray[np.float64] = blocks.sum((-3, -1))
    return summed


def photograph(image: NDArray[np.integer]) -> str:
    """Return an image [C, H, W] of values from 0 to 255, grey or in colour, as a data URI."""
    pixels = image.clip(0, 255).astype(np.uint8)
    rows = pixels.transpose(1, 2, 0) if len(pixels) == 3 else pixels.mean(0).astype(np.uint8)[..., None]
    return _uri(_png(np.ascontiguousarray(rows), TRUECOLOUR if rows.shape[2] == 3 else GREY))


def data_uri(levels: Levels) -> str:
    """Return indices [h, w] of the palette as a picture that needs no file of its own."""
    colours, alphas = palette()
    return _uri(_png(levels[..., None], INDEXED, _part(b"PLTE", colours) + _part(b"tRNS", alphas)))


def _uri(data: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(data).decode()


def _png(pixels: Levels, kind: int, extra: bytes = b"") -> bytes:
    """Return a PNG of pixels [h, w, samples]."""
    height, width, _ = pixels.shape
    rows = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, -1)], axis=1)  # 0: no filter
    header = _part(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0))
    return (
        b"\x89PNG\r\n\x1a\n" + header + extra + _part(b"IDAT", zlib.compress(rows.tobytes(), 9)) + _part(b"IEND", b"")
    )


def palette() -> tuple[bytes, bytes]:
    """Colours and opacities of all pairs of levels."""
    colours, alphas = bytearray(), bytearray()
    for off in range(LEVELS):
        for on in range(LEVELS):
            share = on / max(on + off, 1)
            colours += bytes(round(share * a + (1 - share) * b) for a, b in zip(ON, OFF, strict=True))
            alphas.append(round(255 * min(1.0, max(on, off) / (LEVELS - 1))))
    return bytes(colours), bytes(alphas)


def _part(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


# A contact sheet: samples of a data set side by side, a row for each class.
SIDE, GAP, HEAD, SHEET_NAMES, SHEET_LONGEST = 128, 12, 44, 132, 16

Counts = NDArray[np.integer]


def contact_sheet(title: str, samples: Mapping[str, Sequence[Counts]]) -> str:
    """Return the text of an SVG file: for each class its samples, counts of events [C, H, W]."""
    columns = max(map(len, samples.values()))
    width = SHEET_NAMES + columns * (SIDE + GAP) + GAP
    height = HEAD + len(samples) * (SIDE + GAP)
    head = f"{title}: events from the middle of samples (blue: brighter, orange: darker)"
    rows = [_row(name, row, frames) for row, (name, frames) in enumerate(samples.items())]
    named = f"{title}: samples of {', '.join(samples)}"
    return svg_file(named, width, height, element("text", head, x=GAP, y=27), rows)


def _row(name: str, row: int, frames: Sequence[Counts]) -> Html:
    y = HEAD + row * (SIDE + GAP)
    label = element("text", cut(name, SHEET_LONGEST), element("title", name), x=GAP, y=y + SIDE / 2, class_="soft")
    return element("g", label, [_sample(frame, column, y) for column, frame in enumerate(frames)])


def _sample(frame: Counts, column: int, y: float) -> Html:
    levels = picture_levels(np.abs(frame.astype(np.float64))[np.newaxis], SIDE)[0]
    scale = SIDE / max(levels.shape)
    size = {"width": levels.shape[1] * scale, "height": levels.shape[0] * scale}
    place = {
        "x": SHEET_NAMES + column * (SIDE + GAP) + (SIDE - size["width"]) / 2,
        "y": y + (SIDE - size["height"]) / 2,
    }
    image = element("image", href=data_uri(levels), preserveAspectRatio="none", **place, **size)
    return element("g", element("rect", rx=6, class_="plain", **place, **size), image)


# An agreement picture: pixels of its parts.
CELL, ROW, SMALL, PAD, NAMES = 120, 34, 30, 16, 150
MOST, LONGEST, SHORTEST = 24, 18, 4  # samples that are shown; characters of a file's and of a class's name
AGREEMENT_LOOK = """
.apart{fill:var(--c2)}.right{fill:var(--c1);fill-opacity:.28}.wrong{fill:var(--c2);fill-opacity:.55}
"""


def agreement_picture(found: Agreement) -> str:
    """Return the text of an SVG file."""
    shown = found.disputed[:MOST].tolist()
    below = _y(len(found.files)) + 20
    width = 2 * PAD + NAMES + max(CELL * (len(found.files) + 1), SMALL * len(shown), 420)
    height = below + (40 + (len(found.files) + 1) * ROW if shown else 36)
    title = f"Where {', '.join(found.files)} decide alike on {found.data}"
    disputed = _disputed(found, shown, below) if shown else _text("All decide alike.", PAD, below + 14)
    return svg_file(title, width, height, _matrix(found), disputed, look=AGREEMENT_LOOK)


def _matrix(found: Agreement) -> Html:
    """Files down, files and the truth across: samples on which the two differ."""
    names, samples = (*found.files, "the truth"), len(found.truth)
    head = _text(f"decisions that differ, of {samples:,} on {found.data}", PAD, PAD + 10, "soft")
    columns = [_text(_cut(name), NAMES + PAD + (at + 0.5) * CELL, PAD + 40, "middle") for at, name in enumerate(names)]
    most = max(1, int(samples - found.alike.min()))
    cells = [
        _cell(samples - int(found.alike[at, to]), most, at, to)
        for at in range(len(found.files))
        for to in range(len(names))
        if at != to
    ]
    rows = [_text(_cut(name), NAMES + PAD - 8, _y(at) + 22, "end") for at, name in enumerate(found.files)]
    return element("g", head, columns, rows, cells)


def _cell(differ: int, most: int, at: int, to: int) -> Html:
    x, y = PAD + NAMES + to * CELL, _y(at)
    box = {"x": x + 1, "y": y + 1, "width": CELL - 2, "height": ROW - 2, "rx": 4}
    strength = element("rect", class_="apart", fill_opacity=0.75 * differ / most, **box)
    return element(
        "g", element("rect", class_="plain", **box), strength, _text(str(differ), x + CELL / 2, y + 22, "middle")
    )


def _disputed(found: Agreement, shown: list[int], top: float) -> Html:
    """Return a column for each sample on which files differ: the truth, and what each file takes it for."""
    more = len(found.disputed) - len(shown)
    rest = f"; {more} more are not shown" if more else ""
    head = f"where they do not decide alike (blue: right, orange: wrong){rest}; all wrong alike: {found.wrong_alike}"
    rows = [("the truth", found.truth), *zip(found.files, found.decisions, strict=True)]
    return element(
        "g",
        _text(head, PAD, top + 14, "soft"),
        [_text(_cut(name), NAMES + PAD - 8, top + 46 + at * ROW, "end") for at, (name, _) in enumerate(rows)],
        [
            _decided(found, int(decided[sample]), sample, PAD + NAMES + column * SMALL, top + 24 + at * ROW, at == 0)
            for at, (_, decided) in enumerate(rows)
            for column, sample in enumerate(shown)
        ],
    )


def _decided(found: Agreement, decided: int, sample: int, x: float, y: float, is_truth: bool) -> Html:
    kind = "plain" if is_truth else "right" if decided == found.truth[sample] else "wrong"
    name = found.classes[decided]
    box = element("rect", x=x + 1, y=y + 1, width=SMALL - 2, height=ROW - 2, rx=4, class_=kind)
    return element(
        "g", element("title", f"sample {sample}: {name}"), box, _text(name[:SHORTEST], x + SMALL / 2, y + 22, "middle")
    )


def _y(row: int) -> float:
    return PAD + 52 + row * ROW


def _text(text: str, x: float, y: float, kind: str = "") -> Html:
    return element("text", text, x=x, y=y, class_=kind or None)


def _cut(name: str) -> str:
    return name if len(name) <= LONGEST else "…" + name[1 - LONGEST :]
