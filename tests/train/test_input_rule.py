"""x = (value − centre) · 2^−shift: training in torch and a deployed file feed the network the same bits."""

import numpy as np
import pytest
import torch

from axonnx.runtime.format.contract import InputContract
from axonnx.runtime.format.network_input import to_input
from axonnx.train.data.batches import Batches
from axonnx.train.data.recordings import Frames
from axonnx.train.feed import Feed


@pytest.mark.parametrize("centre", [0, 3, 128])
@pytest.mark.parametrize("shift", [0, 1, 7, 16])
def test_training_and_a_file_feed_the_same_bits(centre, shift):
    frames = np.arange(256, dtype=np.uint8).reshape(2, 4, 2, 4, 4)  # [N, T, C, H, W], every value once
    batches = Batches(Frames(frames, np.zeros(2, np.int64), ("a",)), batch_size=2, shuffle=False, centre=centre)
    (trained,) = Feed(batches, shift, torch.device("cpu")).epoch(0)
    contract = InputContract(name="events", shape=(2, 4, 4), steps=4, centre=centre, shift=shift, largest=255)
    deployed = to_input(frames.swapaxes(0, 1), contract)
    assert trained.x.dtype == torch.float32
    assert np.array_equal(trained.x.numpy(), deployed)
    assert deployed[0, 0, 0, 0, 0] == -centre / 2**shift
    assert contract.x_max == 255 / 2**shift
