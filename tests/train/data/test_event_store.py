import logging
import os

import numpy as np
import pytest

from axonnx.base.errors import AxonnxError
from axonnx.base.numpy_files import read_arrays
from axonnx.runtime.binning import Sensor
from axonnx.runtime.events.arrays import make_events
from axonnx.train.data.event_store import EventStore, Sample, data_root, find_files

SENSOR = Sensor(width=4, height=4)


class Source:
    """Two files that can be converted, and how often they were."""

    def __init__(self, folder, groups=(3, 4)):
        self.files = [folder / "one", folder / "two"]
        for file in self.files:
            file.write_text("source")
        self.conversions, self.groups = 0, groups

    def convert(self):
        self.conversions += 1
        yield Sample(make_events([1, 2], [0, 3]), 1, self.groups[0])
        yield Sample(make_events([], []), 0, self.groups[1])

    def read(self, store):
        return store.recordings(self.files, self.convert, ("a", "b"), SENSOR)


@pytest.fixture
def store(tmp_path):
    return EventStore(tmp_path / "store")


def test_recordings_are_converted_once(tmp_path, store):
    source = Source(tmp_path)
    first, second = source.read(store), source.read(store)
    assert source.conversions == 1
    assert first.digest == second.digest
    assert first[0]["t"].tolist() == [1, 2]
    assert (first.labels.tolist(), first.groups.tolist()) == ([1, 0], [3, 4])
    assert isinstance(first.events, np.memmap)
    assert Source(tmp_path, groups=(-1, -1)).read(EventStore(tmp_path / "other")).groups is None


def test_a_source_of_another_date_is_converted_again(tmp_path, store):
    source = Source(tmp_path)
    source.read(store)
    os.utime(source.files[1], ns=(0, 10**18))
    source.read(store)
    assert source.conversions == 2


def damage(path, kind):
    content = bytearray(path.read_bytes())
    if kind == "gone":
        path.unlink()
    elif kind == "cut":
        path.write_bytes(content[:-1])
    else:
        content[len(content) // 2] ^= 1
        path.write_bytes(content)


@pytest.mark.parametrize("name", ["events.bin", "index.npz"])
@pytest.mark.parametrize("kind", ["gone", "cut", "flipped"])
def test_a_damaged_store_is_made_again_with_one_line_in_the_log(tmp_path, store, caplog, name, kind):
    source = Source(tmp_path)
    whole = source.read(store).digest
    (place,) = store.folder.iterdir()
    damage(place / name, kind)
    with caplog.at_level(logging.WARNING):
        assert source.read(store).digest == whole
    assert source.conversions == 2
    assert [record.message.split(":")[0] for record in caplog.records] == ["converted recordings made again"]


def test_a_conversion_that_fails_leaves_nothing_behind(tmp_path, store):
    source = Source(tmp_path)

    def broken():
        yield from source.convert()
        raise AxonnxError("the third file is damaged")

    with pytest.raises(AxonnxError, match="third file"):
        store.recordings(source.files, broken, ("a", "b"), SENSOR)
    assert list(store.folder.iterdir()) == []
    assert len(source.read(store)) == 2


def test_a_store_that_cannot_be_written_says_what_to_do(tmp_path):
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(AxonnxError, match="XDG_CACHE_HOME"):
        Source(tmp_path).read(EventStore(tmp_path / "file"))


def test_windows_of_single_events_are_refused_before_they_take_the_disk(store, monkeypatch):
    monkeypatch.setattr("axonnx.train.data.event_store.MOST_WINDOWS", 3)
    events = make_events([0], [0])

    def cut(windows):
        return lambda _facts: (Sample(events, 0, start=n, stop=n + 1) for n in range(windows))

    assert len(store.keep_as("three", cut(3)).columns["start"]) == 3
    with pytest.raises(AxonnxError, match="more than 3 windows; make them longer"):
        store.keep_as("four", cut(4))
    whole = [Sample(events, 0)] * 4
    assert len(store.keep_as("whole", lambda _facts: iter(whole)).columns["start"]) == 4  # recordings are no windows
    assert len(list(store.folder.iterdir())) == 2


def test_the_argument_comes_before_the_environment(tmp_path, monkeypatch):
    (tmp_path / "one").mkdir()
    monkeypatch.setenv("AXONNX_DATA", str(tmp_path))
    assert data_root(None, "mine") == tmp_path
    assert data_root(tmp_path / "one", "mine") == tmp_path / "one"


def test_without_a_folder_the_error_says_how_to_give_one(tmp_path, monkeypatch):
    with pytest.raises(AxonnxError, match=r"mine: no data folder given; .*root.*AXONNX_DATA"):
        data_root(None, "mine")
    monkeypatch.setenv("AXONNX_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(AxonnxError, match="nowhere is not a folder"):
        data_root(None, "mine")


def test_files_come_from_the_first_folder_that_has_all(tmp_path):
    for path in ("a/one", "b/one", "b/two", "c/one", "c/two"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).touch()
    found = find_files(tmp_path, ["one", "two"], folders=("a", "b", "c"), data_set="mine", how="ask")
    assert found == [tmp_path / "b/one", tmp_path / "b/two"]
    with pytest.raises(AxonnxError, match=r"still missing in .*/a: two"):
        find_files(tmp_path, ["one", "two"], folders=("a", "d"), data_set="mine", how="ask")


def test_arrays_are_found_under_any_of_their_names(tmp_path):
    np.savez(tmp_path / "file.npz", x=np.arange(3), y=np.arange(4))
    frames, labels = read_arrays(tmp_path / "file.npz", ["frames", "x"], ["label", "y"])
    assert (len(frames), len(labels)) == (3, 4)
    with pytest.raises(AxonnxError, match="has no array 'a' or 'b'; it has x, y"):
        read_arrays(tmp_path / "file.npz", ["a", "b"])


def test_what_is_no_npz_is_refused(tmp_path):
    np.save(tmp_path / "array.npy", np.arange(3))
    np.savez(tmp_path / "objects.npz", x=np.array([{}], object))
    (tmp_path / "text").write_text("frames")
    with pytest.raises(AxonnxError, match=r"array\.npy: has no array 'x'; it has one without a name"):
        read_arrays(tmp_path / "array.npy", ["x"])
    for name in ("objects.npz", "text", "nothing"):
        with pytest.raises(AxonnxError, match=f"{name}: is not a readable npz"):
            read_arrays(tmp_path / name, ["x"])
