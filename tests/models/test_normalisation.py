"""Batch norms against torch's own, and the scale and bias that they fold into."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from axonnx.models import MEAN_FIELD, BatchNorm, Conv2d, Current, Linear, Run, State, Variant, variant
from axonnx.models.variant import SG_BN


def run_of(module: nn.Module, step: int = 0, sequence: bool = False) -> Run:
    return Run(module, MEAN_FIELD, State(step), sequence)


def randomise(module: nn.Module) -> None:
    with torch.no_grad():
        module.scale += 0.3 * torch.randn_like(module.scale)
        module.bias += 0.3 * torch.randn_like(module.bias)


def torch_twin(norm: BatchNorm, row: int | None = None) -> nn.Module:
    """torch's batch norm with the parameters of ours (or of one of its time steps)."""
    scale, bias = (p.detach() if row is None else p.detach()[row] for p in (norm.scale, norm.bias))
    twin = (nn.BatchNorm2d if norm.spatial else nn.BatchNorm1d)(len(scale))
    twin.weight.data, twin.bias.data = scale.clone(), bias.clone()
    return twin


def data(norm: BatchNorm, *leading: int) -> Tensor:
    return 2.0 * torch.randn(*leading, 4, *(5,) * norm.spatial) + 1.0


@pytest.mark.parametrize("spatial", [0, 2], ids=["1d", "2d"])
def test_batch_norm_is_torchs_in_training_and_evaluation(spatial):
    """Outputs, input gradients and running statistics over three training batches, then evaluation."""
    norm = BatchNorm(4, spatial)
    randomise(norm)
    twin = torch_twin(norm)
    for _ in range(3):
        x = data(norm, 6).requires_grad_()
        y = x.detach().clone().requires_grad_()
        ours, theirs = norm(Current(x), run_of(norm)).mean, twin(y)
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)
        weight = torch.randn_like(ours)
        (ours * weight).sum().backward()
        (theirs * weight).sum().backward()
        torch.testing.assert_close(x.grad, y.grad, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(norm.scale.grad, twin.weight.grad, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(norm.bias.grad, twin.bias.grad, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(norm.running_mean, twin.running_mean)
    torch.testing.assert_close(norm.running_variance, twin.running_var)
    norm.eval(), twin.eval()
    x = data(norm, 6)
    torch.testing.assert_close(norm(Current(x), run_of(norm)).mean, twin(x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("spatial", [0, 2], ids=["1d", "2d"])
@pytest.mark.parametrize("stepwise", [False, True], ids=["sequence", "stepwise"])
def test_batch_norm_through_time_is_one_batch_norm_for_each_step(spatial, stepwise):
    steps = 3
    norm = BatchNorm(4, spatial, steps)
    randomise(norm)
    twins = [torch_twin(norm, t) for t in range(steps)]
    for training in (True, True, False):
        norm.train(training)
        x = data(norm, steps, 6)
        if stepwise:
            ours = torch.stack([norm(Current(x[t]), run_of(norm, step=t)).mean for t in range(steps)])
        else:
            ours = norm(Current(x), run_of(norm, sequence=True)).mean
        theirs = torch.stack([twin.train(training)(x[t]) for t, twin in enumerate(twins)])
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)
    for t, twin in enumerate(twins):
        torch.testing.assert_close(norm.running_mean[t], twin.running_mean)
        torch.testing.assert_close(norm.running_variance[t], twin.running_var)


def test_batch_norm_through_time_ends_with_its_steps():
    norm = BatchNorm(4, 0, steps=3)
    message = r"made for 3 steps; this pass reaches step 4. Build the network with steps=4, or give shorter input"
    with pytest.raises(ValueError, match=message):
        norm(Current(data(norm, 4, 2)), run_of(norm, sequence=True))
    with pytest.raises(ValueError, match=message):
        norm(Current(data(norm, 2)), run_of(norm, step=3))


@pytest.mark.parametrize("steps", [None, 3])
@pytest.mark.parametrize("spatial", [0, 2], ids=["1d", "2d"])
def test_folded_scale_and_bias_give_the_evaluated_output(spatial, steps):
    norm = BatchNorm(4, spatial, steps)
    randomise(norm)
    x = data(norm, 3, 6)
    for _ in range(3):
        norm(Current(data(norm, 3, 6)), run_of(norm, sequence=True))
    norm.eval()
    scale, bias = (row.view(-1, 1, 4, *(1,) * spatial) for row in norm.folded())
    evaluated = norm(Current(x), run_of(norm, sequence=True)).mean
    torch.testing.assert_close(scale * x + bias, evaluated, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("make", [lambda v: Linear(6, 4, v), lambda v: Conv2d(2, 4, 3, v)], ids=["linear", "conv2d"])
@pytest.mark.parametrize("granularity", ["layer", "neuron", "weight"])
def test_channel_scale_multiplies_the_mean_and_squares_into_the_variance(make, granularity):
    scaled, plain = make(Variant(granularity=granularity)), make(Variant(granularity=granularity, normalisation="none"))
    plain.posterior.load_state_dict(scaled.posterior.state_dict())
    randomise(scaled.norm)
    x = torch.rand(3, 6) if isinstance(scaled, Linear) else torch.rand(3, 2, 5, 5)
    a, b = (row.view(-1, *(1,) * (x.dim() - 2)) for row in scaled.norm.folded())
    with_scale, without = scaled(x, run_of(scaled)), plain(x, run_of(plain))
    torch.testing.assert_close(with_scale.mean, a * without.mean + b)
    torch.testing.assert_close(with_scale.variance, a.square() * without.variance)
    torch.testing.assert_close(plain.moments(x).mean, plain.product(x, plain.posterior.mean))


def test_normalisers_start_as_the_identity():
    for name in ("bbnn", "sg-bn", "sg-nbn-1"):
        norm = Linear(3, 4, variant(name)).norm.eval()
        scale, bias = norm.folded()
        torch.testing.assert_close(scale, torch.ones(4), rtol=1e-5, atol=0.0)  # ε of the batch norm
        assert (bias == 0).all()


def test_normalisers_are_those_of_the_variant():
    assert Linear(3, 4, Variant(normalisation="none")).norm is None
    assert Linear(3, 4, SG_BN).norm.steps is None
    assert Linear(3, 4, SG_BN.through_time(7)).norm.steps == 7


def test_batch_norm_over_time_is_torchs_over_all_steps():
    layer = Linear(3, 4, replace(SG_BN, normalisation="batch_over_time").through_time(5))
    assert isinstance(layer.norm, BatchNorm)
    randomise(layer.norm)
    twin, x = torch_twin(layer.norm), data(layer.norm, 5, 6)
    ours = layer.norm(Current(x), run_of(layer.norm, sequence=True)).mean
    torch.testing.assert_close(ours.flatten(0, 1), twin(x.flatten(0, 1)), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("training", [True, False])
def test_batch_norm_scales_noise_as_it_scales_the_mean(training):
    """A draw of weights, normalised with the statistics of the mean, has the variance that is handed on."""
    norm = BatchNorm(4)
    randomise(norm)
    with torch.no_grad():
        norm.running_mean += torch.randn(4)
        norm.running_variance *= 3.0
    norm.train(training)
    x, noise = data(norm, 6), torch.rand(6, 4)
    out = norm(Current(x, noise), run_of(norm))
    statistics = (x.mean(0), x.var(0, correction=0)) if training else (norm.running_mean, norm.running_variance)
    moved = (x + noise.sqrt() - statistics[0]) / torch.sqrt(statistics[1] + norm.epsilon) * norm.scale + norm.bias
    assert out.variance is not None
    torch.testing.assert_close((moved - out.mean).square(), out.variance, rtol=1e-4, atol=1e-5)
