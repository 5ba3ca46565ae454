"""Every network in every variant: it runs, it learns everywhere, it repeats, and only spikes enter its convolutions."""

import pytest
import torch
from torch import Tensor

from axonnx.models import (
    VARIANTS,
    BinaryMLP,
    BinaryResNet,
    Conv2d,
    LIFSettings,
    Network,
    RecurrentSNN,
    Sample,
    SpikingMLP,
    SpikingResNet,
    Variant,
    variant,
)
from axonnx.models.variant import BAYESIAN

STEPS, BATCH = 5, 4
SIDES = 6, 10  # height and width of what residual networks see
SMALL = {
    "binary-mlp": lambda v: BinaryMLP(6, [8, 7], 3, v),
    "binary-resnet": lambda v: BinaryResNet(3, (4, 6), 1, 3, v, size=SIDES),
    "binary-resnet-conv": lambda v: BinaryResNet(3, (4, 6), 1, 3, v, size=SIDES, shortcut="conv"),
    "spiking-mlp": lambda v: SpikingMLP(6, [8, 7], 3, v, LIFSettings(learn_decay=True), steps=STEPS),
    "recurrent": lambda v: RecurrentSNN(6, (8, 7), 3, v, steps=STEPS),
    "spiking-resnet": lambda v: SpikingResNet(2, (4, 6), 1, 3, v, size=SIDES, steps=STEPS),
    "spiking-resnet-conv": lambda v: SpikingResNet(2, (4, 6), 1, 3, v, size=SIDES, shortcut="conv", steps=STEPS),
}
RESNETS = [kind for kind in SMALL if "resnet" in kind]


def build(kind: str, v: Variant = BAYESIAN) -> Network:
    torch.manual_seed(6)
    return SMALL[kind](v)


def batch(kind: str, dtype: torch.dtype = torch.float32) -> Tensor:
    torch.manual_seed(7)
    if kind == "binary-mlp":
        return torch.rand(BATCH, 6, dtype=dtype)
    if kind.startswith("binary"):
        return torch.rand(BATCH, 3, *SIDES, dtype=dtype)
    shape = (2, *SIDES) if "resnet" in kind else (6,)
    return (torch.rand(STEPS, BATCH, *shape) < 0.4).to(dtype)


def loss_of(net: Network, kind: str, v: Variant, seed: int = 8) -> Tensor:
    """Cross-entropy and KL of a training pass, as the variant has them."""
    generator = torch.Generator().manual_seed(seed)
    dtype = next(net.parameters()).dtype
    x = batch(kind, dtype)
    output = net(x, Sample(generator)) if v.fire == "sample" else net(x)
    loss = torch.nn.functional.cross_entropy(output.logits, torch.tensor([0, 1, 2, 0]))
    return loss + 1e-3 * net.regulariser(output) if v.kl else loss


@pytest.mark.parametrize("name", sorted(VARIANTS))
@pytest.mark.parametrize("kind", SMALL)
def test_every_parameter_gets_a_finite_gradient_in_every_variant(kind, name):
    net, v = build(kind, variant(name)), variant(name)
    loss_of(net, kind, v).backward()
    learning = 0
    for parameter_name, parameter in net.named_parameters():
        assert parameter.grad is not None, parameter_name
        assert parameter.grad.isfinite().all(), parameter_name
        learning += int(parameter.grad.abs().max() > 0)
    assert learning >= 0.9 * len(list(net.parameters()))


@pytest.mark.parametrize("name", sorted(VARIANTS))
@pytest.mark.parametrize("kind", SMALL)
def test_parameter_groups_cover_every_parameter_once(kind, name):
    net = build(kind, variant(name))
    groups = net.parameter_groups()
    grouped = [id(parameter) for group in groups.values() for parameter in group]
    assert sorted(grouped) == sorted(id(parameter) for parameter in net.parameters())
    scales = {id(parameter) for parameter in groups["scales"]}
    named = {key for key, parameter in net.named_parameters() if id(parameter) in scales}
    assert named == {key for key, _ in net.named_parameters() if "std" in key}
    assert bool(named) == (variant(name).spread == "learned")


@pytest.mark.parametrize("kind", SMALL)
def test_a_seed_repeats_forward_and_backward_bit_for_bit(kind):
    runs = []
    for _ in range(2):
        net = build(kind)
        loss = loss_of(net, kind, BAYESIAN)
        loss.backward()
        runs.append([loss, *(parameter.grad for parameter in net.parameters())])
    assert all(torch.equal(a, b) for a, b in zip(*runs, strict=True))
    assert not torch.equal(loss, loss_of(net, kind, BAYESIAN, seed=9))


@pytest.mark.parametrize("kind", SMALL)
def test_float64_runs_in_float64(kind):
    net = build(kind).double()
    loss = loss_of(net, kind, BAYESIAN)
    loss.backward()
    assert loss.dtype == torch.float64
    assert all(parameter.grad.dtype == torch.float64 for parameter in net.parameters())


@pytest.mark.parametrize("v", [BAYESIAN, variant("sg-nbn-1")], ids=["bayesian", "baseline"])
@pytest.mark.parametrize("kind", RESNETS)
def test_only_spikes_enter_every_convolution_but_the_stem(kind, v):
    net = build(kind, v)
    seen: dict[str, set[float]] = {}
    for name, module in net.named_modules():
        if isinstance(module, Conv2d):
            module.register_forward_hook(
                lambda _, args, __, name=name: seen.update({name: set(args[0].unique().tolist())})
            )
    loss_of(net, kind, v)
    convolutions = {name for name, module in net.named_modules() if isinstance(module, Conv2d)}
    assert seen.keys() == convolutions
    for name in convolutions - {"trunk.stem"}:
        assert seen[name] <= {0.0, 1.0}, name
    assert any(seen[name] == {0.0, 1.0} for name in convolutions - {"trunk.stem"})


@pytest.mark.parametrize(
    ("make", "depth", "widths"),
    [(BinaryResNet, 26, {64, 128, 256, 512}), (SpikingResNet, 20, {32, 64, 128})],
    ids=["binary", "spiking"],
)
@pytest.mark.parametrize("shortcut", ["pool", "conv"])
def test_default_residual_networks_have_the_depth_of_the_paper(make, depth, widths, shortcut):
    """Convolutions on the main path (stem and two a block, no projections) and the read-out."""
    net = make(shortcut=shortcut)
    convolutions = {name: module for name, module in net.named_modules() if isinstance(module, Conv2d)}
    main_path = [name for name in convolutions if "projection" not in name]
    assert len(main_path) + 1 == depth
    assert {convolutions[name].posterior.raw_mean.shape[0] for name in main_path} == widths
    assert len(convolutions) - len(main_path) == (len(widths) - 1 if shortcut == "conv" else 0)


def test_the_default_recurrent_network_is_two_times_256():
    net = RecurrentSNN()
    assert [layer.synapse.posterior.raw_mean.shape for layer in net.hidden] == [(256, 700), (256, 256)]
    assert [layer.neuron.recurrent.posterior.raw_mean.shape for layer in net.hidden] == [(256, 256)] * 2
    assert net.readout.weight.shape == (20, 256)


@pytest.mark.parametrize("granularity", ["layer", "neuron", "weight"])
@pytest.mark.parametrize("kind", SMALL)
def test_every_granularity_trains(kind, granularity):
    v = Variant(granularity=granularity)
    net = build(kind, v)
    loss_of(net, kind, v).backward()
    assert all(parameter.grad.isfinite().all() for parameter in net.parameters())


def test_shapes_that_fit_no_network_are_refused():
    with pytest.raises(ValueError, match="hidden is empty; expected the sizes of at least one hidden layer"):
        BinaryMLP(4, [], 2)
    with pytest.raises(ValueError, match=r"input of 30×30 pixels cannot shrink 4 times; .* of 4, e.g. 32×32"):
        SpikingResNet(size=30)
    with pytest.raises(ValueError, match=r"input of 346×260 pixels cannot shrink 8 times; .*, e.g. 344×256"):
        SpikingResNet(size=(260, 346), stem_stride=2)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device on this machine")
@pytest.mark.parametrize("kind", SMALL)
def test_runs_unchanged_on_cuda(kind):
    net = build(kind).cuda()
    x = batch(kind).cuda()
    output = net(x, Sample(torch.Generator("cuda").manual_seed(1)))
    (output.logits.square().sum() + net.regulariser(output)).backward()
    assert all(parameter.grad.is_cuda and parameter.grad.isfinite().all() for parameter in net.parameters())
    torch.testing.assert_close(net(x).logits.cpu(), build(kind)(x.cpu()).logits, rtol=1e-3, atol=1e-3)
