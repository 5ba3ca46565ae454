import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axonnx.base.errors import AxonnxError
from axonnx.train.data import draws
from axonnx.train.data.augment import Augmentation
from axonnx.train.data.augment_frames import augment_frames
from axonnx.train.data.draws import Draws

from ...runtime.no_core import needs_core, without_core


def images(count, shape=(3, 8, 6), seed=0):
    return np.random.default_rng(seed).integers(1, 256, (count, *shape), dtype=np.uint8)


def augment(frames, seed=0, **settings):
    return augment_frames(frames, np.arange(len(frames)), Augmentation(**settings), seed, 0)


def test_a_move_is_a_cut_out_of_the_padded_image():
    frames, drawn = images(300), Draws(0, 0, np.arange(300))
    moved = augment(frames, shift_x=10, shift_y=10)
    places = drawn.whole(draws.SHIFT_Y, 10).tolist(), drawn.whole(draws.SHIFT_X, 10).tolist()
    for number, (down, right) in enumerate(zip(*places, strict=True)):
        padded = np.pad(frames[number], ((0, 0), (10, 10), (10, 10)))
        assert np.array_equal(moved[number], padded[:, 10 - down : 18 - down, 10 - right : 16 - right])


def test_crop_puts_an_image_anywhere_within_the_padding():
    frames = np.zeros((400, 1, 9, 9), np.uint8)
    frames[:, 0, 4, 4] = 7
    moved = augment(frames, crop=2)
    _, _, rows, columns = np.nonzero(moved)
    assert len(rows) == 400
    assert {*zip(rows, columns, strict=True)} == {(row, column) for row in range(2, 7) for column in range(2, 7)}


def test_shifts_move_along_their_own_axis():
    frames = np.zeros((100, 1, 9, 9), np.uint8)
    frames[:, 0, 4, 4] = 7
    _, _, rows, columns = np.nonzero(augment(frames, shift_x=3))
    assert (set(rows), set(columns)) == ({4}, set(range(1, 8)))
    _, _, rows, columns = np.nonzero(augment(frames, shift_y=1))
    assert (set(rows), set(columns)) == ({3, 4, 5}, {4})


def test_flip_mirrors_about_half_of_the_images():
    frames = images(200)
    flipped = augment(frames, flip=True)
    mirrored = [bool(np.array_equal(new, old[..., ::-1])) for old, new in zip(frames, flipped, strict=True)]
    same = [bool(np.array_equal(new, old)) for old, new in zip(frames, flipped, strict=True)]
    assert all(one != other for one, other in zip(mirrored, same, strict=True))
    assert 70 < sum(mirrored) < 130


def test_frames_of_a_sequence_move_together():
    frames = np.repeat(images(20)[:, None], 5, axis=1)
    moved = augment(frames, crop=2, flip=True)
    assert (moved == moved[:, :1]).all()
    assert not np.array_equal(moved, frames)


def test_the_seed_decides_and_the_input_stays():
    frames = images(20)
    before = frames.copy()
    assert np.array_equal(augment(frames, 1, crop=2, flip=True), augment(frames, 1, crop=2, flip=True))
    assert not np.array_equal(augment(frames, 1, crop=2), augment(frames, 2, crop=2))
    assert np.array_equal(frames, before)
    assert np.array_equal(augment(frames), frames)


def test_zoom_scales_about_the_middle():
    frames = np.zeros((300, 1, 2, 33, 33), np.uint8)
    frames[..., 16, 16], frames[..., 16, 24], frames[..., 8, 16] = 1, 2, 3
    zoomed = augment(frames, zoom=0.5)
    assert (zoomed[..., 16, 16] == 1).all()
    for value, axis in ((2, -1), (3, -2)):
        distance = np.abs(np.argwhere(zoomed == value)[:, axis] - 16)
        assert (distance.min(), distance.max()) == (4, 12)


def test_a_slower_recording_shows_its_beginning_longer_and_a_faster_one_ends_early():
    frames = np.broadcast_to(np.arange(1, 13, dtype=np.uint8)[:, None, None, None], (200, 12, 2, 4, 4)).copy()
    seen = augment(frames, time_stretch=0.5)[:, :, 0, 0, 0]
    assert {tuple(row) for row in seen.tolist()} >= {tuple(range(1, 13))}
    for row in seen.tolist():
        shown = [frame for frame in row if frame]
        assert shown == sorted(shown)
        assert row == shown + [0] * (12 - len(shown))
        assert len(shown) == 12 or max(shown) >= 11
    assert seen[:, -1].min() == 0
    assert seen[:, -1].max() > 8


def test_drop_takes_single_events():
    frames = np.full((300, 4, 2, 8, 8), 10, np.uint8)
    kept = augment(frames, drop=0.6).mean((1, 2, 3, 4)) / 10
    assert 0.38 < kept.min() < 0.45
    assert 0.95 < kept.max() < 1.02
    assert abs(kept.mean() - 0.7) < 0.03


@pytest.mark.parametrize("name", ["drop", "time_stretch"])
def test_what_needs_a_sequence_is_refused_for_images(name):
    with pytest.raises(AxonnxError, match=f"{name} does not work on images; it needs a sequence in time"):
        augment(images(2, (1, 4, 4)), **{name: 0.5})


@pytest.mark.parametrize("name", ["gain", "tone", "time_jitter_us", "jitter_x"])
@pytest.mark.parametrize(("shape", "kind"), [((1, 4, 4), "images"), ((2, 1, 4, 4), "frames")])
def test_what_needs_single_events_is_refused(name, shape, kind):
    with pytest.raises(AxonnxError, match=f"{name} does not work on {kind}"):
        augment(images(2, shape), **{name: 0.5})


def test_a_sample_changes_in_the_same_way_in_whatever_batch_it_is():
    frames, how = images(6, (4, 2, 9, 7)), Augmentation(crop=2, drop=0.3, time_stretch=0.2, zoom=0.2, flip=True)
    whole = augment_frames(frames, np.arange(6), how, 3, 4)
    assert np.array_equal(augment_frames(frames, np.array([5, 2]), how, 3, 4), whole[[5, 2]])
    for seed, epoch in ((4, 4), (3, 5)):
        assert not np.array_equal(augment_frames(frames, np.array([5]), how, seed, epoch), whole[[5]])


@needs_core
@settings(deadline=None)
@given(
    st.sampled_from([(5, 2, 9, 7), (1, 1, 1, 1), (3, 1, 1, 40), (2, 8, 8), (30, 2, 8, 8)]),
    st.integers(0, 2**64 - 1),
    st.integers(0, 2**32 - 2),
    st.builds(
        Augmentation,
        drop=st.sampled_from([0, 0.3, 1]),
        time_stretch=st.sampled_from([0, 0.2, 0.9]),
        shift_x=st.sampled_from([0, 3, 40]),
        shift_y=st.sampled_from([0, 2, 15]),
        zoom=st.sampled_from([0, 0.2, 0.9]),
        crop=st.sampled_from([0, 3]),
        flip=st.booleans(),
    ),
)
def test_the_core_and_numpy_give_the_same_bits(shape, seed, epoch, how):
    if len(shape) == 3:
        how = how.model_copy(update={"drop": 0, "time_stretch": 0})
    frames, indices = images(3, shape), np.array([2, 0])
    fast = augment_frames(frames, indices, how, seed, epoch)
    with without_core():
        plain = augment_frames(frames, indices, how, seed, epoch)
    assert np.array_equal(fast, plain)
