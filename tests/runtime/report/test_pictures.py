import base64
import struct
import zlib

import numpy as np
import pytest

from axonnx.runtime.report.pictures import LEVELS, WIDEST, faded, palette, photograph, picture_levels, shrink, sprite


def decode(uri: str) -> tuple[np.ndarray, dict[str, bytes]]:
    """Pixels [h, w, samples] and the parts of a PNG without filters; every checksum is checked."""
    kind, _, text = uri.partition(",")
    assert kind == "data:image/png;base64"
    data, parts, at = base64.b64decode(text), {}, 8
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    while at < len(data):
        length, name = struct.unpack(">I4s", data[at : at + 8])
        parts[name.decode()] = data[at + 8 : at + 8 + length]
        assert struct.unpack(">I", data[at + 8 + length : at + 12 + length])[0] == zlib.crc32(
            data[at + 4 : at + 8 + length]
        )
        at += 12 + length
    width, height, depth, colour = struct.unpack(">IIBB", parts["IHDR"][:10])
    assert depth == 8
    rows = np.frombuffer(zlib.decompress(parts["IDAT"]), np.uint8).reshape(height, -1)
    assert not rows[:, 0].any()
    return rows[:, 1:].reshape(height, width, {0: 1, 2: 3, 3: 1}[colour]), parts


def test_frames_stand_side_by_side():
    frames = np.zeros((3, 2, 4, 5), int)
    frames[1, 1, 2, 3] = 1  # on
    frames[2, 0, 0, 0] = 1  # off
    pixels, _ = decode(sprite(frames))
    assert pixels.shape == (4, 15, 1)
    assert pixels[2, 5 + 3, 0] == LEVELS - 1
    assert 0 < pixels[2, 10 + 3, 0] < LEVELS - 1  # fading
    assert pixels[0, 10, 0] == (LEVELS - 1) * LEVELS
    assert np.count_nonzero(pixels) == 3


def test_nothing_is_transparent():
    _, parts = decode(sprite(np.zeros((2, 2, 3, 3), int)))
    assert parts["tRNS"][0] == 0
    assert parts["tRNS"][LEVELS - 1] == 255
    assert len(palette()[0]) == 3 * LEVELS**2


def test_large_sensors_are_summed_down():
    frames = np.random.default_rng(0).integers(0, 3, (2, 2, 100, 130)).astype(float)
    small = shrink(frames)
    assert max(small.shape[-2:]) <= WIDEST
    assert small.sum() == frames.sum()
    assert picture_levels(frames).max() < LEVELS**2


@pytest.mark.parametrize("channels", [1, 3])
def test_other_numbers_of_channels_are_one_colour(channels):
    levels = picture_levels(np.ones((1, channels, 2, 2)))
    assert (levels % LEVELS == 0).all() or (levels < LEVELS).all()
    assert levels.any()


def test_traces_fade():
    frames = np.zeros((3, 1, 1, 1))
    frames[0] = 1
    assert faded(frames).ravel().tolist() == pytest.approx([1.0, 0.6, 0.36])


def test_photographs_keep_their_pixels():
    image = np.arange(2 * 3).reshape(1, 2, 3)
    assert decode(photograph(image))[0][..., 0].tolist() == image[0].tolist()
    colours = np.random.default_rng(0).integers(0, 256, (3, 4, 5))
    assert np.array_equal(decode(photograph(colours))[0], colours.transpose(1, 2, 0))
