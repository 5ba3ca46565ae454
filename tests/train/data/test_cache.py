import logging

import numpy as np
import pytest

from axonnx.base.errors import AxonnxError
from axonnx.base.numpy_files import mapped_array
from axonnx.runtime.binning import Binning, Outside, bin_batch, bin_events
from axonnx.train.data import cache
from axonnx.train.data.cache import binned, cache_folder


@pytest.fixture
def data(make_recordings):
    return make_recordings(count=9)


@pytest.fixture
def binning(data):
    return Binning.over(800, 4, data.sensor)


@pytest.fixture
def counted(monkeypatch):
    """How often something was binned rather than read."""
    calls, original = [], cache._bin
    monkeypatch.setattr(cache, "_bin", lambda *arguments: calls.append(1) or original(*arguments))
    return calls


def files(folder):
    return sorted(folder.iterdir())


def test_frames_are_those_of_every_recording_and_nothing_is_lost(data, binning, monkeypatch):
    monkeypatch.setattr(cache, "EVENTS_AT_ONCE", 5)
    found = binned(data, binning)
    for index in range(len(data)):
        alone = bin_events(data[index], binning)
        assert np.array_equal(found.data.frames[index], alone.frames)
        assert found.outside[index] == alone.outside.total
    assert found.data.frames.sum() + found.outside.sum() == len(data.events)
    assert found.outside.sum() > 0
    whole = bin_batch(data.events, data.offsets, binning)
    assert found.outside_by_reason == sum(whole.outside, Outside())
    assert np.array_equal(found.clipped, whole.clipped)
    assert np.array_equal(found.data.labels, data.labels)


def test_the_second_time_frames_come_from_disk(data, binning, counted, tmp_path):
    first, second = binned(data, binning), binned(data, binning)
    assert len(counted) == 1
    assert first.data.digest == second.data.digest
    assert np.array_equal(first.reasons, second.reasons)
    assert np.array_equal(first.clipped, second.clipped)
    assert cache_folder() == tmp_path / "cache" / "axonnx"
    assert len(files(cache_folder())) == 1


def test_frames_from_disk_are_mapped_not_read(data, binning):
    first, second = binned(data, binning), binned(data, binning)
    assert isinstance(second.data.frames, np.memmap)
    assert not second.data.frames.flags.writeable
    assert np.array_equal(first.data.frames, second.data.frames)
    chosen = second.data.subset([3, 1])
    assert np.array_equal(chosen.frames, first.data.frames[[3, 1]])


def test_only_plain_arrays_are_mapped(tmp_path):
    plain, packed = tmp_path / "plain.npz", tmp_path / "packed.npz"
    values = np.arange(12, dtype=np.uint8).reshape(3, 4)
    np.savez(plain, other=np.zeros(5), frames=values)
    np.savez_compressed(packed, frames=values)
    assert np.array_equal(mapped_array(plain, "frames"), values)
    for path, name, fault in ((packed, "frames", "compressed"), (plain, "none", "cannot be mapped")):
        with pytest.raises(AxonnxError, match=fault):
            mapped_array(path, name)
    np.savez(plain, frames=np.asfortranarray(values))
    with pytest.raises(AxonnxError, match="not laid out as plain numbers"):
        mapped_array(plain, "frames")


def test_other_data_and_other_settings_have_other_files(data, binning, counted, tmp_path, make_recordings):
    settings = [binning, Binning.over(800, 8, data.sensor), binning.model_copy(update={"values": "binary"})]
    for each in settings:
        binned(data, each, tmp_path / "own")
    binned(make_recordings(count=9, seed=1), binning, tmp_path / "own")
    assert (len(counted), len(files(tmp_path / "own"))) == (4, 4)


def flipped(content, place):
    changed = bytearray(content)
    changed[place] ^= 1
    return bytes(changed)


@pytest.mark.parametrize(
    "harm",
    [
        lambda content: b"",
        lambda content: content[:100],
        lambda content: content[: len(content) // 2],
        lambda content: content[:-1],
        lambda content: b"something else",
        lambda content: flipped(content, len(content) // 3),
        lambda content: flipped(content, 0),
    ],
)
def test_a_damaged_cache_is_made_again_with_one_line_in_the_log(data, binning, counted, caplog, harm):
    whole = binned(data, binning).data.digest
    (path,) = files(cache_folder())
    path.write_bytes(harm(path.read_bytes()))
    with caplog.at_level(logging.WARNING):
        assert binned(data, binning).data.digest == whole
    assert len(counted) == 2
    assert [record.message.split(":")[0] for record in caplog.records] == ["cache made again"]
    binned(data, binning)
    assert len(counted) == 2


def test_a_cache_of_wrong_frames_is_told_by_its_checksum(data, binning, counted):
    right = binned(data, binning)
    (path,) = files(cache_folder())
    frames = right.data.frames.copy()
    frames[3, 0, 0, 0, 0] += 1
    np.savez(path, frames=frames, reasons=right.reasons, clipped=right.clipped, checksum=np.array("0" * 64))
    assert binned(data, binning).data.digest == right.data.digest
    assert len(counted) == 2


def test_a_write_that_fails_costs_the_cache_not_the_run(data, binning, caplog, tmp_path):
    (tmp_path / "file").write_text("no folder")
    with caplog.at_level(logging.WARNING):
        assert len(binned(data, binning, tmp_path / "file").data) == 9
    assert [record.message.split(":")[0] for record in caplog.records] == ["binned frames are not cached"]


def test_a_write_that_is_cut_short_leaves_nothing(data, binning, monkeypatch):
    def cut_short(file, **arrays):
        file.write(b"half a fi")
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(cache.np, "savez", cut_short)
        with pytest.raises(KeyboardInterrupt):
            binned(data, binning)
    assert files(cache_folder()) == []
