"""The loaders on real files, where these are at hand."""

import numpy as np
import pytest

from axonnx.runtime.binning import Binning, Sensor, bin_batch, bin_events
from axonnx.train.build import prepare
from axonnx.train.config.settings import DataConfig
from axonnx.train.data.event_sets import SLICE_US, events_of, read_shd
from axonnx.train.data.registry import load_data_set

pytestmark = pytest.mark.data


def test_regenerated_digits(real_data):
    splits = load_data_set("shd-regenerated", root=real_data)
    assert (len(splits.train), len(splits.test)) == (3761, 900)
    assert (len(splits.train.events), len(splits.test.events)) == (21_348_196, 5_910_310)
    assert set(splits.test.groups) == {4}
    assert not set(splits.train.groups) & {4}
    assert len(np.unique(splits.test.labels)) == 20
    assert 1_300_000 < splits.train.events["t"].max() < 1_400_000


def test_the_layout_of_the_published_file(real_data):
    data = read_shd(real_data / "shd_regen_mini100.h5")
    assert (len(data), set(data.groups), len(np.unique(data.labels))) == (100, {4}, 20)
    assert data.events["x"].max() == 699


def test_gestures_as_frames(real_data):
    splits = load_data_set("dvs-gesture-32x32", root=real_data)
    assert (splits.train.frames.shape, splits.test.frames.shape) == ((935, 49, 2, 32, 32), (240, 49, 2, 32, 32))
    assert (splits.train.groups.min(), splits.test.groups.max()) == (1, 23)
    assert np.bincount(splits.test.labels).min() > 10


def test_slices_as_events_give_their_counts_again(real_data):
    data = load_data_set("dvs-gesture-32x32", root=real_data).test
    frames = data.frames[7]
    events = events_of(frames, 7)
    binning = Binning(sensor=Sensor(width=32, height=32), bins=len(frames), bin_us=SLICE_US)
    assert np.array_equal(bin_events(events, binning).frames, frames)
    assert (np.diff(events["t"]) >= 0).all()


def test_gestures_of_users_whom_training_does_not_have(real_data):
    config = DataConfig(name="dvs-gesture-32x32", root=str(real_data), unseen=True)
    splits = prepare(config).splits
    assert (len(splits.train), set(splits.test.groups.tolist())) == (935, {20, 21, 22, 23})


def test_the_first_thousand_of_nmnist(real_data):
    splits = load_data_set("nmnist-1000", root=real_data)
    assert (len(splits.train), len(splits.test), len(splits.train.events)) == (1000, 100, 4_133_231)
    binning = Binning.over(320_000, 4, splits.sensor)
    train, test = (
        bin_batch(part.events, part.offsets, binning).frames.reshape(len(part), -1).astype(np.float32)
        for part in (splits.train, splits.test)
    )
    nearest = ((train**2).sum(1) - 2 * test @ train.T).argmin(1)
    assert (splits.train.labels[nearest] == splits.test.labels).mean() > 0.7  # labels belong to their recordings


def test_part_of_cifar10(real_data):
    splits = load_data_set("cifar10-5000", root=real_data)
    assert (splits.train.frames.shape, splits.test.frames.shape) == ((5000, 3, 32, 32), (1000, 3, 32, 32))
    assert np.bincount(splits.train.labels).tolist() == [500] * 10
    assert np.bincount(splits.test.labels).tolist() == [100] * 10
    # Neighbouring pixels are alike in both files: planes, rows and columns are where they should be.
    for part in (splits.train, splits.test):
        step = np.abs(np.diff(part.frames.astype(int), axis=-1)).mean()
        assert step < 0.3 * np.abs(part.frames.astype(int) - part.frames.mean()).mean()
