"""Noise by counter: the generator's known bits, the normal distribution, the same numbers however they are drawn."""

import math
from statistics import NormalDist

import numpy as np
import pytest

from axonnx.base.errors import AxonnxError
from axonnx.runtime.program.layer_noise import (
    check_key,
    coefficients,
    layer_key,
    normals,
    philox,
    plain_normals,
    to_normal,
)

TABLE_SUM = "0x1.08fb73fc67636p+7"


@pytest.mark.parametrize(
    ("counter", "seed", "words"),
    [
        ((0, 0, 0, 0), 0, (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((2**32 - 1,) * 4, 2**64 - 1, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            0x299F31D0A4093822,
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)
def test_philox_gives_its_published_words(counter, seed, words):
    assert tuple(int(word) for word in philox(tuple(np.uint64(word) for word in counter), seed)) == words


def test_quantiles_are_those_of_the_normal_distribution():
    words = np.unique(np.geomspace(1, 2**31 - 1, 3000).astype(np.uint64))
    expected = [-NormalDist().inv_cdf((2 * int(word) + 1) / 2**33) for word in words]
    assert np.abs(to_normal(words) - expected).max() < 1e-6
    assert np.array_equal(to_normal(words | np.uint64(2**31)), -to_normal(words))
    assert float(to_normal(np.zeros(1, np.uint64))[0]) == pytest.approx(6.338, abs=1e-3)


def test_the_table_is_the_same_numbers_for_ever():
    table = coefficients()
    assert table.shape == (32, 8)
    assert float(np.abs(table).sum()).hex() == TABLE_SUM


def test_a_million_draws_follow_the_normal_distribution():
    drawn = np.sort(normals(1, [0], 0, 1, 7, 1_000_000).ravel().astype(np.float64))
    cdf = 0.5 * np.array([math.erfc(-value / math.sqrt(2)) for value in drawn[::50]])
    ranks = np.arange(len(drawn))[::50] / len(drawn)
    distance = np.abs(cdf - ranks).max()
    assert distance < 1.63 / math.sqrt(len(drawn))  # Kolmogorov's 1 % point
    assert abs(drawn.mean()) < 4e-3
    assert abs(drawn.std() - 1) < 3e-3


def test_neighbours_are_not_correlated():
    base = normals(1, [0, 1], 0, 2, 7, 100_000)
    other = normals(1, [0], 0, 1, 8, 100_000)[0, 0]
    rows = [base[0, 0], base[0, 1], base[1, 0], other, np.roll(base[0, 0], 1), normals(2, [0], 0, 1, 7, 100_000)[0, 0]]
    correlations = np.corrcoef(rows)[np.triu_indices(len(rows), 1)]
    assert np.abs(correlations).max() < 4.5 / math.sqrt(100_000)


@pytest.mark.parametrize("count", [1, 3, 4, 5, 17, 64])
def test_compiled_and_plain_give_the_same_bits(count):
    arguments = (2**63 + 11, [0, 5, 2**32 - 1], 3, 4, layer_key("noise/a"), count)
    assert np.array_equal(normals(*arguments), plain_normals(*arguments))


def test_numbers_of_every_octave_are_compiled_to_the_same_bits():
    """A million words reach down to tail probabilities of some 2⁻²⁰."""
    arguments = (7, [1], 0, 1, 3, 1_000_000)
    assert np.array_equal(normals(*arguments), plain_normals(*arguments))


def test_any_part_is_part_of_the_whole():
    whole = normals(5, range(4), 0, 10, 3, 33)
    assert np.array_equal(normals(5, [2], 6, 3, 3, 33), whole[6:9, 2:3])
    assert np.array_equal(normals(5, [2], 6, 3, 3, 20), whole[6:9, 2:3, :20])


def test_what_does_not_fit_the_counter_is_refused():
    for arguments in ((-1, [0], 0), (2**64, [0], 0), (0, [2**32], 0), (0, [0], 2**32)):
        with pytest.raises(AxonnxError, match="expected 0 …"):
            check_key(*arguments)
