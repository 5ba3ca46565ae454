"""Sampled collapse: members are draws from the posterior, repeatable, independent, and an ensemble in one file."""

import numpy as np
import pytest
import torch
from onnx import numpy_helper

from axonnx.export.collapsed import CollapseSettings, collapse_network
from axonnx.models import RecurrentSNN, SpikingMLP
from axonnx.runtime.format.contract import InputContract

from ..running import export
from ..small_networks import Recipe, build, counts, input_of

RECIPE = Recipe("recurrent-snn", granularity="neuron")
ARRIVING = input_of(RECIPE)


def weights(settings: CollapseSettings) -> list[torch.Tensor]:
    members = collapse_network(build(RECIPE), ARRIVING, settings).members
    return [member.network.hidden[0].synapse.weight for member in members]


def test_members_differ_from_each_other_and_from_the_means():
    drawn = weights(CollapseSettings("sampled", 4, seed=1))
    (mean,) = weights(CollapseSettings())
    everything = [*drawn, mean]
    for i, one in enumerate(everything):
        for other in everything[i + 1 :]:
            assert (one != other).float().mean() > 0.99


def test_the_same_seed_gives_the_same_file_and_another_seed_other_members():
    files = [
        export(build(RECIPE), ARRIVING, CollapseSettings("sampled", 3, seed=seed), trace=False).data
        for seed in (5, 5, 6)
    ]
    assert files[0] == files[1]
    assert files[0] != files[2]
    one, other = (weights(CollapseSettings("sampled", 3, seed=seed)) for seed in (5, 6))
    assert not any(torch.equal(a, b) for a in one for b in other)  # neighbouring seeds share no member


def test_more_members_leave_the_first_ones_as_they_are():
    few, many = weights(CollapseSettings("sampled", 2)), weights(CollapseSettings("sampled", 5))
    assert all(torch.equal(a, b) for a, b in zip(few, many, strict=False))


def test_draws_have_the_posteriors_mean_and_spread():
    """z = (w − a·m)/(a·σ) of all members together is standard normal: mean and variance within 4.5 standard errors."""
    torch.manual_seed(0)
    network = SpikingMLP(100, [100], 3)
    arriving = InputContract(name="events", shape=(100,), steps=5, largest=1)
    drawn = collapse_network(network, arriving, CollapseSettings("sampled", 10, seed=2)).members
    posterior = network.hidden[0].synapse.posterior
    z = torch.stack([(m.network.hidden[0].synapse.weight - posterior.mean) / posterior.std for m in drawn]).detach()
    n = z.numel()
    assert abs(float(z.mean())) < 4.5 / n**0.5
    assert abs(float(z.var()) - 1.0) < 4.5 * (2 / n) ** 0.5


@pytest.mark.parametrize("stored", ["int16", "float32"])
@pytest.mark.parametrize("mode", ["mfa", "sampled", "stochastic"])
@pytest.mark.parametrize("granularity", ["layer", "weight"])
def test_the_recurrent_diagonal_is_zero_in_every_file(mode, granularity, stored):
    recipe = Recipe("recurrent-snn", granularity=granularity, weights="trained")
    settings = CollapseSettings(mode, 3 if mode == "sampled" else 1, weights=stored)
    exported = export(build(recipe), ARRIVING, settings, trace=False)
    weight = "recurrent_weight" if stored == "float32" else f"recurrent_weight/{stored}"
    body = next(node for node in exported.model.graph.node if node.op_type == "Scan").attribute[0].g
    found = 0
    for tensor in body.initializer:
        if tensor.name.endswith((weight, "recurrent_spread")):
            values = numpy_helper.to_array(tensor)
            assert not np.diagonal(values).any()
            assert np.count_nonzero(values) > 0.9 * (values.size - len(values))
            found += 1
    assert found == 2 * settings.members * (2 if (mode, granularity) == ("stochastic", "weight") else 1)


def test_a_file_of_several_members_tells_what_they_agree_on(case_of):
    """Probabilities, entropy and mutual information are those of the members' logits, worked out in float64."""
    network = RecurrentSNN(18, [12], 5)
    exported = export(network, ARRIVING, CollapseSettings("sampled", 3), trace=False)
    names = [output.name for output in exported.session.get_outputs()]
    assert names == ["probabilities", "member_logits", "entropy", "mutual_information"]
    found = exported.on_onnxruntime(counts(ARRIVING, 7, 50), {})
    logits = found["member_logits"].astype(np.float64)
    each = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    mean = each.mean(0)
    entropy = -(mean * np.log(mean)).sum(-1)
    expected = -(each * np.log(each)).sum(-1).mean(0)
    np.testing.assert_allclose(found["probabilities"], mean, atol=1e-5)
    np.testing.assert_allclose(found["entropy"], entropy, atol=1e-5)
    np.testing.assert_allclose(found["mutual_information"], entropy - expected, atol=1e-5)
    assert found["member_logits"].shape == (3, 7, 5)
    assert found["mutual_information"].min() > -1e-5
    assert found["mutual_information"].max() > 1e-4  # the members do disagree
    np.testing.assert_allclose(found["probabilities"].sum(-1), 1.0, atol=1e-5)


def test_an_ensemble_of_one_is_a_plain_network():
    exported = export(build(RECIPE), ARRIVING, CollapseSettings("sampled", 1, seed=4), trace=False)
    assert [output.name for output in exported.session.get_outputs()] == ["logits"]
    assert exported.contract.collapse.seed == 4
    assert exported.collapsed.network is exported.collapsed.networks[0]


def test_an_ensemble_has_no_single_network():
    collapsed = collapse_network(build(RECIPE), ARRIVING, CollapseSettings("sampled", 2))
    with pytest.raises(ValueError, match=r"an ensemble has 2 networks; see \.networks"):
        _ = collapsed.network
