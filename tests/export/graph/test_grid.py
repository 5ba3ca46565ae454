"""The sum-exact grid: any order of additions gives the same bits, it is as fine as it can be, and it refuses."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from axonnx.base.errors import AxonnxError
from axonnx.export.graph.grid import Part, finest_grid, on_grid, units
from axonnx.export.graph.ranges import SPIKES, Range
from axonnx.runtime.format.values import UNITS

FAST = settings(max_examples=100, deadline=None, derandomize=True)
RANGES = [SPIKES, Range(3.0, 0), Range(255.0, 0), Range(1.0, 4), Range(255 / 64, 6), Range(7.0, 0)]
seeds = st.integers(0, 2**32 - 1)


def random_part(
    generator: np.random.Generator, rows: int, inputs: int, arriving: Range, bias: bool = True, scale: float = 0.0
) -> Part:
    """Weights of a scale that may be any of many orders of magnitude, some of them zero."""
    scale = scale or 10.0 ** generator.uniform(-4, 2)
    weight = generator.standard_normal((rows, inputs)) * scale * (generator.random((rows, inputs)) < 0.9)
    shift = generator.standard_normal(rows) * scale if bias else None
    return Part(_tensor(weight), None if shift is None else _tensor(shift), arriving)


def random_input(generator: np.random.Generator, arriving: Range, inputs: int) -> np.ndarray:
    """Values of the range, extremes and zeros among them, negative ones too."""
    largest = int(arriving.largest * 2**arriving.bits)
    values = generator.integers(-largest, largest, (inputs,), endpoint=True)
    values = np.where(generator.random(inputs) < 0.3, np.sign(values) * largest, values)
    return (values * (generator.random(inputs) < 0.8) * 2.0**-arriving.bits).astype(np.float32)


def rounded(part: Part, s: int) -> Part:
    return Part(on_grid(part.weight, s), None if part.bias is None else on_grid(part.bias, s), part.reached_by)


@FAST
@given(seeds, st.integers(1, 300), st.sampled_from(RANGES), st.booleans())
def test_every_order_and_every_split_gives_the_same_bits(seed, inputs, arriving, bias):
    generator = np.random.default_rng(seed)
    part = random_part(generator, 3, inputs, arriving, bias)
    part = rounded(part, finest_grid([part]))
    x = random_input(generator, arriving, inputs)
    weight = part.weight.numpy()
    summands = np.concatenate([x * weight, part.bias.numpy()[:, None]], 1) if part.bias is not None else x * weight
    exact = summands.astype(np.float64).sum(1)
    order = generator.permutation(summands.shape[1])
    cuts = np.sort(generator.integers(0, summands.shape[1] + 1, 4))
    found = {
        "in order": np.cumsum(summands, 1, dtype=np.float32)[:, -1],
        "backwards": np.cumsum(summands[:, ::-1], 1, dtype=np.float32)[:, -1],
        "permuted": np.cumsum(summands[:, order], 1, dtype=np.float32)[:, -1],
        "pairwise": summands.sum(1, dtype=np.float32),
        "split": sum(
            np.cumsum(piece, 1, dtype=np.float32)[:, -1] for piece in np.split(summands, cuts, 1) if piece.size
        ),
        "positive first": np.sort(summands, 1)[:, ::-1].cumsum(1, dtype=np.float32)[:, -1],
    }
    for name, value in found.items():
        assert value.dtype == np.float32
        assert np.array_equal(value.astype(np.float64), exact), name


@FAST
@given(seeds, st.integers(1, 300), st.sampled_from(RANGES))
def test_matrix_products_of_torch_and_numpy_give_the_same_bits(seed, inputs, arriving):
    generator = np.random.default_rng(seed)
    part = random_part(generator, 5, inputs, arriving)
    part = rounded(part, finest_grid([part]))
    x = np.stack([random_input(generator, arriving, inputs) for _ in range(4)])
    weight, bias = part.weight.numpy(), part.bias.numpy()
    exact = (x.astype(np.float64) @ weight.T.astype(np.float64) + bias).astype(np.float32)
    fused = np.full((4, 5), 0.0)
    for j in range(inputs):  # a fused multiply-add rounds once; float64 holds the product, and one rounding follows
        fused = (fused + x[:, j : j + 1].astype(np.float64) * weight[:, j]).astype(np.float32).astype(np.float64)
    assert np.array_equal(x @ weight.T + bias, exact)
    assert np.array_equal(np.einsum("bj,ij->bi", x, weight) + bias, exact)
    assert np.array_equal(torch.nn.functional.linear(_tensor(x), part.weight, part.bias).numpy(), exact)
    assert np.array_equal(fused.astype(np.float32) + bias, exact)


@FAST
@given(seeds, st.integers(1, 40), st.integers(1, 40), st.sampled_from(RANGES))
def test_an_input_sum_and_a_recurrent_sum_share_an_accumulator(seed, inputs, neurons, arriving):
    generator = np.random.default_rng(seed)
    scale = 10.0 ** generator.uniform(-4, 2)
    parts = [
        random_part(generator, neurons, inputs, arriving, True, scale),
        random_part(generator, neurons, neurons, SPIKES, False, scale * generator.uniform(0.1, 3)),
    ]
    s = finest_grid(parts)
    feed, recurrent = (rounded(part, s) for part in parts)
    x = random_input(generator, arriving, inputs)
    spikes = (generator.random(neurons) < 0.5).astype(np.float32)
    summands = np.concatenate([x * feed.weight.numpy(), spikes * recurrent.weight.numpy()], 1)
    summands = np.concatenate([summands, feed.bias.numpy()[:, None]], 1)
    order = generator.permutation(summands.shape[1])
    mixed = np.cumsum(summands[:, order], 1, dtype=np.float32)[:, -1]
    apart = (feed.weight.numpy() @ x + feed.bias.numpy()) + recurrent.weight.numpy() @ spikes
    assert np.array_equal(mixed, apart)
    assert units([feed, recurrent], s) < UNITS


@FAST
@given(seeds, st.integers(1, 200), st.sampled_from(RANGES), st.sampled_from([None, 127, 32767]))
def test_the_grid_is_as_fine_as_it_can_be(seed, inputs, arriving, largest_integer):
    part = random_part(np.random.default_rng(seed), 3, inputs, arriving)
    s = finest_grid([part], largest_integer)

    def holds(at: int) -> bool:
        there = rounded(part, at)
        small = largest_integer is None or float(there.weight.abs().max()) * 2.0**at <= largest_integer
        return units([there], at) < UNITS and small

    assert holds(s)
    assert s == 30 or not holds(s + 1)


@pytest.mark.parametrize(("largest_integer", "kind"), [(127, np.int8), (32767, np.int16)])
@pytest.mark.parametrize("largest", [1e-3, 1.0, 100.0])
def test_integer_grids_fit_their_type(largest_integer, kind, largest):
    weight = largest * (2 * torch.rand(8, 50) - 1)
    s = finest_grid([Part(weight, None, SPIKES)], largest_integer)
    integers = on_grid(weight, s).double().numpy() * 2.0**s
    assert np.array_equal(integers, integers.astype(kind))
    assert np.abs(integers).max() > np.iinfo(kind).max / 4  # and they use it


def test_a_grid_step_is_tiny_beside_the_weights():
    weight = torch.randn(256, 700) / math.sqrt(700)
    s = finest_grid([Part(weight, torch.zeros(256), Range(3.0, 0))])
    assert 2.0**-s < 1e-3 * weight.std()
    assert (on_grid(weight, s) - weight).abs().max() <= 2.0 ** -(s + 1)


def test_zero_weights_and_a_single_weight_have_a_grid():
    assert finest_grid([Part(torch.zeros(4, 3), torch.zeros(4), SPIKES)]) == 30
    assert finest_grid([Part(torch.zeros(4, 3), None, SPIKES)], 127) == 30
    assert finest_grid([Part(torch.ones(1, 1), None, SPIKES)]) == 23  # 2^24 steps of 2^-24 are one too many
    assert finest_grid([Part(torch.tensor([[1.0, -1.0]]), None, SPIKES)]) == 22
    assert finest_grid([Part(torch.ones(1, 1), None, SPIKES)], 127) == 6


def test_rounding_is_to_the_nearest_and_ties_go_to_even():
    values = torch.tensor([0.5, 1.5, 2.5, -0.5, -1.5, 0.4999, 3.0])
    assert on_grid(values, 0).tolist() == [0.0, 2.0, 2.0, 0.0, -2.0, 0.0, 3.0]
    assert on_grid(values, 1).tolist() == [0.5, 1.5, 2.5, -0.5, -1.5, 0.5, 3.0]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("place", ["weight", "bias"])
def test_numbers_that_are_not_finite_are_refused(bad, place):
    weight, bias = torch.ones(2, 2), torch.ones(2)
    (weight if place == "weight" else bias)[0] = bad
    with pytest.raises(AxonnxError, match=r"^hidden\.weight: they hold numbers that are not finite\. Train again"):
        finest_grid([Part(weight, bias, SPIKES)], where="hidden.weight")


def test_weights_beyond_measure_are_refused():
    with pytest.raises(AxonnxError, match=r"hidden\.weight: sums of up to 1e\+20.*vanish.*lower learning rate"):
        finest_grid([Part(torch.tensor([[1e20, 1.0]]), None, SPIKES)], where="hidden.weight")


@pytest.mark.parametrize("largest_integer", [None, 32767])
def test_recurrent_weights_that_would_drown_in_the_sum_they_join_are_refused(largest_integer):
    feed, recurrent = (
        Part(torch.full((4, 700), 100.0), None, Range(255.0, 0)),
        Part(torch.full((4, 4), 1e-2), None, SPIKES),
    )
    assert finest_grid([feed]) < 0 < finest_grid([recurrent])
    with pytest.raises(AxonnxError, match="vanish"):
        finest_grid([feed, recurrent], largest_integer)


def test_weights_that_integers_would_lose_beside_larger_ones_are_refused_with_the_remedy():
    parts = [Part(torch.ones(4, 7), None, SPIKES), Part(torch.full((4, 4), 1e-5), None, SPIKES)]
    assert finest_grid(parts) > 16
    text = r"hidden\.weight: as integers of up to 32,767 .* nothing of the small ones .* or as float32"
    with pytest.raises(AxonnxError, match=text) as refused:
        finest_grid(parts, 32767, "hidden.weight")
    assert refused.value.options == ("weights",)


def test_sums_too_long_for_their_weights_are_refused():
    """700 squares of up to 255² exceed 2^24: ones would be rounded to zero."""
    with pytest.raises(AxonnxError, match="clip or centre the input"):
        finest_grid([Part(torch.ones(1, 700), None, Range(255.0**2, 0))])


def _tensor(values: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(values.astype(np.float32))
