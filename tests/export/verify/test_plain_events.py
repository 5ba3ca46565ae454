"""The verifier's own generator: the published answers of Philox, the distribution, and the numbers that ship."""

from statistics import NormalDist

import numpy as np
import pytest

from axonnx.export.verify.plain_events import MASK, QUANTILES, philox_words, plain_normal
from axonnx.runtime.program.layer_noise import layer_key, normals, plain_normals

ANSWERS = [  # known-answer tests of Random123, philox4x32 with 10 rounds
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((MASK,) * 4, (MASK, MASK), (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


@pytest.mark.parametrize(("counter", "key", "words"), ANSWERS)
def test_philox_gives_the_published_words(counter, key, words):
    assert philox_words(counter, key) == words


@pytest.mark.parametrize("draw", [normals, plain_normals])
def test_the_runtime_draws_the_same_numbers(draw):
    drawn = draw(2**40 + 3, [0, 7], 2, 3, layer_key("noise/a"), 9)
    own = [[[plain_normal(2**40 + 3, s, 2 + t, "noise/a", n) for n in range(9)] for s in (0, 7)] for t in range(3)]
    assert np.abs(drawn - own).max() <= QUANTILES
    assert np.abs(drawn - np.roll(own, 1, 0)).max() > 0.1


def test_the_numbers_that_ship_are_normal():
    """Kolmogorov's distance of 100,000 numbers from N(0, 1): above 0.0043 with a probability of 5 %, as 1.36/√n."""
    drawn = np.sort(normals(0, list(range(10)), 0, 100, layer_key("noise/a"), 100).ravel())
    exact = np.array([NormalDist().cdf(float(x)) for x in drawn[::10]])
    share = np.arange(0, len(drawn), 10) / len(drawn)
    assert np.abs(exact - share).max() < 0.0043
    steps = normals(0, [0], 0, 2, layer_key("noise/a"), 50_000)[:, 0]
    assert abs(float(np.corrcoef(steps)[0, 1])) < 3 / np.sqrt(50_000)
