"""Common ground of the model tests: one thread, a fixed seed, and a record of what statistical tests measured.

Statistical tests compare many numbers at once. A single honest comparison exceeds |z| = 4.5 with probability
6.8e-6, so a test of m comparisons raises a false alarm with probability at most m · 6.8e-6 (Bonferroni): under
1 % for the largest test here. Seeds are fixed, so a test that passed keeps passing until the code changes.
``pytest -s -k statistical tests/models`` shows the numbers.
"""

import math
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor

Z_LIMIT = 4.5


@pytest.fixture(scope="package", autouse=True)
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


@pytest.fixture
def measured(record_property, request) -> Callable[[str, float], None]:
    """Write a measured number to the test report and to the screen."""

    def write(name: str, value: float) -> None:
        record_property(name, value)
        print(f"\n    {request.node.name}: {name} = {value:.4g}", end="")

    return write


@pytest.fixture
def check_z(measured) -> Callable[[str, Tensor], None]:
    """Record the largest |z| of many comparisons and hold it under the limit."""

    def check(name: str, z: Tensor) -> None:
        largest = z.abs().max().item()
        measured(f"{name}: largest |z| of {z.numel()}", largest)
        assert largest < Z_LIMIT  # NaN fails too

    return check


@pytest.fixture
def check_moments(check_z) -> Callable[[str, Tensor, Tensor, Tensor], None]:
    """Compare Gaussian samples [n, …] with the mean and variance they should have.

    z of the mean: (x̄ − m) / √(v/n). z of the variance: (s² − v) / (v √(2/(n−1))), the Gaussian's standard error.
    Where v is 0 every sample must be the mean itself, up to rounding.
    """

    def check(name: str, samples: Tensor, mean: Tensor, variance: Tensor) -> None:
        n, samples = len(samples), samples.detach().double()
        mean = mean.detach().double().expand(samples.shape[1:])
        variance = variance.detach().double().expand(samples.shape[1:])
        noisy = variance > 0
        assert noisy.any(), "nothing to compare"
        torch.testing.assert_close(samples[:, ~noisy], mean[~noisy].expand(n, -1), rtol=1e-6, atol=1e-6)
        samples, mean, variance = samples[:, noisy], mean[noisy], variance[noisy]
        check_z(f"{name} mean", (samples.mean(0) - mean) / (variance / n).sqrt())
        check_z(f"{name} variance", (samples.var(0) / variance - 1) / math.sqrt(2 / (n - 1)))

    return check
