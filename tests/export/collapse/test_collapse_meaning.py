"""What collapse means: the training network's mean-field or noisy pass, with other numbers for the same things."""

import copy
from itertools import cycle

import pytest
import torch
from torch import Tensor

from axonnx.export.collapse.network import WeightChoice, collapse
from axonnx.export.collapsed import CollapseSettings, collapse_network
from axonnx.models import MEAN_FIELD, BatchNorm, ChannelScale, Network, Output, Recurrent, Replay, Run
from axonnx.models.run import Observation
from axonnx.models.synapses import Synapse

from ..cases import FACTORS
from ..small_networks import Recipe, build, counts, input_of

NETWORKS = FACTORS["network"]
SPIKING = tuple(network for network in NETWORKS if not network.startswith("binary"))
STEPS = 40


def recipes(*variants: str, networks: tuple[str, ...] = NETWORKS, **options: str) -> list[Recipe]:
    """Each network with each variant, the resets in turn."""
    resets = cycle(("subtract", "zero"))
    return [
        Recipe(network, variant, reset=next(resets) if network in SPIKING else "subtract", **options)
        for variant in variants
        for network in networks
    ]


def name_of(recipe: Recipe) -> str:
    return f"{recipe.network}-{recipe.variant}-{recipe.granularity}-{recipe.reset}"


def same_bits(one: Output, other: Output) -> int:
    """How many spikes, membranes and logits were compared; all of them must be equal."""
    compared = 0
    assert one.observations.keys() == other.observations.keys()
    for name, seen in one.observations.items():
        there = other.observations[name]
        assert torch.equal(seen.spikes, there.spikes), name
        assert torch.equal(seen.gap, there.gap), name
        compared += seen.spikes.numel()
    assert torch.equal(one.logits, other.logits)
    return compared


@torch.no_grad()
def load_grid(training: Network, collapsed: Network) -> Network:
    """The training network with the collapsed weights for means, scale 1 and the collapsed bias."""
    loaded = copy.deepcopy(training).eval()
    for name, module in loaded.named_modules():
        if isinstance(module, Synapse):
            source = collapsed.get_submodule(name)
            module.posterior.raw_mean.copy_(source.weight)
            if isinstance(module.norm, ChannelScale):
                module.norm.scale.fill_(1.0)
                module.norm.bias.copy_(source.bias)
        elif isinstance(module, Recurrent):
            module.posterior.raw_mean.copy_(collapsed.get_submodule(name.rpartition(".")[0]).recurrent_weight)
    loaded.readout.weight.copy_(collapsed.readout.weight)
    loaded.readout.bias.copy_(collapsed.readout.bias)
    return loaded


def gap_of_collapsed(output: Output, collapsed: Network) -> Output:
    """The collapsed layers tell membranes, the training layers h* − θ."""
    seen = {
        name: Observation(entry.gap - collapsed.get_submodule(name).threshold, entry.variance, entry.spikes)
        for name, entry in output.observations.items()
    }
    return Output(output.logits, output.state, seen)


@pytest.mark.parametrize("recipe", recipes("sbnn", "fpv", "sg-bn", decay="learned", weights="trained"), ids=name_of)
def test_without_the_grid_it_is_the_mean_field_pass_up_to_rounding(recipe):
    training = build(recipe)
    collapsed = collapse(training, WeightChoice())
    x = counts(input_of(recipe), 5, STEPS)
    with torch.no_grad():
        expected, found = training(x, MEAN_FIELD), gap_of_collapsed(collapsed(x), collapsed)
    differing = sum(
        int((seen.spikes != found.observations[n].spikes).sum()) for n, seen in expected.observations.items()
    )
    assert differing == 0
    torch.testing.assert_close(found.logits, expected.logits, rtol=1e-4, atol=1e-4)
    for name, seen in expected.observations.items():
        assert torch.equal(seen.spikes, found.observations[name].spikes), name
        torch.testing.assert_close(found.observations[name].gap, seen.gap, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "recipe",
    [
        *recipes("sbnn", "sg-nbn-1", decay="learned", weights="trained"),
        *recipes("sg-bn", networks=SPIKING, weights="trained"),  # without time, batch norm is folded into the weights
    ],
    ids=name_of,
)
def test_with_the_grid_weights_loaded_back_it_is_the_mean_field_pass_bit_for_bit(recipe):
    training = build(recipe)
    collapsed = collapse_network(training, input_of(recipe)).network
    loaded = load_grid(training, collapsed)
    x = counts(input_of(recipe), 5, STEPS)
    with torch.no_grad():
        found = gap_of_collapsed(collapsed(x), collapsed)
        assert same_bits(loaded(x, MEAN_FIELD), found) > 0


@pytest.mark.parametrize(
    "recipe",
    [
        *recipes("sbnn"),
        *recipes("sbnn", networks=("recurrent-snn", "binary-resnet", "spiking-mlp"), granularity="neuron"),
        *recipes("sbnn", networks=("recurrent-snn", "spiking-resnet", "binary-mlp"), granularity="weight"),
    ],
    ids=name_of,
)
def test_a_stochastic_collapse_is_the_replayed_noisy_pass_bit_for_bit(recipe):
    """Scale 1 from the start, so that variances are the same products; weights on the grid in both."""
    training = build(recipe)
    with torch.no_grad():
        for module in training.modules():
            if isinstance(module, ChannelScale):
                module.scale.fill_(1.0)
    collapsed = collapse_network(training, input_of(recipe), CollapseSettings("stochastic")).network
    loaded = load_grid(training, collapsed)
    if recipe.granularity == "weight":
        load_variances(loaded, collapsed)
    x = counts(input_of(recipe), 5, STEPS)
    with torch.no_grad():
        quiet = training(x).observations
        noise = Replay({name: torch.randn(seen.spikes.shape) for name, seen in quiet.items()})
        found = gap_of_collapsed(collapsed(x, noise), collapsed)
        assert same_bits(loaded(x, noise), found) > 0
    assert any(not torch.equal(seen.spikes, found.observations[name].spikes) for name, seen in quiet.items())


@torch.no_grad()
def load_variances(loaded: Network, collapsed: Network) -> None:
    """σ² of single weights is on a grid too; exp(2 log σ) cannot be told to be a certain number, so it is replaced."""
    for name, module in loaded.named_modules():
        if isinstance(module, Synapse):
            _fix_variance(module.posterior, collapsed.get_submodule(name).spread)
        elif isinstance(module, Recurrent):
            _fix_variance(module.posterior, collapsed.get_submodule(name.rpartition(".")[0]).recurrent_spread)


def _fix_variance(posterior, variance: Tensor) -> None:
    fixed = type("Fixed", (type(posterior),), {"variance": property(lambda _self: variance)})
    posterior.__class__ = fixed


@pytest.mark.parametrize("prune", [None, 0.5])
@pytest.mark.parametrize("granularity", FACTORS["granularity"])
@pytest.mark.parametrize("network", ["recurrent-snn", "binary-resnet"])
def test_variances_are_scaled_by_the_square_of_their_channels_scale(network, granularity, prune):
    """Pruned weights, whose variance goes with them, are set to zero in the training network's σ² by hand."""
    training = build(Recipe(network, granularity=granularity))
    collapsed = collapse(training, WeightChoice(prune=prune), stochastic=True)
    name = "trunk.stem" if network == "binary-resnet" else "hidden.0.synapse"
    synapse = training.get_submodule(name)
    x = counts(input_of(Recipe(network)), 5, 1)[-5:].reshape(5, *((18,) if network == "recurrent-snn" else (3, 8, 8)))
    kept = WeightChoice(prune=prune).kept(synapse.posterior)
    scale = synapse.norm.scale.detach().reshape(-1, *(1,) * (synapse.posterior.raw_mean.dim() - 1))
    expected = synapse.product(x.square(), synapse.posterior.full_variance.detach() * kept * scale.square())
    found = collapsed.get_submodule(name)(x, Run(collapsed, MEAN_FIELD)).variance
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)
    assert prune is None or 0.1 < kept.mean() < 0.95


def test_batch_norm_is_folded_with_its_running_statistics():
    training = build(Recipe("binary-mlp", "sg-bn"))
    norm, weight = training.hidden[0].synapse.norm, training.hidden[0].synapse.posterior.raw_mean
    assert isinstance(norm, BatchNorm)
    folded = collapse(training, WeightChoice()).hidden[0].synapse
    gain = norm.scale / torch.sqrt(norm.running_variance + norm.epsilon)
    torch.testing.assert_close(folded.weight, weight.detach() * gain.detach()[:, None])
    torch.testing.assert_close(folded.bias, (norm.bias - norm.running_mean * gain).detach())


def test_the_original_network_is_left_alone():
    training = build(Recipe("recurrent-snn"))
    before = {name: value.clone() for name, value in training.state_dict().items()}
    training.train()
    collapse_network(training, input_of(Recipe("recurrent-snn")), CollapseSettings("sampled", 2))
    assert training.training
    assert all(torch.equal(before[name], value) for name, value in training.state_dict().items())
