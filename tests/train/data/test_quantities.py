"""Real values in place of classes: from a folder of recordings to the same bits on every device."""

import json
import re
import shutil
import subprocess

import numpy as np
import onnx
import pytest

import axonnx
from axonnx.base.errors import AxonnxError
from axonnx.cli import main
from axonnx.runtime.doctor.findings import find_compiler
from axonnx.runtime.events.arrays import Sensor, make_events, to_records
from axonnx.runtime.measure.metrics import value_metrics
from axonnx.runtime.readers import write_npz
from axonnx.runtime.report.markup import number as shown_number
from axonnx.train.data.splits import read_quantities

ANGLES = (0.0, 22.5, 45.0, 67.5, 90.0)
SETTINGS = {
    "data.bins": 15,
    "data.duration_ms": 105,
    "data.quantities": ["angle [deg]"],
    "model.network": "spiking-mlp",
    "model.hidden": [24],
    "variant.name": "sg-nbn-1",
    "optimiser.epochs": 12,
    "optimiser.weight_rate": 0.03,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Recordings of a dot that moves through the middle at an angle; their folders are named by it."""
    place, random = tmp_path_factory.mktemp("angles"), np.random.default_rng(5)
    for number in range(150):
        angle = ANGLES[number % len(ANGLES)]
        t, radians = np.sort(random.integers(0, 100_000, 200)), np.deg2rad(angle)
        along = (t / 100_000 - 0.5) * 7
        x, y = (
            np.clip(np.round(3.5 + along * f(radians) + random.normal(0, 0.4, 200)), 0, 7) for f in (np.cos, np.sin)
        )
        path = place / "data" / f"{angle:g}" / f"{number:03}.npz"
        path.parent.mkdir(parents=True, exist_ok=True)
        events = make_events(t, x.astype(int), y.astype(int), random.integers(0, 2, 200))
        write_npz(path, events, Sensor(width=8, height=8))
    return place


@pytest.fixture(scope="module")
def run(folder):
    """A regression that was trained for seconds."""
    config = {"data.name": str(folder / "data"), **SETTINGS}
    from axonnx.train.config.read import as_tree, check_config

    return axonnx.Run.train(check_config(as_tree(config), "the test"), folder / "run")


@pytest.fixture(scope="module")
def model(run, folder):
    return run.export(folder / "angle.onnx")


def spoken(text, kind):
    """The numbers of a program's lines of this kind."""
    return [np.float32(line.split()[1]) for line in text.splitlines() if line.startswith(kind)]


def test_it_learns_the_angle_and_says_how_well(run, capsys):
    found = run.metrics["test"]
    assert found["rmse"][0] < 20 < np.std(ANGLES)
    assert 0.5 < found["r2"][0] < 1
    low, high = found["intervals"]["mae"][0]
    assert low < found["mae"][0] < high
    assert "accuracy" not in found
    assert main(["eval", str(run.folder)]) == 0
    assert re.search(r"test +30 +angle", capsys.readouterr().out)


def test_the_file_says_what_it_gives(model, capsys):
    assert (model.contract.classes, model.contract.units, model.contract.accuracy) == (("angle",), ("deg",), ())
    assert main(["inspect", str(model.path)]) == 0
    out = capsys.readouterr().out
    assert "values      1: angle in deg" in out
    assert "classes " not in out


def test_it_is_verified_and_another_unit_is_found(model, run, folder, capsys):
    assert main(["verify", str(model.path), "--run", str(run.folder), "--quiet"]) == 0
    assert "angle: within" in capsys.readouterr().out
    changed = onnx.load(model.path)
    contract = json.loads(changed.metadata_props[0].value)
    contract["units"] = ["rad"]
    changed.metadata_props[0].value = json.dumps(contract)
    onnx.save(changed, folder / "other.onnx")
    assert main(["verify", str(folder / "other.onnx"), "--run", str(run.folder), "--quiet"]) == 1
    assert "contract.units" in capsys.readouterr().out


def test_forged_errors_are_found(model, run, folder, capsys):
    forged = shutil.copytree(run.folder, folder / "forged")
    found = json.loads((forged / "metrics.json").read_text("utf-8"))
    found["test"]["rmse"][0] *= 0.9
    (forged / "metrics.json").write_text(json.dumps(found), "utf-8")
    assert main(["verify", str(model.path), "--run", str(forged), "--quiet"]) == 1
    assert "metrics.json states for 'test' rmse" in capsys.readouterr().out


def test_every_device_gives_the_same_bits(model, folder, capsys):
    """The command line, Python, C and JavaScript, all from one recording of events."""
    recording = sorted((folder / "data" / "45").iterdir())[0]
    decision = model.predict(recording)
    value = np.float32(decision.values["angle"])
    assert decision.text == f"angle {value:.6g} deg"
    assert main(["run", str(model.path), str(recording)]) == 0
    assert f"angle {value:.6g} deg" in capsys.readouterr().out
    assert main(["run", str(model.path), str(recording), "--json"]) == 0
    told = json.loads(capsys.readouterr().out.splitlines()[0])
    assert (np.float32(told["values"]["angle"]), told["units"]) == (value, ["deg"])
    assert "probability" not in told
    for engine in ("numpy", "ort"):
        assert np.float32(axonnx.load(model.path, engine=engine).predict(recording).values["angle"]) == value
    events = axonnx.read_events(recording).events
    rows = "\n".join(f"{e['t']},{e['x']},{e['y']},{e['p']}" for e in events)
    (folder / "recording.csv").write_text(f"t,x,y,p\n{rows}\n", "utf-8")
    if shutil.which("make") and find_compiler() is not None:
        made = model.compile(folder / "c", target="c").folder
        subprocess.run(["make", "-s"], cwd=made, check=True)
        out = subprocess.run([made / "network", folder / "recording.csv"], capture_output=True, text=True, check=True)
        assert spoken(out.stdout, "logits") == [value]
        assert out.stdout.startswith(f"angle {value:.6g} deg  (")
    if shutil.which("node"):
        made = model.compile(folder / "js", target="js").folder
        assert not (made / "index.html").exists()
        words = ["node", str(made / "run.mjs"), str(folder / "recording.csv")]
        out = subprocess.run(words, capture_output=True, text=True, check=True)
        assert spoken(out.stdout, "logits") == [value]
        assert re.match(r"angle [\d.]+ deg  \(", out.stdout)


def test_eval_has_errors_with_intervals(model, folder, run, capsys):
    shutil.copytree(folder / "data", folder / "copy")  # of the data of the training, only the test part is taken
    found = model.evaluate(folder / "copy")
    truth = [float(path.parent.name) for path in sorted((folder / "data").glob("*/*"))]
    assert sorted(row[0] for row in found.truth) == sorted(truth)
    errors = np.array(found.found)[:, 0] - np.array(found.truth)[:, 0]
    assert found.rmse[0] == pytest.approx(np.sqrt((errors**2).mean()))
    assert model.evaluate(run.folder).samples == 30
    assert main(["eval", str(model.path), "--data", str(folder / "copy")]) == 0
    assert re.search(r"angle +RMSE +[\d.]+ deg", capsys.readouterr().out)


def test_what_needs_classes_is_refused(model, folder):
    recording = sorted((folder / "data" / "0").iterdir())[0]
    decision = model.predict(recording)
    for use in (
        lambda: model.session(stop_at=0.9),
        lambda: decision.probabilities,
        lambda: decision.label,
        lambda: model.run(np.zeros((15, 1, 2, 8, 8), np.float32)).probabilities,
    ):
        with pytest.raises(AxonnxError, match="real values"):
            use()


def test_a_profile_has_errors_in_the_place_of_an_accuracy(model, folder, capsys):
    found, errors = model.profile(folder / "data", limit=20), model.evaluate(folder / "data")
    assert found.errors.samples == 20
    assert found.totals.events_in > 0
    assert (found.values, found.units, found.early_exit) == (("angle",), ("deg",), ())
    whole = model.profile(folder / "data", limit=None)
    assert whole.errors.mae == errors.mae
    assert main(["profile", str(model.path), str(model.path), "--data", str(folder / "data"), "--limit", "20"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"angle +RMSE +[\d.]+ +deg", out)
    assert "accuracy  " not in out.partition("file  ")[0]
    assert type(found).model_validate_json(found.model_dump_json()).errors == found.errors


def test_many_recordings_are_summarised_with_errors(model, folder, capsys):
    assert main(["run", str(model.path), str(folder / "data"), "--json", str(folder / "rows.json")]) == 0
    out = capsys.readouterr().out
    assert re.search(r"000\.npz +angle [-\d.]+ deg  is angle 0 deg", out)
    assert "values      angle in deg" in out
    *rows, summary = map(json.loads, (folder / "rows.json").read_text("utf-8").splitlines())
    found, true = (np.array([row[side]["angle"] for row in rows]) for side in ("values", "true"))
    errors = np.abs(found - true)
    assert f"MAE   {errors.mean():>10.4g} deg" in out
    assert (summary["units"], summary["errors"]["samples"]) == ({"angle": "deg"}, 150)
    assert summary["errors"]["rmse"][0] == pytest.approx(np.sqrt((errors**2).mean()))


def test_a_report_shows_values_with_units(model, run, folder):
    page = model.report(folder / "report.html", run=run.folder, shown=3, limit=30).read_text("utf-8")
    evaluated = model.evaluate(run.folder)
    mae, (low, high) = evaluated.mae[0], evaluated.intervals["mae"][0]
    assert "for the real values angle in deg" in page
    assert f"{shown_number(mae)} deg" in page
    assert "95 % interval (bootstrap)" in page
    assert f"{shown_number(low)} – {shown_number(high)}" in page
    assert page.count("Found: <b>angle ") == 3
    assert "Class probabilities" not in page
    assert "Confusion" not in page
    bare = model.report(folder / "bare.html").read_text("utf-8")
    assert "Errors need samples whose values are known." in bare


def test_a_server_sends_values_with_units(model, folder):
    pytest.importorskip("uvicorn", reason="serving needs uvicorn: pip install 'axonnx[serve]'")
    from ...runtime.serve.live import follow, serving, told

    recording = sorted((folder / "data" / "45").iterdir())[0]
    events = axonnx.read_events(recording).events
    with serving(model.path) as live:
        hello, decisions, _, _ = follow(live, [events])
        assert (hello["classes"], hello["units"]) == (["angle"], ["deg"])
        assert decisions[0]["values"] == model.predict(recording).values
        assert "probability" not in decisions[0]
        with live.client("/stream?every_bin=1") as client, live.client("/watch") as page:
            number = told(client)["stream"]
            client.send(to_records(events))
            found = [told(client)["values"]["angle"] for _ in range(10)]
            while (view := told(page))["stream"] != number or view["decision"] is None:
                pass
    ((name, value, unit),) = view["decision"]["values"]
    assert (name, unit, view["decision"]["label"]) == ("angle", "deg", f"angle {value:.6g} deg")
    assert [point[2] for point in view["history"]][:10] == found[: len(view["history"])]


def test_names_units_and_values_are_read():
    found = read_quantities(["angle [deg]", "speed"], ["1.5,-2", "0,1e3"], "here")
    assert (found.names, found.units) == (("angle", "speed"), ("deg", ""))
    assert np.array_equal(found.table, np.float32([[1.5, -2], [0, 1000]]))


@pytest.mark.parametrize(
    ("texts", "classes", "text"),
    [
        (["angle"], ["left"], "the class 'left' stands for no value of angle"),
        (["angle"], ["1,2"], "named by 1 finite numbers, e.g. 37.5"),
        (["angle"], ["nan"], "the class 'nan'"),
        (["a", "a [m]"], ["1,2"], "expected different names"),
        (["[deg]"], ["1"], "expected different names"),
    ],
)
def test_other_names_are_refused(texts, classes, text):
    with pytest.raises(AxonnxError, match=re.escape(text)):
        read_quantities(texts, classes, "here")


def test_errors_are_those_of_the_textbook():
    truth = np.array([[0.0], [1.0], [2.0], [3.0]])
    found = value_metrics(truth + np.array([[1.0], [-1.0], [1.0], [-1.0]]), truth)
    assert (found.mae, found.rmse, found.r2) == ((1.0,), (1.0,), (pytest.approx(1 - 1 / 1.25),))
    assert value_metrics(truth, truth).rmse == (0.0,)
    with pytest.raises(AxonnxError, match="expected both"):
        value_metrics(truth, truth[:, 0])
