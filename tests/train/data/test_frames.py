from dataclasses import replace

import numpy as np
import pytest

from axonnx.base.errors import AxonnxError
from axonnx.train.data.recordings import Frames

LABELS = np.array([0, 1, 1])


def frames(shape, dtype=np.uint8):
    return np.arange(np.prod(shape)).reshape(shape).astype(dtype)


def test_sequences_and_images_are_told_apart():
    sequences, images = (Frames(frames(shape), LABELS, ("a", "b")) for shape in ((3, 5, 2, 4, 6), (3, 1, 4, 6)))
    assert (sequences.is_sequence, sequences.channels, len(sequences)) == (True, 2, 3)
    assert (images.is_sequence, images.channels) == (False, 1)


def test_a_subset_keeps_order_and_groups():
    part = Frames(frames((3, 1, 2, 2)), LABELS, ("a", "b"), np.array([4, 5, 6])).subset([2, 0])
    assert part.frames[:, 0, 0, 0].tolist() == [8, 0]
    assert (part.labels.tolist(), part.groups.tolist()) == ([1, 0], [6, 4])


@pytest.mark.parametrize(
    ("values", "labels", "says"),
    [
        (frames((3, 1, 2, 2), np.float32), LABELS, "float32; expected uint8"),
        (frames((3, 4)), LABELS, r"shape \(3, 4\)"),
        (frames((3, 0, 2, 2)), LABELS, "none of them empty"),
        (frames((4, 1, 2, 2)), LABELS, "4 samples but 3 labels"),
        (frames((3, 1, 2, 2)), np.array([0, 1, 2]), "label 2 of sample 2"),
        (frames((3, 1, 2, 2)), LABELS[:, None], r"expected int64 of shape \(N,\)"),
    ],
)
def test_what_are_no_frames_is_refused(values, labels, says):
    with pytest.raises(AxonnxError, match=says):
        Frames(values, labels, ("a", "b"))


def test_the_digest_tells_contents_apart():
    data = Frames(frames((3, 1, 2, 2)), LABELS, ("a", "b"))
    same_bytes = Frames(data.frames.reshape(3, 2, 2, 1), LABELS, ("a", "b"))
    assert data.digest == replace(data).digest
    assert len({data.digest, same_bytes.digest, replace(data, classes=("a", "c")).digest}) == 3
