"""Products in the core: the stated order of their sums to the bit, by events and dense, and their gradients."""

import pytest
import torch
import torch.nn.functional as nnf
from torch import Tensor

from axonnx import native
from axonnx.models import MEAN_FIELD, Run
from axonnx.models.fast import core, products
from axonnx.models.fast.linear_moments import linear_moments
from axonnx.models.neurons import LeakyReadout

FOUND = native.core()
if FOUND is None:
    pytest.skip("installed without the native core", allow_module_level=True)


@pytest.fixture(params=FOUND.isas)
def isa(request, monkeypatch) -> str:
    monkeypatch.setattr(core, "_function", lambda name: FOUND.function(name, None, isa=request.param))
    return request.param


@pytest.fixture(params=["by events", "dense"])
def way(request, monkeypatch) -> str:
    """One of the two ways for every density."""
    for name in ("FORWARD_BY_EVENTS", "WEIGHTS_BY_EVENTS"):
        monkeypatch.setattr(products, name, 2.0 if request.param == "by events" else -1.0)
    return request.param


def drawn(sizes: tuple[int, int, int, int], density: float, graded: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Input [T, B, in], weights [out, in] and a bias."""
    torch.manual_seed(1)
    steps, batch, inputs, outputs = sizes
    x = (torch.rand(steps, batch, inputs) < density).float()
    if graded:
        x = x * torch.randint(1, 6, x.shape)
    return x.requires_grad_(), torch.randn(outputs, inputs).requires_grad_(), torch.randn(outputs).requires_grad_()


def in_order(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Σ_j in ascending order, from zero on, then the bias: every product and every sum is rounded."""
    total = torch.zeros(*x.shape[:-1], len(weight))
    for j in range(x.shape[-1]):
        total = total + x[..., j : j + 1] * weight[:, j]
    return total + bias


SIZES = [(3, 4, 37, 21), (1, 1, 1, 1), (2, 5, 300, 256), (5, 13, 16, 272)]


@pytest.mark.parametrize("density", [0.0, 0.1, 0.6, 1.0])
@pytest.mark.parametrize("graded", [False, True], ids=["spikes", "counts"])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_sums_have_the_stated_order(sizes, graded, density, way, isa):
    x, weight, bias = drawn(sizes, density, graded)
    found, activity = linear_moments(x, weight, bias)
    assert torch.equal(found, in_order(x, weight, bias))
    assert torch.equal(activity, x.square().sum(-1, keepdim=True))


@pytest.mark.parametrize("graded", [False, True], ids=["spikes", "counts"])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_gradients_are_those_of_the_plain_formulas(sizes, graded, way, isa):
    given, found = drawn(sizes, 0.3, graded), []
    by = torch.randn(*given[0].shape[:-1], sizes[3]), torch.randn(*given[0].shape[:-1], 1)
    for compute in (linear_moments, lambda x, w, b: (nnf.linear(x, w, b), x.square().sum(-1, keepdim=True))):
        double = compute is not linear_moments
        tensors = [x.double() if double else x for x in given]
        loss = sum((out * grad.to(out.dtype)).sum() for out, grad in zip(compute(*tensors), by, strict=True))
        found.append(torch.autograd.grad(loss, given))
    for ours, plain in zip(*found, strict=True):
        torch.testing.assert_close(ours, plain, rtol=0, atol=1e-5 * plain.abs().max().item())


def test_threads_change_no_bit(way, monkeypatch):
    monkeypatch.setattr(core, "_WORTH_A_THREAD", 1)
    found = []
    for threads in (1, 2, 3):
        monkeypatch.setattr(torch, "get_num_threads", lambda threads=threads: threads)
        given = drawn((3, 7, 100, 40), 0.2, False)
        out, activity = linear_moments(*given)
        found.append((out, *torch.autograd.grad(out.square().sum() + activity.square().sum(), given)))
    for other in found[1:]:
        assert all(torch.equal(x, y) for x, y in zip(found[0], other, strict=True))


def test_a_backward_pass_keeps_bits_of_spikes():
    x, weight, bias = drawn((10, 8, 160, 16), 0.2, False)
    sizes = {}

    def keep(tensor: Tensor) -> Tensor:
        sizes[tensor.data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        linear_moments(x, weight, bias)
    assert sum(sizes.values()) == x.numel() // 8 + 4 * weight.numel()


def test_bits_belong_to_one_version_of_a_tensor():
    x = torch.zeros(2, 3, 20)
    assert core.active_of(x).number == 0
    x[0, 0, 5] = 1.0
    assert core.active_of(x) == (core.active_of(x).bits, True, 1)
    assert torch.equal(core.unpack(core.active_of(x).bits, 20), x)
    x[1, 2, 19] = 2.0
    assert core.bits_of(x) is None
    assert core.active_of(x).number == 2


@pytest.mark.parametrize("shape", [(3, 2, 20), (3, 2, 5, 4, 6), (2, 18, 3, 3)])
def test_bits_are_channels_last_whatever_the_memory_order(shape, isa):
    x = (torch.rand(shape) < 0.5).float()
    last = x if len(shape) == 3 else x.movedim(-3, -1)
    again = x if len(shape) == 3 else last.contiguous().movedim(-1, -3)
    assert torch.equal(core.unpack(core.bits_of(x), last.shape[-1]), last)
    assert torch.equal(core.bits_of(x), core.bits_of(again))


@pytest.mark.parametrize("steps", [1, 9])
@pytest.mark.parametrize("read", ["total", "membrane", "both"])
def test_the_read_out_by_counts_is_that_of_every_step(steps, read, isa):
    """Forwards to the bit; its weights' gradients by one weighted count of the spikes."""
    torch.manual_seed(3)
    readout, found = LeakyReadout(37, 5), []
    spikes = (torch.rand(steps, 4, 37) < 0.3).float().requires_grad_()
    for by_steps in (False, True):
        run = Run(readout, MEAN_FIELD, sequence=True)
        if by_steps:
            weight = readout.weight
            current, membrane, total = in_order(spikes, weight, readout.bias), torch.zeros(4, 5), torch.zeros(4, 5)
            for arriving in current:
                membrane = readout.decay * membrane + arriving
                total = total + membrane
            logits = total / steps
        else:
            logits = readout(spikes, run)
            membrane = run.after[""].membrane
        torch.manual_seed(4)
        by = torch.randn(2, 4, 5)
        loss = {"total": by[0] * logits, "membrane": by[1] * membrane, "both": by[0] * logits + by[1] * membrane}[read]
        grads = torch.autograd.grad(loss.sum(), [spikes, readout.weight, readout.bias])
        found.append((logits, membrane, *grads))
    assert torch.equal(found[0][0], found[1][0])
    assert torch.equal(found[0][1], found[1][1])
    for ours, plain in zip(found[0][2:], found[1][2:], strict=True):
        torch.testing.assert_close(ours, plain, rtol=0, atol=1e-5 * plain.abs().max().item())
