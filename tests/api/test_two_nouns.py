"""``Model`` takes what users have: paths, events, arrays, batches, data sets by name, objects of torch and tonic."""

import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

import axonnx
from axonnx.cli import main
from axonnx.loading import samples_for
from axonnx.runtime.events.arrays import make_events
from axonnx.runtime.measure.samples import Samples
from axonnx.runtime.readers import Recording, write_npz

from ..runtime.streams.small_models import CLASSES, SENSOR


def events_of(seed, count=120, length=4900):
    random = np.random.default_rng(seed)
    t = np.sort(random.integers(0, length, count))
    return make_events(t, random.integers(0, 8, count), random.integers(0, 6, count), random.integers(0, 2, count))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """<folder>/<class>/<file>, two of each class."""
    root = tmp_path_factory.mktemp("classes")
    for label, name in enumerate(CLASSES):
        (root / name).mkdir()
        for number in range(2):
            write_npz(root / name / f"{number}.npz", events_of(10 * label + number), SENSOR)
    return root


@pytest.fixture(scope="module")
def plain(files):
    return axonnx.load(files["plain"], "numpy")


class Tonic:
    """A data set as tonic gives one: structured arrays with fields in another order and of other types."""

    def __init__(self, items):
        self.items = items

    def __len__(self):
        return len(self.items)

    def __getitem__(self, number):
        events, label = self.items[number]
        found = np.zeros(len(events), np.dtype([("x", "<i2"), ("y", "<i2"), ("t", "<i8"), ("p", "?")]))
        for name in ("x", "y", "t", "p"):
            found[name] = events[name]
        return found, label


def test_every_kind_of_one_recording_gives_the_same_bits(plain, tmp_path):
    events = events_of(3)
    path = axonnx.write_events(tmp_path / "one.npz", events, (8, 6))
    assert axonnx.read_events(path).sensor == SENSOR
    found = [plain.predict(each) for each in (path, str(path), events, Recording(events, "here", SENSOR))]
    found.append(plain.predict(Tonic([(events, 0)])[0][0]))
    assert len({each.member_logits.tobytes() for each in found}) == 1
    assert [each.label for each in plain.predict([path, events])] == [found[0].label] * 2


def test_frames_are_one_sample_or_a_batch(files, plain, tmp_path):
    frames = np.random.default_rng(0).integers(0, 4, (3, 5, 2, 6, 8))
    batch = plain.predict(frames)
    assert len(batch) == 3
    one = plain.predict(frames[1])
    assert one.member_logits.tobytes() == batch[1].member_logits.tobytes()
    expected = plain.run(plain.prepare(frames.swapaxes(0, 1))).member_logits
    assert np.stack([each.member_logits for each in batch], 1).tobytes() == expected.tobytes()
    assert plain.predict(torch.from_numpy(frames))[2].logits.tobytes() == batch[2].logits.tobytes()
    images = axonnx.load(files["images"], "numpy")
    pixels = np.random.default_rng(0).integers(0, 20, (4, *images.contract.input.shape))
    np.save(tmp_path / "images.npy", pixels)
    assert [d.label for d in images.predict(tmp_path / "images.npy")] == [d.label for d in images.predict(pixels)]
    with pytest.raises(axonnx.AxonnxError, match="the network expects 5 frames"):
        plain.predict(np.zeros((3, 3)))


def test_a_stream_is_a_list_of_decisions_with_counters(plain, tmp_path):
    path = axonnx.write_events(tmp_path / "long.npz", events_of(1, 400, 20_000), SENSOR)
    stream = plain.stream(path, windows=True)
    assert [decision.window for decision in stream] == [0, 1, 2, 3]
    assert stream.summary()["decisions"] == 4
    assert len(list(plain.stream(path, windows=True, limit=2))) == 2
    with pytest.raises(axonnx.AxonnxError, match="expected resize, centre"):
        plain.stream(path, fit="stretch")


def as_arrays(folder, plain):
    samples = samples_for(folder, plain.contract)
    parts = list(samples.batches)
    return tuple(np.concatenate([part[side] for part in parts]) for side in (0, 1))


def test_every_kind_of_labelled_data_gives_the_same_figures(plain, folder, tmp_path):
    x, y = as_arrays(folder, plain)
    np.savez(tmp_path / "data.npz", frames=x, labels=y)
    recorded = [(events_of(10 * label + n), label) for name in sorted(CLASSES) for n in range(2)
                for label in [CLASSES.index(name)]]  # fmt: skip
    torch_data = TensorDataset(torch.from_numpy(x.astype(np.int64)), torch.from_numpy(y))
    given = {
        "folder": folder,
        "text": str(folder),
        "arrays": (x, y),
        "file": tmp_path / "data.npz",
        "tensors": (torch.from_numpy(x.astype(np.int64)), torch.from_numpy(y)),
        "data set": torch_data,
        "loader": DataLoader(torch_data, batch_size=3),
        "tonic": Tonic(recorded),
        "recordings": ([Recording(events, "x", SENSOR) for events, _ in recorded], y),
    }
    found = {name: plain.evaluate(data) for name, data in given.items()}
    assert {(each.decisions, each.truth, each.nll) for each in found.values()} == {
        (found["folder"].decisions, found["folder"].truth, found["folder"].nll)
    }
    assert found["folder"].samples == 8
    profiles = {name: plain.profile(data).totals for name, data in given.items()}
    assert len({each.model_dump_json() for each in profiles.values()}) == 1
    assert all(plain.verify(data=data).verified for data in given.values())


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (3, "data of type int; expected a path"),
        (([np.zeros((5, 2, 6, 8), int)], [9]), "sample 0 has label 9; expected 0 to 3"),
        (Tonic([]), "there are no samples"),
        ("no-such-data", "there is no data set and no file 'no-such-data'"),
    ],
)
def test_other_data_is_refused(plain, data, text):
    with pytest.raises(axonnx.AxonnxError, match=text):
        plain.evaluate(data)


def test_a_file_is_verified_against_runs_and_modules_alone(plain):
    with pytest.raises(
        axonnx.AxonnxError, match="cannot verify against int; expected a Run, its path, or a torch module"
    ):
        plain.verify(3)


def test_jobs_take_data_that_workers_can_find(plain):
    with pytest.raises(axonnx.AxonnxError, match="workers need a path or a name"):
        plain.evaluate((np.zeros((2, 5, 2, 6, 8), int), [0, 1]), jobs=2)


@pytest.mark.parametrize(
    "words", [["eval", "--json"], ["profile", "--json"], ["verify", "--json"], ["report", "-o", "page.html", "--quiet"]]
)
def test_a_class_folder_is_data_for_every_verb(files, folder, tmp_path, monkeypatch, capsys, words):
    monkeypatch.chdir(tmp_path)
    assert main([words[0], str(files["plain"]), "--data", str(folder), *words[1:]]) == 0, capsys.readouterr().err


def test_some_samples_are_those_of_every_choice(plain, folder):
    x, y = as_arrays(folder, plain)
    samples = samples_for(folder, plain.contract)
    assert isinstance(samples, Samples)
    chosen = samples.choose(4)
    assert sorted(chosen.labels.tolist()) == [0, 1, 2, 3]
    assert np.array_equal(chosen.frames, samples_for((x, y), plain.contract).choose(4).frames)
    assert samples.choose().frames.tobytes() == x.tobytes()


def test_reprs_are_short_and_cards_are_html(folder, files):
    plain = axonnx.load(files["plain"], "numpy")
    assert repr(plain).startswith("Model('")
    assert repr(plain).endswith("spiking, mfa, [5, 2, 6, 8] → 4 classes, engine numpy)")
    assert repr(plain.predict(events_of(1))).startswith("Decision('")
    card = plain._repr_html_()
    assert card.startswith("<table>")
    assert "energy" not in card
    plain.profile(folder)
    card = plain._repr_html_()
    assert all(word in card for word in ("5 frames of 2×6×8", "left, right, up, down", "nJ"))
    assert len(repr(plain)) < 200


def test_a_copy_is_the_file_and_nothing_else_is_written(plain, files, tmp_path):
    plain.save(tmp_path / "copy.onnx")
    assert (tmp_path / "copy.onnx").read_bytes() == files["plain"].read_bytes()
    assert os.listdir(tmp_path) == ["copy.onnx"]
    assert axonnx.load(tmp_path / "copy.onnx").save(tmp_path / "copy.onnx").is_file()


def test_a_deployed_model_needs_no_torch(files, folder):
    code = (
        "import sys; sys.modules['torch'] = None; import axonnx, numpy as np\n"
        f"model = axonnx.load({str(files['plain'])!r})\n"
        "model.predict(np.zeros((5, 2, 6, 8), int)), model.verify(), model.inspect(), model.compile('c')\n"
        f"model.evaluate({str(folder)!r}), model.profile({str(folder)!r}), "
        f"model.report('r.html', data={str(folder)!r})\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=folder.parent)
    assert done.returncode == 0, done.stderr


def test_a_pickled_model_is_its_file_and_its_engine(tmp_path):
    """The engine itself, with its buffers in C, stays in its process."""
    import pickle
    import shutil

    from axonnx.base.errors import AxonnxError

    from ..runtime.streams.small_models import export_all

    path = tmp_path / "model.onnx"
    files = export_all(tmp_path)
    shutil.copyfile(files["plain"], path)
    pickled = pickle.dumps(axonnx.load(path))
    assert len(pickled) < 1_000
    again = pickle.loads(pickled)
    assert (again.path, again.asked) == (path, ("auto", 1))
    shutil.copyfile(files["noisy"], path)
    with pytest.raises(AxonnxError, match="sha256 differs"):
        pickle.loads(pickled)
