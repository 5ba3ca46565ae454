from itertools import chain, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axonnx.base.errors import AxonnxError
from axonnx.runtime.binning import Binning, Sensor, bin_batch
from axonnx.train.data.augment import Augmentation
from axonnx.train.data.batches import Batches
from axonnx.train.data.recordings import Frames


def images(count, shape=(3, 4, 5)):
    frames = np.random.default_rng(0).integers(256, size=(count, *shape), dtype=np.uint8)
    return Frames(frames, np.arange(count) % 10, tuple("0123456789"))


def equal(one, other):
    return len(one) == len(other) and all(
        np.array_equal(a.x, b.x) and np.array_equal(a.labels, b.labels) for a, b in zip(one, other, strict=True)
    )


def indices(batches, epoch=0):
    return [batches.make(epoch, number).indices.tolist() for number in range(len(batches))]


def test_images_come_as_they_are():
    data = images(10)
    (x, labels), *_, last = Batches(data, batch_size=4, shuffle=False).epoch(0)
    assert (x.dtype, x.shape, labels.dtype) == (np.float32, (4, 3, 4, 5), np.int64)
    assert np.array_equal(x, data.frames[:4])
    assert last.x.shape == (2, 3, 4, 5)
    assert last.labels.tolist() == [8, 9]


def test_sequences_come_time_first():
    data = images(6, (7, 2, 4, 5))
    (x, _), *_ = Batches(data, batch_size=4, shuffle=False, dtype="uint8").epoch(0)
    assert (x.dtype, x.shape, x.flags.c_contiguous) == (np.uint8, (7, 4, 2, 4, 5), True)
    assert np.array_equal(x[3, 2], data.frames[2, 3])


def test_fingerprints_are_of_the_samples_alone(make_recordings):
    recordings = make_recordings(count=12)
    binning = Binning.over(600, 3, recordings.sensor)
    frames = images(12, (3, 2, 4, 5))
    for data, made in ((recordings, binning), (frames, None), (images(12), None)):
        plain = Batches(data, made, batch_size=5).fingerprints(np.arange(12))
        assert len(set(plain.tolist())) > 8  # two recordings may have no event
        moved = Batches(data, made, Augmentation(shift_x=2), batch_size=3, seed=1, shard=(1, 2))
        assert np.array_equal(moved.fingerprints(np.array([7, 2])), plain[[7, 2]])
    other = images(12)
    other.frames[4, 0, 0, 0] ^= 1
    assert (Batches(other).fingerprints(np.arange(12)) != plain).nonzero()[0].tolist() == [4]


def test_recordings_come_binned_and_every_event_is_accounted_for(make_recordings):
    data = make_recordings(count=12)
    binning = Binning.over(600, 3, data.sensor)
    batches = Batches(data, binning, Augmentation(shift_x=2), batch_size=5)
    total = 0
    for number in range(len(batches)):
        made = batches.make(4, number)
        assert made.batch.x.shape == (3, len(made.indices), 2, 4, 6)
        assert (made.batch.x.sum(axis=(0, 2, 3, 4)) + made.outside == made.indices).all()  # recording k has k events
        total += made.outside.sum()
    assert total > 0


def test_recordings_without_augmentation_are_what_binning_makes_of_them(make_recordings):
    data = make_recordings()
    binning = Binning.over(600, 3, data.sensor)
    (x, _), *_ = Batches(data, binning, batch_size=7, shuffle=False).epoch(0)
    assert np.array_equal(x, bin_batch(data.events, data.offsets, binning).frames.swapaxes(0, 1))


def test_centring_is_exact():
    data = images(9)
    means = tuple(round(float(data.frames[:, channel].mean())) for channel in range(3))
    (x, _), *_ = Batches(data, batch_size=9, shuffle=False, centre=means).epoch(0)
    assert np.array_equal(x, data.frames.astype(int) - np.array(means)[:, None, None])
    (x, _), *_ = Batches(data, batch_size=9, shuffle=False, centre=128).epoch(0)
    assert np.array_equal(x, data.frames.astype(int) - 128)
    assert x.dtype == np.float32


@pytest.mark.parametrize("start", [0, 1, 3, 5])
def test_an_epoch_resumed_in_the_middle_goes_on_with_the_same_batches(make_recordings, start):
    data = make_recordings(count=20)
    how = Augmentation(drop=0.5, time_jitter_us=20, shift_x=2, flip=True)
    batches = Batches(data, Binning.over(1000, 4, data.sensor), how, batch_size=4, seed=3)
    whole = list(batches.epoch(2))
    again = Batches(data, Binning.over(1000, 4, data.sensor), how, batch_size=4, seed=3)
    assert equal(list(again.epoch(2, start=start)), whole[start:])
    assert not equal(list(batches.epoch(1)), whole)


def test_epochs_and_seeds_have_orders_of_their_own():
    data = images(30)
    orders = {(seed, epoch): tuple(Batches(data, seed=seed).order(epoch)) for seed in (0, 1) for epoch in (0, 1)}
    assert len(set(orders.values())) == 4
    assert all(sorted(order) == list(range(30)) for order in orders.values())
    assert Batches(data, shuffle=False).order(5).tolist() == list(range(30))


@settings(deadline=None)
@given(st.integers(1, 60), st.integers(1, 9), st.integers(1, 5), st.booleans(), st.booleans(), st.integers(0, 3))
def test_shards_are_disjoint_complete_and_have_as_many_batches(count, batch_size, world, drop_last, shuffle, epoch):
    data = images(count, (1, 1, 1))
    options = {"batch_size": batch_size, "drop_last": drop_last, "shuffle": shuffle}
    if count < (batch_size * world if drop_last else world):
        with pytest.raises(AxonnxError, match="make no batch"):
            Batches(data, shard=(0, world), **options)
        return
    shards = [indices(Batches(data, shard=(rank, world), **options), epoch) for rank in range(world)]
    assert len({len(shard) for shard in shards}) == 1
    used = [index for shard in shards for batch in shard for index in batch]
    assert len(used) == len(set(used)) == (count // (batch_size * world) * batch_size * world if drop_last else count)
    sizes = [len(batch) for shard in shards for batch in shard]
    assert 1 <= min(sizes) <= max(sizes) <= batch_size + (world > 1)
    assert not drop_last or set(sizes) == {batch_size}


def test_the_shards_of_a_batch_make_up_the_batch_of_one_process():
    data = images(64)
    alone = indices(Batches(data, batch_size=16, seed=5), 3)
    shards = [indices(Batches(data, batch_size=4, seed=5, shard=(rank, 4)), 3) for rank in range(4)]
    assert [list(chain(*parts)) for parts in zip(*shards, strict=True)] == alone


def test_a_sample_changes_by_its_number_whatever_shard_and_batch_it_is_in():
    data, how = images(64), Augmentation(crop=2, flip=True)
    alone = Batches(data, None, how, batch_size=16, seed=5)
    shards = [Batches(data, None, how, batch_size=4, seed=5, shard=(rank, 4)) for rank in range(4)]
    for number, whole in enumerate(alone.epoch(3)):
        assert np.array_equal(np.concatenate([shard.make(3, number).batch.x for shard in shards]), whole.x)


def test_samples_change_from_one_to_the_next_and_from_epoch_to_epoch():
    data = Frames(np.repeat(images(1).frames, 64, axis=0), np.zeros(64, np.int64), ("one",))
    batches = Batches(data, None, Augmentation(crop=2), batch_size=16)
    changed = [batch.x for epoch in range(2) for batch in batches.epoch(epoch)]
    assert len(changed) == 8
    assert not any(np.array_equal(one, other) for one, other in pairwise(changed))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"batch_size": 0}, "batch_size is 0"),
        ({"seed": -1}, "seed -1"),
        ({"shard": (2, 2)}, r"shard \(2, 2\)"),
        ({"shard": (0, 11)}, "10 samples make no batch for 11 process"),
        ({"batch_size": 11, "drop_last": True}, "make no batch"),
        ({"centre": (1, 2)}, "2 values of centre for 3 channels"),
        ({"centre": 3, "dtype": "uint8"}, "use float32"),
        ({"augmentation": Augmentation(drop=0.5)}, "drop does not work on images"),
        ({"binning": Binning.over(100, 2, Sensor(width=5, height=4))}, "binned already"),
    ],
)
def test_wrong_settings_are_refused(options, says):
    with pytest.raises(AxonnxError, match=says):
        Batches(images(10), **options)


def test_recordings_need_a_binning_for_their_sensor(make_recordings):
    data = make_recordings()
    right = Binning.over(100, 2, data.sensor)
    with pytest.raises(AxonnxError, match="need a binning for that sensor; got none"):
        Batches(data)
    with pytest.raises(AxonnxError, match=r"got one for .*width=9"):
        Batches(data, Binning.over(100, 2, Sensor(width=9)))
    with pytest.raises(AxonnxError, match="crop does not work on events"):
        Batches(data, right, Augmentation(crop=2))
    with pytest.raises(AxonnxError, match="centre is for frames"):
        Batches(data, right, centre=3)


def test_an_epoch_cannot_start_beyond_its_end():
    batches = Batches(images(10), batch_size=4)
    assert list(batches.epoch(0, start=3)) == []
    for start in (-1, 4):
        with pytest.raises(AxonnxError, match=f"cannot start at batch {start}; an epoch has 3"):
            batches.epoch(0, start=start)
    with pytest.raises(IndexError):
        batches.make(0, 3)
