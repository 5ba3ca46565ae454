"""Gradient accumulation: a batch in pieces gives the gradient of the batch, up to the order of additions."""

import pytest
import torch

from axonnx.base.errors import AxonnxError
from axonnx.models import MEAN_FIELD, Regulariser
from axonnx.train import loop
from axonnx.train.feed import Batch
from axonnx.train.objective import Objective

from .tiny_runs import tiny_config, tiny_network

CPU = torch.device("cpu")


def gradient(config, pieces, of="neuron"):
    """Of the first batch, in float64, so that only mistakes differ, not roundings."""
    network, prepared = tiny_network(config)
    training = loop.new_training(network.double(), config, CPU)
    first = next(iter(loop.make_feeds(prepared, config, CPU, loop.World())["learn"].epoch(0)))
    batch = Batch(first.x.double(), first.labels)
    parts = loop._step(network, training, batch, MEAN_FIELD, Objective(0.1, Regulariser(of=of)), 1, 1.0, pieces)
    assert sum(len(part.batch.labels) for part in parts) == len(batch.labels)
    return len(parts), {name: p.grad for name, p in network.named_parameters()}


@pytest.mark.parametrize("of", ["neuron", "weight"])
@pytest.mark.parametrize("pieces", [2, 3, 100])
def test_the_gradient_is_that_of_the_whole_batch(frames, pieces, of):
    config = tiny_config(frames, optimiser={"epochs": 1, "batch_size": 10}, variant={"name": "mfa"})
    one, whole = gradient(config, 1, of)
    count, split = gradient(config, pieces, of)
    assert (one, count) == (1, min(pieces, 10))
    assert any(values.abs().max() > 0 for values in whole.values())
    for name, values in whole.items():
        torch.testing.assert_close(split[name], values, rtol=1e-9, atol=1e-13)


def test_images_have_no_axis_of_time(images):
    config = tiny_config(images, time=False, optimiser={"epochs": 1, "batch_size": 10}, variant={"name": "mfa"})
    (_, whole), (_, split) = gradient(config, 1), gradient(config, 3)
    for name, values in whole.items():
        torch.testing.assert_close(split[name], values, rtol=1e-9, atol=1e-13)


def test_a_run_in_pieces_reports_what_one_in_whole_batches_does(frames):
    """In float32 the sums of pieces round differently; their rows agree to some digits, here for two epochs."""
    rows = []
    for pieces in (1, 3):
        optimiser = {"epochs": 2, "batch_size": 10, "accumulate": pieces}
        config = tiny_config(frames, optimiser=optimiser, variant={"name": "mfa"})
        network, prepared = tiny_network(config)
        rows.append(loop.fit(network, prepared, config).rows[0])
    assert rows[0].keys() == rows[1].keys()
    for name in ("loss", "cross_entropy", "kl", "train_accuracy", "rate", "gradient_norm"):
        assert rows[1][name] == pytest.approx(rows[0][name], rel=1e-4), name


def test_batch_normalisation_is_refused(frames):
    optimiser = {"epochs": 1, "batch_size": 10, "accumulate": 2}
    config = tiny_config(frames, optimiser=optimiser, variant={"name": "sg-bn"})
    network, prepared = tiny_network(config)
    with pytest.raises(AxonnxError, match="batch normalisation, whose means would be those of the pieces"):
        loop.fit(network, prepared, config)
