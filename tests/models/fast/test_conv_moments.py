"""W ∗ x + b with Σ x² under each window: both results and all gradients, against the plain formulas under autograd."""

import os
import subprocess
import sys

import pytest
import torch
import torch.nn.functional as nnf

from axonnx import native
from axonnx.models import Conv2d, Variant
from axonnx.models.fast import conv_moments as module
from axonnx.models.fast import core
from axonnx.models.fast.conv_moments import Window, conv_moments
from axonnx.models.maths.current import Current
from axonnx.models.synapses import Synapse

# channels, outputs, kernel, window, map: odd and even, narrower and wider than vectors, each stride and padding.
SHAPES = {
    "3 × 3": (32, 32, (3, 3), Window([1, 1], [1, 1], [1, 1]), (8, 12)),
    "3 × 3 wide": (20, 64, (3, 3), Window([1, 1], [1, 1], [1, 1]), (8, 8)),
    "3 × 3 odd": (17, 33, (3, 3), Window([1, 1], [0, 0], [1, 1]), (9, 7)),
    "3 × 3 filled": (3, 5, (3, 3), Window([1, 1], [2, 2], [1, 1]), (7, 8)),
    "3 × 3 halved": (32, 48, (3, 3), Window([2, 2], [1, 1], [1, 1]), (8, 9)),
    "1 × 1": (5, 16, (1, 1), Window([2, 2], [0, 0], [1, 1]), (6, 7)),
    "2 × 3": (16, 7, (2, 3), Window([2, 1], [0, 2], [1, 1]), (8, 9)),
    "5 × 3 dilated": (4, 20, (5, 3), Window([1, 2], [2, 1], [2, 1]), (12, 11)),
    "far padding": (2, 32, (3, 3), Window([1, 1], [3, 3], [1, 1]), (5, 5)),
    "one pixel": (9, 4, (3, 3), Window([1, 1], [1, 1], [1, 1]), (1, 1)),
}
DENSITIES = [0.0, 0.1, 0.25, 0.45, 0.55, 0.7, 1.0, "counts", "numbers"]


def plain(x, weight, bias, window):
    """As the formulas say: the activity is the product of squares with ones."""
    flat, ones = x.flatten(0, -4), torch.ones_like(weight[:1])
    found = nnf.conv2d(flat, weight, bias, *window), nnf.conv2d(flat.square(), ones, None, *window)
    return tuple(part.unflatten(0, x.shape[:-3]) for part in found)


def inputs(shape, density):
    if density == "counts":
        return torch.randint(0, 16, shape).float()
    if density == "numbers":
        return torch.randint(-63, 64, shape).float() / 16 * (torch.rand(shape) < 0.6)
    return (torch.rand(shape) < density).float()


def on_grid(*shape):
    """Weights whose sums are exact in any order."""
    return torch.randint(-2048, 2048, shape).float() / 2**12


def given(case, density, lead=(2, 3)):
    torch.manual_seed(0)
    channels, outputs, kernel, window, size = SHAPES[case]
    return inputs((*lead, channels, *size), density), on_grid(outputs, channels, *kernel), on_grid(outputs), window


def relative(found, expected):
    return float((found - expected).norm() / expected.norm().clamp(min=1e-30))


@pytest.fixture(params=["by events", "dense", "chosen"])
def path(request, monkeypatch):
    """Each of the two ways, and the one that counting chooses."""
    if request.param != "chosen":
        share = 2.0 if request.param == "by events" else -1.0
        monkeypatch.setattr(module, "FORWARD_BY_EVENTS", share)
        monkeypatch.setattr(module, "WEIGHTS_BY_EVENTS", share)
    return request.param


@pytest.mark.parametrize("density", DENSITIES, ids=str)
@pytest.mark.parametrize("case", SHAPES)
def test_with_weights_on_a_grid_every_bit_is_that_of_the_plain_formulas(case, density, path):
    x, weight, bias, window = given(case, density)
    for ours, exact in zip(
        conv_moments(x, weight, bias, window), plain(*map(torch.Tensor.double, (x, weight, bias)), window), strict=True
    ):
        assert torch.equal(ours.double(), exact)


@pytest.mark.parametrize("density", [0.1, 0.55, "counts"], ids=str)
@pytest.mark.parametrize("case", SHAPES)
def test_products_by_events_and_dense_products_have_the_same_bits_for_any_weights(case, density, monkeypatch):
    x, weight, bias, window = given(case, density)
    weight, bias = torch.randn_like(weight), torch.randn_like(bias)
    found = []
    for share in (2.0, -1.0):
        monkeypatch.setattr(module, "FORWARD_BY_EVENTS", share)
        found.append(conv_moments(x, weight, bias, window)[0])
    assert torch.equal(*found)


@pytest.mark.parametrize("used", [(True, True), (True, False), (False, True)], ids=["both", "mean", "activity"])
@pytest.mark.parametrize("density", DENSITIES, ids=str)
@pytest.mark.parametrize("case", SHAPES)
def test_the_gradient_is_that_of_the_plain_formulas(case, density, used, path):
    x, weight, bias, window = given(case, density)
    exact = [part.double().requires_grad_() for part in (x, weight, bias)]
    ours = [part.clone().requires_grad_() for part in (x, weight, bias)]
    expected, found = plain(*exact, window), conv_moments(*ours, window)
    grads = [torch.randn_like(out) for out, wanted in zip(found, used, strict=True) if wanted]
    torch.autograd.backward([out for out, wanted in zip(found, used, strict=True) if wanted], grads)
    torch.autograd.backward(
        [out for out, wanted in zip(expected, used, strict=True) if wanted], [grad.double() for grad in grads]
    )
    for mine, right in zip(ours, exact, strict=True):
        if right.grad is None or (not used[0] and mine.grad is None):
            assert mine.grad is None or not mine.grad.any()
        else:
            assert relative(mine.grad.double(), right.grad) < 2e-6


@pytest.mark.parametrize("lead", [(7,), (2, 3), (2, 1, 3)], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_any_leading_axes_memory_orders_and_float64(lead, dtype):
    x, weight, bias, window = given("3 × 3 odd", 0.3, lead)
    x, weight, bias = (part.to(dtype) for part in (x, weight, bias))
    turned = x.movedim(-3, -1).contiguous().movedim(-1, -3)
    results = []
    for images in (x, turned):
        leaf = images.detach().requires_grad_()
        out, activity = conv_moments(leaf, weight, bias, window)
        (out.square().sum() + activity.square().sum()).backward()
        results.append((out.detach(), activity.detach(), leaf.grad))
    for ours, other, exact in zip(*results, [*plain(x, weight, bias, window), None], strict=True):
        assert torch.equal(ours, other)
        assert exact is None or torch.equal(ours, exact)


SCRIPT = """
import sys, torch
from axonnx.models.fast import core
from axonnx.models.fast.conv_moments import Window, conv_moments
torch.set_num_threads(int(sys.argv[1]))
core._WORTH_A_THREAD = 1
torch.manual_seed(0)
parts = []
for density in (0.1, 0.6):
    x = (torch.rand(3, 7, 18, 12, 12) < density).float().requires_grad_()
    weight, bias = torch.randn(33, 18, 3, 3, requires_grad=True), torch.randn(33, requires_grad=True)
    out, activity = conv_moments(x, weight, bias, Window([1, 1], [1, 1], [1, 1]))
    torch.autograd.backward([out, activity], [torch.randn_like(out), torch.randn_like(activity)])
    parts += [out, activity, x.grad, weight.grad, bias.grad]
torch.save([part.detach() for part in parts], sys.argv[2])
"""


def in_a_process(folder, isa, threads):
    path = folder / f"{isa}-{threads}.pt"
    subprocess.run(
        [sys.executable, "-c", SCRIPT, str(threads), str(path)], env={**os.environ, "AXONNX_ISA": isa}, check=True
    )
    return torch.load(path)


def test_results_do_not_depend_on_threads_nor_products_on_the_instruction_set(tmp_path):
    best, *others = native.needed_core().isas
    first = in_a_process(tmp_path, best, 1)
    for threads in (2, 3):
        for found, expected in zip(in_a_process(tmp_path, best, threads), first, strict=True):
            assert torch.equal(found, expected)
    for isa in others:
        for number, (found, expected) in enumerate(zip(in_a_process(tmp_path, isa, 2), first, strict=True)):
            if number % 5 < 2:
                assert torch.equal(found, expected)
            else:
                assert relative(found, expected) < 2e-6


def test_spikes_are_kept_as_bits():
    x, weight, bias, window = given("3 × 3", 0.2)
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: kept.append(tensor) or tensor, lambda tensor: tensor):
        conv_moments(x, weight.requires_grad_(), bias, window)
    assert [part.dtype for part in kept] == [torch.int16, torch.float32]
    assert kept[0].numel() * core.WORD == x.numel()
    assert kept[1].data_ptr() == weight.data_ptr()


def test_a_window_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="at least one window"):
        conv_moments(torch.ones(1, 1, 2, 4, 2), torch.ones(1, 2, 3, 3), None, Window([1, 1], [0, 0], [1, 1]))


@pytest.mark.parametrize("granularity", ["layer", "neuron", "weight"])
def test_a_layer_has_the_moments_of_the_general_formula(granularity):
    torch.manual_seed(2)
    layer = Conv2d(3, 4, (3, 2), Variant(granularity=granularity), stride=2, padding=(1, 0))
    x = (torch.rand(2, 5, 3, 8, 6) < 0.3).float()
    ours, general = layer.moments(x), Synapse.moments(layer, x)
    assert isinstance(ours, Current)
    assert torch.equal(ours.mean, general.mean)
    assert torch.equal(ours.variance, general.variance)


def test_grouped_convolutions_run_in_torch_and_are_named_once(caplog):
    core.say_in_torch.cache_clear()
    with caplog.at_level("INFO", "axonnx.models.fast.core"):
        for _ in range(2):
            Conv2d(4, 4, 3, groups=2).moments(torch.ones(1, 1, 4, 5, 5))
    assert [record.message for record in caplog.records] == ["grouped convolutions: no fused pass, computed by torch"]
