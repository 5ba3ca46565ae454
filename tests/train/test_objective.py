"""Cross-entropy + λ · KL, and the rates at which it is followed."""

import math

import pytest
import torch
import torch.nn.functional as nnf
from hypothesis import given
from hypothesis import strategies as st

from axonnx.models import MEAN_FIELD, Regulariser
from axonnx.train.config.settings import FinetuneConfig, OptimiserConfig
from axonnx.train.loop import _set_rates, new_training
from axonnx.train.objective import START, Objective, cosine_rate

from .tiny_runs import STEPS, tiny_config, tiny_network

FORMS, TOTALS = ("quadratic", "log"), ("mean", "sum")


@pytest.fixture
def passed(frames):
    """A network, what it gave for a batch, and the labels of that batch."""
    network, prepared = tiny_network(tiny_config(frames))
    torch.manual_seed(0)
    output = network(torch.rand(STEPS, 7, *prepared.shape[1:]).round(), MEAN_FIELD)
    return network, output, torch.arange(7) % 3


KINDS = [
    Regulariser(form, of, total) for form in ("quadratic", "log") for of in ("neuron", "weight") for total in TOTALS
]


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("weight", [1e-6, 0.5])
def test_the_regulariser_is_added_once_with_its_weight(passed, kind, weight):
    network, output, labels = passed
    loss = Objective(weight, kind)(network, output, labels)
    fit, kl = nnf.cross_entropy(output.logits, labels), network.regulariser(output, kind)
    assert kl > 0
    torch.testing.assert_close(loss.total, fit + weight * kl, rtol=0, atol=0)
    assert torch.equal(loss.cross_entropy, fit)
    assert torch.equal(loss.kl, kl)
    assert loss.total.requires_grad
    assert not loss.kl.requires_grad


def test_every_kind_of_regulariser_is_another(passed):
    network, output, labels = passed
    values = {Objective(1.0, kind)(network, output, labels).kl.item() for kind in KINDS}
    assert len(values) == len(KINDS)


def test_a_weight_for_each_layer_and_the_start_for_those_without_one(passed):
    network, output, labels = passed
    kind = Regulariser("log")
    loss = Objective({"hidden.1.neuron": 0.3}, kind)(network, output, labels)
    terms = kind.terms(network, output)
    count = sum(term.ratios for term in terms.values())
    expected = START * terms["hidden.0.neuron"].value + 0.3 * terms["hidden.1.neuron"].value
    torch.testing.assert_close(loss.total, loss.cross_entropy + expected / count)
    for name, seen in output.observations.items():
        torch.testing.assert_close(loss.squares[name], (seen.gap.square() / seen.variance).mean())


def test_without_weight_the_regulariser_is_not_even_computed(passed, monkeypatch):
    network, output, labels = passed

    def never(*_):
        raise AssertionError("the regulariser was computed")

    monkeypatch.setattr(Regulariser, "terms", never)
    loss = Objective(0.0)(network, output, labels)
    assert torch.equal(loss.total, loss.cross_entropy)
    assert loss.kl == 0
    with pytest.raises(AssertionError, match="was computed"):  # the trap works
        Objective(1e-9)(network, output, labels)


def test_label_smoothing_is_that_of_the_cross_entropy(passed):
    network, output, labels = passed
    loss = Objective(0.0, label_smoothing=0.1)(network, output, labels)
    assert torch.equal(loss.total, nnf.cross_entropy(output.logits, labels, label_smoothing=0.1))


def test_the_cosine_starts_at_one_passes_the_middle_and_ends_at_its_final_share():
    assert cosine_rate(0.0, 0.02) == 1.0
    assert cosine_rate(0.5, 0.02) == pytest.approx((1 + 0.02) / 2)
    assert cosine_rate(1.0, 0.02) == pytest.approx(0.02)
    assert cosine_rate(0.25, 0.0) == pytest.approx(0.5 * (1 + math.sqrt(0.5)))
    assert cosine_rate(0.3, 1.0) == 1.0


def test_the_warm_up_is_linear_and_the_cosine_follows():
    assert [cosine_rate(x, 0.1, warmup=0.2) for x in (0.0, 0.05, 0.1, 0.2)] == pytest.approx([0, 0.25, 0.5, 1])
    assert cosine_rate(0.6, 0.1, warmup=0.2) == pytest.approx(0.55)
    assert cosine_rate(1.0, 0.1, warmup=0.2) == pytest.approx(0.1)


@given(st.floats(0, 1), st.floats(1e-3, 1), st.floats(0, 3))
def test_a_rate_is_never_above_the_start_nor_negative(progress, final, warmup):
    assert 0.0 <= cosine_rate(progress, final, warmup) <= 1.0 + 1e-12


@given(st.floats(0, 1), st.floats(0, 1), st.floats(1e-3, 1))
def test_without_warm_up_rates_only_fall(one, other, final):
    early, late = sorted((one, other))
    assert cosine_rate(early, final) >= cosine_rate(late, final) - 1e-12


def rates_at(frames, epoch: float) -> tuple[float, float]:
    """Rates of weights and scales in a run of four epochs and two of fine-tuning."""
    config = tiny_config(frames).model_copy(
        update={
            "optimiser": OptimiserConfig(epochs=4, weight_rate=0.1, scale_rate=1.0, final_rate=0.5),
            "finetune": FinetuneConfig(epochs=2, rate=0.01),
        }
    )
    training = new_training(tiny_network(config)[0], config, torch.device("cpu"))
    _set_rates(training.optimiser, config, epoch)
    weights, scales = training.optimiser.param_groups
    return weights["lr"], scales["lr"]


def test_weights_and_scales_have_rates_of_their_own_on_the_same_cosine(frames):
    assert rates_at(frames, 0) == (0.1, 1.0)
    assert rates_at(frames, 2) == pytest.approx((0.075, 0.75))
    assert rates_at(frames, 4 - 1e-9) == pytest.approx((0.05, 0.5))


def test_fine_tuning_starts_at_its_low_rate_and_has_a_cosine_of_its_own(frames):
    assert rates_at(frames, 4) == pytest.approx((0.001, 0.01))
    assert rates_at(frames, 5) == pytest.approx((0.00075, 0.0075))
    assert rates_at(frames, 6) == pytest.approx((0.0005, 0.005))


def test_scales_are_the_logarithms_of_spreads_and_weights_all_the_rest(frames):
    config = tiny_config(frames)
    network, _ = tiny_network(config)
    training = new_training(network, config, torch.device("cpu"))
    names = {id(parameter): name for name, parameter in network.named_parameters()}
    weights, scales = ({names[id(p)] for p in group["params"]} for group in training.optimiser.param_groups)
    assert all("log" in name for name in scales)
    assert not any("log" in name for name in weights)
    assert weights | scales == set(names.values())
