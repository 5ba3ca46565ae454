"""Event pictures as PNG: two polarities in two colours, nothing where nothing happened, in the page itself."""

from __future__ import annotations

import base64
import math
import struct
import zlib

import numpy as np
from numpy.typing import NDArray

LEVELS = 8  # of each polarity
FADING = 0.6  # of an event's brightness from one step to the next
WIDEST = 48  # pixels of a side; larger sensors are summed down
PIXELS = 1_000_000  # of all pictures of a page: keeps it small
GREY, TRUECOLOUR, INDEXED = 0, 2, 3  # kinds of PNG
ON, OFF = (47, 111, 222), (224, 110, 0)

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
    """The same events on a sensor of ``widest`` pixels at the most."""
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
    """An image [C, H, W] of values from 0 to 255, grey or in colour, as a data URI."""
    pixels = image.clip(0, 255).astype(np.uint8)
    rows = pixels.transpose(1, 2, 0) if len(pixels) == 3 else pixels.mean(0).astype(np.uint8)[..., None]
    return _uri(_png(np.ascontiguousarray(rows), TRUECOLOUR if rows.shape[2] == 3 else GREY))


def data_uri(levels: Levels) -> str:
    """Indices [h, w] of the palette as a picture that needs no file of its own."""
    colours, alphas = palette()
    return _uri(_png(levels[..., None], INDEXED, _part(b"PLTE", colours) + _part(b"tRNS", alphas)))


def _uri(data: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(data).decode()


def _png(pixels: Levels, kind: int, extra: bytes = b"") -> bytes:
    """A PNG of pixels [h, w, samples]."""
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
