"""Batches ahead: the bits do not depend on it, the steps need not wait, and what they waited is told."""

import threading
import time

import numpy as np
import pytest
import torch

from axonnx.train.build import prepare
from axonnx.train.config.read import read_config
from axonnx.train.distributed import World
from axonnx.train.feed import Feed, Waited
from axonnx.train.loop import fit, make_feeds

from .tiny_runs import same_bits, tiny_config, tiny_network, without_time

AUGMENTED = {"shift_x": 1, "flip": True, "drop": 0.3}


def at_once(feed, source):
    """Feed._ahead without a thread."""
    return (feed._tensors(*arrays) for arrays in source)


@pytest.mark.parametrize("accumulate", [1, 2])
def test_a_run_with_batches_ahead_has_the_bits_of_one_without(frames, monkeypatch, accumulate):
    found = []
    for ahead in (Feed._ahead, at_once):
        monkeypatch.setattr(Feed, "_ahead", ahead)
        config = tiny_config(frames, data__augmentation=AUGMENTED, optimiser__accumulate=accumulate)
        network, prepared = tiny_network(config)
        training = fit(network, prepared, config)
        found.append((dict(training.network.state_dict()), without_time(training.rows)))
    (one, rows), (other, others) = found
    assert same_bits(one, other)
    assert rows == others


def test_batches_are_made_one_ahead_in_another_thread(frames, monkeypatch):
    config = tiny_config(frames)
    _, prepared = tiny_network(config)
    feed = make_feeds(prepared, config, torch.device("cpu"), World())["learn"]
    made, tensors = [], Feed._tensors

    def watched(self, *arrays):
        made.append(threading.current_thread())
        return tensors(self, *arrays)

    monkeypatch.setattr(Feed, "_tensors", watched)
    batches = feed.epoch(0)
    for number, _ in enumerate(batches, 1):
        until = min(number + 1, len(feed))
        while len(made) < until:  # not asked for yet, and made nevertheless
            time.sleep(0.001)
        assert len(made) == until
    assert number == len(feed) > 2
    assert threading.main_thread() not in made


def test_what_was_waited_is_counted_and_nothing_else():
    def slow():
        for _ in range(3):
            time.sleep(0.05)
            yield None

    batches, began = Waited(slow()), time.perf_counter()
    for _ in batches:
        time.sleep(0.1)
    assert 0.15 <= batches.seconds <= time.perf_counter() - began - 0.3


@pytest.mark.parametrize("shift", [0, 3])
def test_input_is_divided_exactly_and_the_data_stay_as_they_are(shift):
    config = read_config("digits-static", {"data.shift": shift})
    prepared = prepare(config.data)
    feed = make_feeds(prepared, config, torch.device("cpu"), World())["test"]
    before = prepared.splits.test.frames.copy()
    x = torch.cat([batch.x for batch in feed.epoch(0)])
    assert x.dtype == torch.float32
    assert x.is_contiguous()
    assert np.array_equal(x.numpy() * 2**shift, before)
    assert np.array_equal(prepared.splits.test.frames, before)
