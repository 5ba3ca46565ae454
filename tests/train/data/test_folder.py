from dataclasses import replace

import numpy as np
import pytest

from axonnx.base.errors import AxonnxError
from axonnx.runtime.binning import Sensor
from axonnx.runtime.events.arrays import make_events
from axonnx.runtime.readers import write_npz
from axonnx.train.data.folder import load_folder

SENSOR = Sensor(width=8, height=6)


def recording(number):
    return make_events(1_000_000 + np.arange(number + 1) * 10, np.arange(number + 1) % 8, 2, 1)


def write_class(folder, count, sensor=SENSOR, first=0):
    folder.mkdir(parents=True)
    for number in range(first, first + count):
        write_npz(folder / f"take {number}.npz", recording(number), sensor)


@pytest.fixture
def own(tmp_path):
    write_class(tmp_path / "own" / "wave", 10)
    write_class(tmp_path / "own" / "clap", 5, first=10)
    (tmp_path / "own" / "wave" / ".hidden").write_text("not a recording")
    (tmp_path / "own" / "notes.txt").write_text("not a class")
    return tmp_path / "own"


def test_sub_folders_are_classes_and_recordings_start_at_zero(own):
    splits = load_folder(own)
    assert (splits.name, splits.kind, splits.classes, splits.sensor) == ("own", "events", ("clap", "wave"), SENSOR)
    assert (np.bincount(splits.train.labels).tolist(), np.bincount(splits.test.labels).tolist()) == ([4, 8], [1, 2])
    sizes = sorted(len(part[index]) for part in (splits.train, splits.test) for index in range(len(part)))
    assert sizes == list(range(1, 16))
    assert splits.train[0]["t"][:3].tolist() == [0, 10, 20]
    assert splits.origin == "first"
    assert splits.train.original(0).events["t"][:3].tolist() == [1_000_000, 1_000_010, 1_000_020]


def test_the_split_is_the_same_wherever_the_folder_stands(own, tmp_path):
    before = load_folder(own)
    after = load_folder(own.rename(tmp_path / "elsewhere"))
    assert before.digest == after.digest
    assert before.digest != load_folder(tmp_path / "elsewhere", seed=1).digest
    assert len(load_folder(tmp_path / "elsewhere", test_share=0.4).test) == 6


def test_given_parts_are_taken_as_they_are(tmp_path):
    for part, count in (("train", 4), ("test", 2), ("validation", 1)):
        write_class(tmp_path / "own" / part / "clap", count)
        write_class(tmp_path / "own" / part / "wave", count)
    splits = load_folder(tmp_path / "own")
    assert {name: len(part) for name, part in splits.parts.items()} == {"train": 8, "validation": 2, "test": 4}
    write_class(tmp_path / "own" / "test" / "jump", 1)
    with pytest.raises(AxonnxError, match="class 'jump' is not among"):
        load_folder(tmp_path / "own")


def test_files_may_hold_several_recordings_and_other_formats(own):
    (own / "wave" / "more.csv").write_text("t,x,y,p\n5,1,2,0\n9,7,5,1\n")
    splits = load_folder(own, sensor={"width": 8, "height": 6})
    assert len(splits.train) + len(splits.test) == 16


def test_a_recording_knows_its_file_and_its_number_there(own):
    several = [recording(number) for number in (3, 1, 2)]
    events, offsets = np.concatenate(several), np.cumsum([0, 4, 2, 3])
    columns = {name: events[name] for name in "txyp"}
    np.savez(own / "clap" / "several.npz", **columns, offsets=offsets, sensor=[8, 6, 2])
    splits = load_folder(own)
    found = {place: part.original(i).events for part in splits.parts.values() for i, place in enumerate(part.places)}
    assert len(found) == 18
    for number, expected in enumerate(several):
        np.testing.assert_array_equal(found[own / "clap" / "several.npz", number, None, None], expected)


def test_the_sensor_must_be_known(own):
    write_class(own / "jump", 2, sensor=None)
    with pytest.raises(AxonnxError, match=r"jump/take 0\.npz: does not say how large the sensor is") as refused:
        load_folder(own)
    assert refused.value.settings == {"data.options.sensor": "346x260"}
    for given in (SENSOR, "8x6", [8, 6], {"width": 8, "height": 6}):
        assert load_folder(own, sensor=given).sensor == SENSOR
    write_npz(own / "jump" / "take 0.npz", recording(0), Sensor(width=9, height=6))
    with pytest.raises(AxonnxError, match=r"says 9×6, others do not agree"):
        load_folder(own)


def test_events_off_the_stated_sensor_are_refused_with_their_file(own):
    with pytest.raises(AxonnxError, match=r"take 10\.npz: event .* outside the sensor's width 8, height 2 .* 11 of 11"):
        load_folder(own, sensor="8x2")
    with pytest.raises(AxonnxError, match="as in 346x260"):
        load_folder(own, sensor="8 by 2")


def test_folders_without_data_are_refused(tmp_path):
    (tmp_path / "own").mkdir()
    with pytest.raises(AxonnxError, match="has no sub-folders"):
        load_folder(tmp_path / "own")
    (tmp_path / "own" / "clap").mkdir()
    with pytest.raises(AxonnxError, match="no recordings in clap"):
        load_folder(tmp_path / "own")
    (tmp_path / "own" / "clap").rename(tmp_path / "own" / "train")
    (tmp_path / "own" / "validation").mkdir()
    with pytest.raises(AxonnxError, match="has train, validation and no test"):
        load_folder(tmp_path / "own")


def test_files_that_are_no_recordings_are_left_out_and_named(own):
    (own / "clap" / "readme.md").write_text("hello")
    (own / "clap" / "picture").write_bytes(b"\x89PNG")
    before = load_folder(own)
    assert len(before.train) + len(before.test) == 15
    (line,) = before.notes
    assert "3 files are no recordings and are left out (" in line
    assert all(name in line for name in ("notes.txt", "clap/readme.md", "clap/picture", "1 .md", "1 no suffix"))


def test_a_damaged_recording_is_refused_and_not_left_out(own):
    (own / "clap" / "broken.npz").write_bytes(b"nothing of numpy")
    with pytest.raises(AxonnxError, match=r"clap/broken\.npz"):
        load_folder(own)


def test_who_was_recorded_is_in_one_part_alone(tmp_path):
    for name in ("clap", "wave"):
        for number in range(6):
            write_class(tmp_path / "own" / name / f"user{number % 3 + 1:02}" / f"day {number}", 1, first=number)
    splits = load_folder(tmp_path / "own", group=r"user(\d+)", test_share=0.34)
    people = [set(part.groups.tolist()) for part in splits.parts.values()]
    assert (set.union(*people), set.intersection(*people)) == ({1, 2, 3}, set())
    assert len(splits.test) == 4
    aside = splits.with_validation(0.5, by="group")
    assert set(aside.train.groups.tolist()) & set(aside.validation.groups.tolist()) == set()
    with pytest.raises(AxonnxError, match="finds nobody in its name"):
        load_folder(tmp_path / "own", group="person")
    named = load_folder(tmp_path / "own", group="user0.|nobody", test_share=0.34)
    assert set(named.groups) < {0, 1, 2}


def test_events_are_kept_on_disk_and_parts_share_them(own):
    splits = load_folder(own)
    assert isinstance(splits.train.events, np.memmap)
    assert splits.train.events is splits.test.events
    copied = [part.subset(range(len(part))) for part in splits.parts.values()]
    assert [part.digest for part in copied] == [part.digest for part in splits.parts.values()]
    in_memory = replace(
        splits.test, events=np.array(splits.test.take(range(3))[0]), offsets=splits.test.take(range(3))[1]
    )
    assert replace(in_memory, chosen=None).digest == splits.test.digest
