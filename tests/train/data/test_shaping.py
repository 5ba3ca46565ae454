"""Recordings brought onto another sensor and cut into windows: own folders, and data sets by name."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from axonnx.base.errors import AxonnxError
from axonnx.runtime.binning import Sensor, bin_events
from axonnx.runtime.events.arrays import make_events
from axonnx.runtime.format.contract import FitContract
from axonnx.runtime.readers import write_npz
from axonnx.runtime.streams.adapt import Adapter
from axonnx.train.build import input_contract, prepare
from axonnx.train.config.read import check_config
from axonnx.train.data import cache
from axonnx.train.data import recordings as recordings_module
from axonnx.train.data.folder import load_folder
from axonnx.train.data.left_out import left_out
from axonnx.train.data.shaping import Shaping, Window, Windows, shaped, windows_of
from axonnx.train.data.splits import DataSplits

WIDE = Sensor(width=20, height=12)
CLOCK = 5_000_000  # µs since the camera was switched on


def recording(seed, events=400, sensor=WIDE, span=10_000):
    random = np.random.default_rng(seed)
    t = np.sort(random.integers(0, span, events)) + CLOCK
    return make_events(t, *(random.integers(0, side, events) for side in (sensor.width, sensor.height, 2)))


@pytest.fixture
def own(tmp_path):
    for label, name in enumerate(("clap", "wave")):
        (tmp_path / "own" / name).mkdir(parents=True)
        for number in range(5):
            write_npz(tmp_path / "own" / name / f"{number}.npz", recording(10 * label + number), WIDE)
    return tmp_path / "own"


@pytest.mark.parametrize(
    ("how", "options", "region"),
    [
        (Shaping(resize=(10, 6)), {"resize": True}, (0, 0, 20, 12)),
        (Shaping(crop=(8, 4)), {"crop": "centre"}, (6, 4, 8, 4)),
        (Shaping(crop=(3, 2, 8, 4)), {"crop": (3, 2)}, (3, 2, 8, 4)),
    ],
)
def test_training_moves_events_as_run_does(own, how, options, region):
    splits = load_folder(own, shaping=how)
    assert splits.fit == FitContract(sensor=WIDE, left=region[0], top=region[1], width=region[2], height=region[3])
    for part in splits.parts.values():
        for index in range(len(part)):
            moved = Adapter(part.sensor, WIDE, **options)(part.original(index).events)
            moved["t"] -= moved["t"][0]
            assert np.array_equal(part[index], moved)


def test_a_crop_is_resized_where_both_are_asked_for(own):
    splits = load_folder(own, shaping=Shaping(resize=(6, 6), crop=(12, 12)))
    assert (splits.sensor.width, splits.sensor.height) == (6, 6)
    assert splits.train[0]["x"].max() == 5
    with pytest.raises(
        AxonnxError, match=r"data\.crop: 21×4 pixels from 0,4 on do not lie on the recordings' sensor of 20×12"
    ):
        load_folder(own, shaping=Shaping(crop=(21, 4)))


def test_windows_of_a_recording_are_never_in_two_parts(own):
    splits = load_folder(own, shaping=Shaping(windows=Windows(ms=2))).with_validation(0.25)
    files = {name: {place.path for place in part.places} for name, part in splits.parts.items()}
    assert sum(map(len, files.values())) == len(set.union(*files.values())) == 10
    assert {name: len(found) for name, found in files.items()} == {"train": 6, "validation": 2, "test": 2}
    assert sum(map(len, splits.parts.values())) == 50
    other = load_folder(own, shaping=Shaping(windows=Windows(ms=2))).with_validation(0.25, seed=3)
    assert {place.path for place in other.validation.places} != files["validation"]


def test_windows_count_from_their_start_and_know_their_place(own):
    for how in (Windows(ms=2, overlap=0.5), Windows(events=90)):
        part = load_folder(own, shaping=Shaping(windows=how)).train
        for index in range(len(part)):
            place = part.places[index]
            again = part.original(index).events
            assert np.array_equal(again["t"] - place.start, part[index]["t"])
            assert np.array_equal(again["x"], part[index]["x"])
            assert len(again)


def test_windows_of_time_are_those_that_run_gives(own):
    """Frames of training against a whole recording in one go, whose bins are those of all its windows in a row."""
    tree = {
        "data": {"name": str(own), "bins": 4, "windows": {"ms": 2}},
        "model": {"network": "spiking-mlp", "hidden": [2]},
    }
    config = check_config(tree, "test")
    prepared = prepare(config.data)
    contract = input_contract(config, prepared)
    assert (prepared.binning.origin, contract.binning.origin) == ("zero", "first")
    assert contract.binning.model_copy(update={"origin": "zero"}) == prepared.binning
    part = prepared.splits.train
    for unit in np.unique(part.units):
        mine = np.flatnonzero(part.units == unit)
        path = part.places[mine[0]].path
        file = np.load(path)
        events = make_events(file["t"], file["x"], file["y"], file["p"])
        all_bins = contract.binning.model_copy(update={"bins": 4 * len(mine)})
        whole = bin_events(events, all_bins)
        assert whole.outside.total == 0
        frames = [bin_events(part[index], prepared.binning).frames for index in mine]
        assert np.array_equal(np.concatenate(frames), whole.frames)


def test_a_label_file_says_what_a_recording_shows_when(tmp_path):
    (tmp_path / "own").mkdir()
    rows = ["file,start,end,label"]
    for number in range(4):
        write_npz(tmp_path / "own" / f"long{number}.npz", recording(number), WIDE)
        rows += [
            f"long{number}.npz,{CLOCK + 1000},{CLOCK + 4000},walk",
            f"long{number}.npz,{CLOCK + 5000},{CLOCK + 9000},run",
        ]
    (tmp_path / "own" / "labels.csv").write_text("\n".join(rows))
    splits = load_folder(tmp_path / "own", shaping=Shaping(windows=Windows(labels="labels.csv", ms=1)), test_share=0.25)
    assert splits.classes == ("run", "walk")
    assert (np.bincount(splits.train.labels).tolist(), np.bincount(splits.test.labels).tolist()) == ([12, 9], [4, 3])
    assert len({place.path for place in splits.test.places}) == 1
    starts = sorted({place.start - CLOCK for place in splits.train.places})
    assert starts == [1000, 2000, 3000, 5000, 6000, 7000, 8000]
    whole = load_folder(tmp_path / "own", shaping=Shaping(windows=Windows(labels="labels.csv")), test_share=0.25)
    assert len(whole.train) + len(whole.test) == 8


def test_what_is_in_no_window_is_told(own):
    splits = load_folder(own, shaping=Shaping(windows=Windows(ms=8, least=1.0)))
    (line,) = splits.notes
    assert "events at the ends of recordings are in no window" in line
    with pytest.raises(AxonnxError, match="no recording is as long as a window"):
        load_folder(own, shaping=Shaping(windows=Windows(ms=50)))


def test_data_sets_by_name_are_shaped_too(make_recordings):
    sensor = Sensor(width=6, height=4)
    data = make_recordings(count=9, groups=np.arange(9))
    splits = shaped(DataSplits("some", data, data), Shaping(resize=(3, 2), windows=Windows(events=2, least=0.5)))
    assert (splits.sensor, splits.fit.sensor) == (Sensor(width=3, height=2), sensor)
    assert splits.train.units.tolist() == [number for number in range(9) for _ in range((number + 1) // 2)]
    assert np.array_equal(splits.train.groups, splits.train.units)
    assert np.array_equal(splits.train.labels, data.labels[splits.train.units])
    with pytest.raises(AxonnxError, match="labels is for a folder"):
        shaped(splits, Shaping(windows=Windows(labels="x")))


def test_memory_stays_flat_however_large_the_folder(tmp_path, monkeypatch):
    """Four times the recordings cost no more memory: to convert, split, digest and count what is left out."""
    monkeypatch.setattr(cache, "MOST_BYTES", 1)
    monkeypatch.setattr(cache, "EVENTS_AT_ONCE", 30_000)
    monkeypatch.setattr(recordings_module, "BLOCK", 30_000)

    def peak(recordings):
        folder = tmp_path / str(recordings)
        for number in range(recordings):
            (folder / f"class{number % 2}").mkdir(parents=True, exist_ok=True)
            write_npz(folder / f"class{number % 2}" / f"{number}.npz", recording(number, 30_000), WIDE)
        tree = {"data": {"name": str(folder), "bins": 5, "duration_ms": 10}, "model": {"network": "spiking-mlp"}}
        tracemalloc.start()
        prepared = prepare(check_config(tree, "test").data)
        assert isinstance(prepared.splits.train.events, np.memmap)
        found = left_out(prepared.splits, prepared.binning)
        assert len(prepared.splits.digest) == 64
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert sum(each.events for each in found.values()) == 30_000 * recordings
        return most

    few, many = peak(6), peak(24)  # 2 and 9 MB of events
    assert many < few + 500_000


def whole(times):
    return Window(0, len(times), int(times[0]), int(times[-1]) + 1)


def cut(times, **how):
    times = np.asarray(times, np.int64)
    return list(windows_of(times, whole(times), Windows(**how)))


def test_windows_of_time_begin_with_the_first_event_and_stand_side_by_side():
    found = cut([5000, 5999, 6000, 7500, 8999], ms=1, least=1.0)
    assert found == [
        Window(0, 2, 5000, 6000),
        Window(2, 3, 6000, 7000),
        Window(3, 4, 7000, 8000),
        Window(4, 5, 8000, 9000),
    ]


def test_a_window_without_events_is_left_out():
    assert cut([0, 10, 2500], ms=1, least=0.4) == [Window(0, 2, 0, 1000), Window(2, 3, 2000, 2501)]


@pytest.mark.parametrize(("least", "windows"), [(0.5, 2), (0.51, 1), (1.0, 1)])
def test_what_the_end_cuts_off_is_kept_from_a_share_on(least, windows):
    assert len(cut([0, 1000, 1499], ms=1, least=least)) == windows
    assert len(cut(np.arange(15), events=10, least=least)) == windows


def test_events_of_one_microsecond_stay_together():
    assert [window[:2] for window in cut([0, 1, 2, 2, 2, 3, 4], events=3, least=0.3)] == [(0, 2), (2, 6), (6, 7)]


def test_windows_overlap_by_a_share():
    assert [window.start for window in cut([0, 3999], ms=2, overlap=0.5, least=1.0)] == [0, 2000]
    assert [window.start for window in cut(range(0, 4000, 100), ms=2, overlap=0.5, least=0.9)] == [0, 1000, 2000]
    assert [window[:2] for window in cut(range(10), events=4, overlap=0.25, least=1.0)] == [(0, 4), (3, 7), (6, 10)]


def test_a_silence_of_ages_costs_no_time():
    found = cut([0, 2**62, 2**62 + 5], ms=0.004, least=0.25)
    assert [window[:3] for window in found] == [(0, 1, 0), (1, 2, 2**62), (2, 3, 2**62 + 4)]


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=60), st.integers(1, 10**5), st.integers(1, 20))
def test_side_by_side_every_event_is_in_one_window_at_most_and_in_its_time(times, length, count):
    times = np.sort(np.array(times, np.int64))
    for how in (Windows(ms=length / 1000, least=1e-9), Windows(events=count, least=1e-9)):
        found = list(windows_of(times, whole(times), how))
        assert [i for window in found for i in range(window.first, window.last)] == list(range(len(times)))
        for window in found:
            inside = times[window.first : window.last]
            assert window.start <= inside[0] <= inside[-1] < window.stop


def test_settings_that_contradict_each_other_are_refused():
    with pytest.raises(ValidationError, match="give one of the two"):
        Windows(ms=1, events=2)
    with pytest.raises(ValidationError, match="overlap is of windows"):
        Windows(overlap=0.5)
    assert Windows().is_off
    assert not Windows(labels="labels.csv").is_off
