import inspect

import numpy as np
import pytest

from axonnx.base.errors import AxonnxError
from axonnx.runtime.binning import Sensor
from axonnx.runtime.events.arrays import make_events
from axonnx.runtime.readers import write_npz
from axonnx.train.data.registry import DATA_SETS, available, load_data_set


def test_every_data_set_has_a_line_about_it():
    assert set(available()) == set(DATA_SETS)
    assert all(20 < len(line) < 100 and "\n" not in line for line in available().values())
    assert {"digits-saccade", "shd", "dvs-gesture", "nmnist", "cifar10", "fashion-mnist"} <= set(available())


def test_loaders_take_the_root_first_and_options_by_name_only():
    for known in DATA_SETS.values():
        first, *options = inspect.signature(known.load).parameters.values()
        assert (first.name, first.default) == ("root", None)
        assert all(option.kind is option.KEYWORD_ONLY for option in options)


def test_built_in_data_needs_no_folder():
    splits = load_data_set("digits-static").with_validation(0.1)
    assert {name: len(part) for name, part in splits.parts.items()} == {"train": 1293, "validation": 144, "test": 360}


@pytest.mark.parametrize("name", sorted(set(DATA_SETS) - {"digits-saccade", "digits-static"}))
def test_missing_data_is_an_error_that_names_the_set_and_the_folder(tmp_path, name):
    with pytest.raises(AxonnxError, match=f"^{name}: no data folder given"):
        load_data_set(name)
    with pytest.raises(AxonnxError, match=f"^{name}: data files are missing\n  expected: .*\n  looked in: .*\n  how"):
        load_data_set(name, root=tmp_path)


@pytest.mark.parametrize(
    ("name", "near"), [("digit-saccade", "digits-saccade"), ("cifar-10", "cifar10"), ("fashion_mnist", "fashion-mnist")]
)
def test_unknown_names_are_answered_with_the_nearest(name, near):
    with pytest.raises(AxonnxError, match=f"no data set and no file '{name}'; did you mean .*{near}"):
        load_data_set(name)


def test_a_name_like_no_other_is_answered_with_all():
    with pytest.raises(AxonnxError, match="'zzz'; Known: digits-saccade, digits-static, shd, "):
        load_data_set("zzz")


def test_unknown_options_are_answered_with_the_nearest():
    with pytest.raises(AxonnxError, match="unknown option 'sensors'; did you mean 'sensor'"):
        load_data_set("digits-saccade", sensors=32)
    with pytest.raises(AxonnxError, match="unknown option 'camera'; Known: none"):
        load_data_set("digits-static", camera={})


def test_own_data_is_found_by_path(tmp_path):
    np.savez(tmp_path / "frames.npz", x=np.zeros((10, 1, 4, 4), np.uint8), y=np.arange(10) % 2)
    assert load_data_set(tmp_path / "frames.npz", test_share=0.3).kind == "images"
    for part in ("train", "test"):
        (tmp_path / "parts").mkdir(exist_ok=True)
        (tmp_path / "parts" / f"{part}.npz").write_bytes((tmp_path / "frames.npz").read_bytes())
    assert len(load_data_set(str(tmp_path / "parts")).train) == 10
    for name in ("a", "b"):
        (tmp_path / "events" / name).mkdir(parents=True)
        for number in range(3):
            write_npz(tmp_path / "events" / name / f"{number}.npz", make_events([number], [1]), Sensor(width=4))
    assert load_data_set(tmp_path / "events").kind == "events"


def test_files_that_hold_no_data_are_refused(tmp_path):
    (tmp_path / "data.txt").write_text("hello")
    with pytest.raises(AxonnxError, match=r"data\.txt: own data is a folder"):
        load_data_set(tmp_path / "data.txt")


def test_a_name_that_no_file_can_have_is_refused():
    with pytest.raises(AxonnxError, match=r"^'n{80}'…: cannot be read \(File name too long\)"):
        load_data_set("n" * 300)
