"""The loop: it learns, says what it did, and does the same again for the same seed."""

import math

import pytest
import torch

from axonnx.cli.options import settings_of
from axonnx.models import MEAN_FIELD, Sample
from axonnx.train import loop
from axonnx.train.build import make_network, prepare
from axonnx.train.config.read import read_config
from axonnx.train.loop import fit, new_training

from .tiny_runs import same_bits, tiny_config, tiny_network


def trained(data, **changes):
    config = tiny_config(data, **changes)
    network, prepared = tiny_network(config)
    return fit(network, prepared, config)


def weights_after(data, **changes) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in trained(data, **changes).network.state_dict().items()}


def test_a_binary_network_learns_the_embedded_digits():
    config = read_config("digits-static", settings_of(["--optimiser.epochs", "5", "--model.hidden", "[64]"]))
    prepared = prepare(config.data)
    training = fit(make_network(config, prepared), prepared, config)
    assert training.rows[-1]["test_accuracy"] > 0.8  # chance is 0.1
    assert training.rows[-1]["cross_entropy"] < 0.6 * training.rows[0]["cross_entropy"]


def test_a_spiking_network_learns_the_embedded_events(saccade):
    config, prepared = saccade
    training = fit(make_network(config, prepared), prepared, config)
    assert training.rows[-1]["test_accuracy"] > 0.5  # chance is 0.1
    assert all(0 < row["rate/hidden.0.neuron"] < 1 for row in training.rows)


@pytest.mark.parametrize("variant", ["bbnn", "mfa", "fpv", "nkl", "sg-bn", "sg-nbn-1"])
@pytest.mark.parametrize("time", [False, True])
def test_every_variant_learns_the_tiny_task(variant, time, frames, images):
    settings = {"variant": {"name": variant}, "optimiser__epochs": 15, "optimiser__weight_rate": 0.03}
    training = trained(frames if time else images, time=time, model__hidden=[12], **settings)
    assert training.rows[-1]["test_accuracy"] > 0.6  # chance is 1/3


def test_an_epoch_has_a_row_with_everything_the_issue_asks_for(frames):
    rows = trained(frames, model={"network": "recurrent-snn", "hidden": [6, 5]}, finetune__epochs=1).rows
    layers = ["hidden.0", "hidden.1"]
    synapses = [f"{layer}.{part}" for layer in layers for part in ("synapse", "neuron.recurrent")]
    assert [row["epoch"] for row in rows] == [1, 2, 3, 4]
    for row in rows:
        assert set(row) == {
            *("epoch", "phase", "loss", "cross_entropy", "kl", "train_accuracy", "gradient_norm", "rate"),
            *("weight_rate", "test_accuracy", "test_nll", "test_ece", "seconds", "waiting"),
            *(f"rate/{layer}.neuron" for layer in layers),
            *(f"{kind}/{layer}.neuron" for layer in layers for kind in ("lambda", "z")),
            *(f"gradient/{name}" for name in [*synapses, "readout"]),
        }
        assert all(math.isfinite(value) for value in row.values() if not isinstance(value, str))
        assert row["loss"] > row["cross_entropy"]
        assert row["rate"] == pytest.approx(sum(row[f"rate/{layer}.neuron"] for layer in layers) / 2, rel=1e-5)
        assert all(row[f"gradient/{name}"] > 0 for name in synapses)


def test_a_loss_is_cross_entropy_and_lambda_times_the_regulariser(frames):
    for row in trained(frames, regulariser={"weight": 0.25}).rows:
        assert row["loss"] == pytest.approx(row["cross_entropy"] + 0.25 * row["kl"], rel=1e-5)


def test_the_same_seed_gives_the_same_bits_and_another_seed_others(frames):
    one, again, other = (weights_after(frames, seed=seed) for seed in (1, 1, 2))
    assert same_bits(one, again)
    assert not same_bits(one, other)


@pytest.mark.parametrize("estimator", [{"name": "st"}, {"name": "gs", "k": 0.5}, {"name": "gr", "n": 2}])
def test_the_bits_do_not_depend_on_what_was_drawn_before(frames, estimator):
    """Gumbel–Rao draws from torch's global generator; a resumed run stands elsewhere in it."""
    config = tiny_config(frames, variant={"name": "sbnn", "estimator": estimator})
    found = []
    for drawn in (0, 5):
        network, prepared = tiny_network(config)
        torch.rand(drawn)
        found.append(dict(fit(network, prepared, config).network.state_dict()))
    assert same_bits(*found)


def test_training_leaves_the_global_generator_alone(frames):
    config = tiny_config(frames, variant={"name": "sbnn", "estimator": {"name": "gr"}})
    network, prepared = tiny_network(config)
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    fit(network, prepared, config)
    assert torch.equal(torch.rand(3), expected)


def test_noise_differs_between_epochs_and_processes():
    drawn = []
    for epoch, rank in ((0, 0), (1, 0), (0, 1)):
        noise = torch.Generator()
        with loop._seeded(noise, 7, epoch, rank, torch.device("cpu")):
            drawn.append(torch.rand(4, generator=noise))
    assert not any(torch.equal(drawn[i], drawn[j]) for i in range(3) for j in range(i))


@pytest.fixture
def fires(monkeypatch) -> list[tuple[int, object, float]]:
    """For each pass of training: the epoch's number of parameters' updates, how it fired, and the rate of weights."""
    seen = []
    step = loop._step

    def watched(wrapped, training, batch, fire, *rest):
        seen.append((training.epochs_done, fire, training.optimiser.param_groups[0]["lr"]))
        return step(wrapped, training, batch, fire, *rest)

    monkeypatch.setattr(loop, "_step", watched)
    return seen


def test_fine_tuning_is_mean_field_at_the_low_rate(frames, fires):
    rows = trained(frames, optimiser__epochs=2, finetune={"epochs": 2, "rate": 0.05}).rows
    assert [row["phase"] for row in rows] == ["train", "train", "finetune", "finetune"]
    for epoch, fire, rate in fires:
        assert isinstance(fire, Sample) if epoch < 2 else fire is MEAN_FIELD
        assert rate <= (0.005 if epoch < 2 else 0.05 * 0.005)
    assert max(rate for epoch, _, rate in fires if epoch == 2) == pytest.approx(0.05 * 0.005)


@pytest.mark.parametrize(("variant", "noisy"), [("sbnn", True), ("mfa", False), ("sg-bn", False)])
def test_a_variant_fires_in_training_as_it_says(frames, fires, variant, noisy):
    trained(frames, variant={"name": variant}, optimiser__epochs=1)
    assert {isinstance(fire, Sample) for _, fire, _ in fires} == {noisy}


def one_step(data, passes: int, **changes):
    """Gradients of one batch with so many noisy passes."""
    config = tiny_config(data, **changes)
    network, prepared = tiny_network(config)
    training = new_training(network, config, torch.device("cpu"))
    training.noise.manual_seed(3)
    batch = next(iter(loop.make_feeds(prepared, config, torch.device("cpu"), loop.World())["learn"].epoch(0)))
    fire = Sample(training.noise)
    loop._step(network, training, batch, fire, loop.Objective(1e-6), passes, 1.0 / passes)
    return {name: p.grad.clone() for name, p in network.named_parameters()}, training, batch


def test_several_passes_give_the_mean_of_their_gradients(frames):
    together, training, batch = one_step(frames, passes=3)
    network = training.network
    training.noise.manual_seed(3)
    total = {name: torch.zeros_like(p) for name, p in network.named_parameters()}
    for _ in range(3):
        network.zero_grad()
        output = network(batch.x, Sample(training.noise))
        loop.Objective(1e-6)(network, output, batch.labels).total.backward()
        for name, p in network.named_parameters():
            total[name] += p.grad / 3
    assert len({one["hidden.0.synapse.posterior.raw_mean"].sum() for one in (together, one_step(frames, 1)[0])}) == 2
    for name, gradient in total.items():
        torch.testing.assert_close(together[name], gradient, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(("variant", "passes"), [("sbnn", 3), ("mfa", 1)])
def test_samples_counts_noisy_passes_where_there_is_noise(frames, variant, passes, monkeypatch):
    counts = []
    step = loop._step
    monkeypatch.setattr(loop, "_step", lambda *a: (counts.append((a[5], a[6])), step(*a))[1])
    trained(frames, variant={"name": variant}, optimiser__samples=3, optimiser__epochs=1)
    assert set(counts) == {(passes, 1 / passes)}


def test_the_gradient_is_clipped_to_its_norm(frames):
    _, training, _ = one_step(frames, passes=1)
    norms = loop._gradient_norms(training.network)
    before = loop._total_norm(norms)
    plain = torch.nn.utils.get_total_norm([p.grad for p in training.network.parameters()])
    torch.testing.assert_close(before, plain)
    loop._clip(training.network, before, 2 * before.item())
    assert loop._total_norm(loop._gradient_norms(training.network)) == before
    loop._clip(training.network, before, 0.1 * before.item())
    torch.testing.assert_close(loop._total_norm(loop._gradient_norms(training.network)), 0.1 * before)


def test_clipping_changes_the_run(frames):
    assert not same_bits(weights_after(frames), weights_after(frames, optimiser__clip_norm=1e-3))


def test_a_run_in_two_halves_is_the_run_in_one(frames):
    """``fit(training=…)`` goes on where an earlier call stopped."""
    config = tiny_config(frames, optimiser__epochs=4)

    def stop(training):
        if training.epochs_done == 2:
            raise InterruptedError

    network, prepared = tiny_network(config)
    training = new_training(network, config, torch.device("cpu"))
    with pytest.raises(InterruptedError):
        fit(network, prepared, config, training=training, after_epoch=stop)
    fit(network, prepared, config, training=training)
    assert [row["epoch"] for row in training.rows] == [1, 2, 3, 4]
    assert same_bits(dict(network.state_dict()), weights_after(frames, optimiser__epochs=4))
