"""``axonnx run`` on recordings and standard input: what it prints, what it counts, what it refuses."""

import io
import json

import numpy as np
import pytest

from axonnx.cli import main
from axonnx.runtime.binning import Sensor
from axonnx.runtime.events.arrays import make_events, to_records
from axonnx.runtime.model import Model
from axonnx.runtime.readers import write_npz
from axonnx.runtime.streams.session import Session

NUMPY = ("--engine", "numpy")
WIDE = Sensor(width=16, height=12)


def some(count=400, span=23_000, width=8, height=6, seed=3):
    generator = np.random.default_rng(seed)
    times = np.sort(generator.integers(0, span, count))
    return make_events(times, generator.integers(0, width, count), generator.integers(0, height, count), times % 2)


@pytest.fixture
def run(capsys):
    """The command's exit code, its JSON objects (the last is the summary), and what it said to stderr."""

    def call(*words, windows=True):
        code = main(["run", *map(str, words), "--json", *NUMPY, *(["--windows"] if windows else [])])
        said = capsys.readouterr()
        return code, [json.loads(line) for line in said.out.splitlines()], said.err

    return call


@pytest.fixture
def recording(tmp_path):
    write_npz(tmp_path / "some.npz", some(), Sensor(width=8, height=6))
    return tmp_path / "some.npz"


@pytest.fixture
def typed(monkeypatch):
    """Puts bytes on standard input."""

    def put(data):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))

    return put


@pytest.mark.parametrize("name", ["plain", "ensemble", "noisy"])
@pytest.mark.parametrize("words", [[], ["--continuous"], ["--stop-at", "0.5"], ["--seed", "9"]])
def test_json_has_the_bits_of_a_session(run, files, engines, recording, name, words):
    rules = {"continuous": "--continuous" in words, "seed": 9 if "--seed" in words else 0}
    session = Session(engines(name), stop_at=0.5 if "--stop-at" in words else None, **rules)
    expected = session.push(some()) + session.flush()
    code, (*found, summary), _ = run(files[name], recording, "--every-bin", *words)
    assert code == 0
    assert [each["t_us"] for each in found] == [decision.t_us for decision in expected]
    for each, decision in zip(found, expected, strict=True):
        assert np.array(each["logits"], np.float32).tobytes() == decision.logits.tobytes()
        assert each == json.loads(json.dumps(decision.as_dict()))
        assert each["label"] == ["left", "right", "up", "down"][each["class"]]
        assert sum(each["probabilities"]) == pytest.approx(1)
        assert ("mutual_information" in each) == (name == "ensemble")
    assert summary["decisions"] == len(found)
    assert summary["spikes"] == dict(session.progress.tally.spikes)


def test_the_summary_accounts_for_every_event(run, files, recording):
    code, (*found, summary), err = run(files["plain"], recording)
    assert (code, err) == (0, "")
    assert [each["final"] for each in found] == [True] * 5
    assert summary["summary"] is True
    assert summary["events"] == summary["binned"] == 400
    assert (summary["dropped"], summary["pending"], summary["bins"]) == ({}, 0, 25)
    assert (summary["model"], summary["engine"]) == ("plain.onnx", "numpy")
    assert summary["spikes"]["hidden.0.neuron"] > 0


def test_readable_lines_say_time_label_probability_and_entropy(files, recording, capsys):
    assert main(["run", str(files["plain"]), str(recording), "--windows", "--every-bin", *NUMPY]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("     0.001000 s  ")
    assert ["final" in line for line in lines[:25]] == [False, False, False, False, True] * 5
    assert lines[24].endswith("final, partly filled: the events end after 3 of 5 bins")
    assert all(" %  entropy " in line for line in lines[:25])
    assert lines[25].startswith("events     400 read, 400 binned")
    assert lines[26] == "bins       25"
    assert lines[27] == "decisions  25, by the engine numpy"
    assert lines[28].startswith("spikes     hidden.0.neuron ")
    assert lines[28].endswith(" (in 25 bins)")


def test_marks_of_early_and_silent_windows(files, capsys, tmp_path):
    write_npz(tmp_path / "gap.npz", make_events([0, 1_000_000], 3), Sensor(width=8, height=6))
    gap = str(tmp_path / "gap.npz")
    assert main(["run", str(files["plain"]), gap, "--windows", "--stop-at", "0.1", *NUMPY]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("  final, early, after 1 of 5 bins")
    assert lines[1].endswith("  final, early, after 1 of 5 bins, of 199 silent windows")
    assert main(["run", str(files["ensemble"]), str(tmp_path / "gap.npz"), *NUMPY]) == 0
    assert "  mutual information 0." in capsys.readouterr().out


def test_a_recording_has_one_answer_that_of_its_first_window(run, files, engines, recording):
    code, (*found, summary), err = run(files["plain"], recording, windows=False)
    answer = Model(engines("plain").program, engines("plain")).predict(recording)
    assert (code, len(found), summary["decisions"], summary["bins"]) == (0, 1, 1, 5)
    assert found[0] == {key: value for key, value in answer.as_dict().items() if key != "outside"}
    assert (summary["dropped"], summary["pending"]) == ({"after": answer.outside.after}, 0)
    assert summary["binned"] + answer.outside.after == summary["events"] == 400
    assert f"{answer.outside.after} of 400 events lie beyond the window of the one answer and are left out" in err
    assert "--windows gives a decision for each" in err
    _, (*every, _), _ = run(files["plain"], recording, "--every-bin", windows=False)
    assert every[-1] == found[0]
    assert len(every) == 5


def test_a_clock_that_is_far_from_the_window_is_told(run, files, tmp_path):
    late = some()
    late["t"] += 10**9
    write_npz(tmp_path / "late.npz", late, Sensor(width=8, height=6))
    _, _, err = run(files["plain"], tmp_path / "late.npz", windows=False)
    assert "none is in it: --origin first begins at the first event" in err
    _, (found, _), _ = run(files["first"], tmp_path / "late.npz", windows=False)
    assert not found["partial"]


def test_a_stream_has_a_decision_for_each_window(run, files, recording, typed):
    typed("".join(f"{t},{x},{y},{p}\n" for t, x, y, p in some().tolist()).encode())
    _, (*typed_in, _), err = run(files["plain"], "-", windows=False)
    _, (*windows, _), _ = run(files["plain"], recording)
    assert (len(windows), err) == (5, "")
    assert typed_in == windows
    _, (*continuous, _), _ = run(files["plain"], recording, "--continuous", windows=False)
    assert len(continuous) == 5


def test_the_window_in_which_the_events_end_is_marked(files, tmp_path, capsys):
    write_npz(tmp_path / "short.npz", make_events([0, 6_200], 3), Sensor(width=8, height=6))
    assert main(["run", str(files["plain"]), str(tmp_path / "short.npz"), "--windows", *NUMPY]) == 0
    first, second, *_ = capsys.readouterr().out.splitlines()
    assert first.endswith("  final")
    assert second.endswith("  final, partly filled: the events end after 2 of 5 bins")
    assert main(["run", str(files["plain"]), str(tmp_path / "short.npz"), *NUMPY]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("  final")
    assert lines[1] == "events     2 read, 1 binned, 1 left out (beyond the window)"


def test_a_larger_sensor_is_refused_unless_told_how(run, files, tmp_path):
    path = tmp_path / "wide.npz"
    write_npz(path, some(width=16, height=12), WIDE)
    code, _, err = run(files["plain"], path)
    assert code == 2
    assert "the source's sensor is 16×12, but the network expects 8×6; resize the events" in err
    assert err.endswith("(--resize, --crop)\n")
    _, (*_, resized), _ = run(files["plain"], path, "--resize")
    assert (resized["binned"], resized["dropped"]) == (400, {})
    for crop in ("centre", "2,1"):
        _, (*_, cropped), _ = run(files["plain"], path, "--crop", crop)
        assert 0 < cropped["binned"] == 400 - cropped["dropped"]["cropped"] < 200
        assert cropped["pending"] == 0


def test_resizing_is_binning_the_scaled_events(run, files, tmp_path):
    wide, narrow = some(width=16, height=12), some(width=16, height=12)
    narrow["x"] //= 2
    narrow["y"] //= 2
    write_npz(tmp_path / "wide.npz", wide, WIDE)
    write_npz(tmp_path / "narrow.npz", narrow, Sensor(width=8, height=6))
    _, resized, _ = run(files["plain"], tmp_path / "wide.npz", "--resize")
    _, plain, _ = run(files["plain"], tmp_path / "narrow.npz")
    assert resized[:-1] == plain[:-1]


def test_a_sensor_that_no_one_states_is_judged_by_its_events(run, files, tmp_path):
    write_npz(tmp_path / "wide.npz", some(width=16, height=12))
    code, _, err = run(files["plain"], tmp_path / "wide.npz")
    assert code == 2
    assert "has events on 16×12 pixels, but the network's sensor is 8×6" in err
    code, _, err = run(files["plain"], tmp_path / "wide.npz", "--resize")
    assert code == 2
    assert "state the size, for example 128x128 (--sensor)" in err
    _, (*_, stated), _ = run(files["plain"], tmp_path / "wide.npz", "--sensor", "8x6")
    assert stated["binned"] + stated["dropped"]["off_sensor"] == 400
    _, (*_, resized), _ = run(files["plain"], tmp_path / "wide.npz", "--sensor", "16x12", "--resize")
    assert resized["binned"] == 400


def test_a_stated_sensor_must_be_that_of_the_file(run, files, recording):
    code, _, err = run(files["plain"], recording, "--sensor", "9x9", "--resize")
    assert code == 2
    assert "states a sensor of 8×6, but 9×9 was given" in err


def test_disorder_is_refused_dropped_or_sorted(run, files, tmp_path, recording):
    events = some()
    mixed = events.copy()
    for first in range(0, 380, 40):  # pairs change places, some further apart than the tolerance
        mixed[[first, first + 1 + first // 40]] = mixed[[first + 1 + first // 40, first]]
    write_npz(tmp_path / "mixed.npz", mixed, Sensor(width=8, height=6))
    path, straight = tmp_path / "mixed.npz", run(files["plain"], recording)[1]
    code, _, err = run(files["plain"], path)
    assert code == 2
    assert "Raise the tolerance, or drop and count late events" in err
    assert err.endswith("(--tolerance-us, --on-disorder)\n")
    _, (*_, dropped), _ = run(files["plain"], path, "--on-disorder", "drop")
    assert dropped["binned"] + dropped["dropped"]["disorder"] == 400
    assert dropped["dropped"]["disorder"] > 5
    _, within, _ = run(files["plain"], path, "--tolerance-us", "5000")
    _, whole, _ = run(files["plain"], path, "--on-disorder", "sort")
    assert within[:-1] == whole[:-1] == straight[:-1]
    assert within[-1]["sorted"] == whole[-1]["sorted"] == dropped["dropped"]["disorder"]
    assert within[-1]["binned"] == 400


@pytest.mark.parametrize("as_records", [True, False])
def test_standard_input_gives_what_the_file_gives(run, files, recording, typed, as_records):
    _, expected, _ = run(files["plain"], recording)
    lines = "".join(f"{t},{x},{y},{p}\n" for t, x, y, p in some().tolist()).encode()
    typed(to_records(some()) if as_records else lines)
    code, found, _ = run(files["plain"], "-", *(["--format", "records"] if as_records else []))
    assert code == 0
    assert found[:-1] == expected[:-1]
    assert {**found[-1], "source": None} == {**expected[-1], "source": None}


def test_strays_on_a_stream_are_counted_by_reason(run, files, typed):
    typed(b"-7,1,1,0\n0,1,1,0\n10,8,1,0\n20,1,6,1\n30,1,1,2\n40,1,1,1\n35,1,1,1\n50,1,1,1\n")
    code, (*_, summary), _ = run(files["plain"], "-", "--on-disorder", "drop")
    assert code == 0
    assert summary["dropped"] == {"disorder": 1, "off_sensor": 2, "bad_polarity": 1, "before": 1}
    assert (summary["events"], summary["binned"], summary["pending"]) == (8, 3, 0)


def test_a_stream_that_breaks_off_is_decided_as_far_as_it_goes(run, files, typed):
    typed(to_records(some())[:-3])
    code, (*found, summary), _ = run(files["plain"], "-", "--format", "records")
    assert (code, len(found)) == (0, 5)
    assert (summary["events"], summary["skipped"]) == (399, {"cut_off_record": 1})


@pytest.mark.parametrize("data", [b"", b"t,x,y,p\n"])
def test_an_empty_stream_gives_a_summary_only(run, files, typed, data):
    typed(data)
    code, found, _ = run(files["plain"], "-")
    assert code == 0
    assert len(found) == 1
    assert (found[0]["events"], found[0]["decisions"], found[0]["spikes"]) == (0, 0, None)


def test_limits_end_the_run(run, files, recording):
    _, (*found, summary), _ = run(files["plain"], recording, "--limit", "2")
    assert len(found) == summary["decisions"] == 2
    assert summary["events"] == summary["binned"] + summary["pending"]


def test_the_origin_can_be_moved(run, files, tmp_path):
    late = some()
    late["t"] += 10**12
    write_npz(tmp_path / "late.npz", late, Sensor(width=8, height=6))
    _, (first, *_), _ = run(files["plain"], tmp_path / "late.npz")
    assert first["windows"] == 2 * 10**8
    _, (*found, _), _ = run(files["plain"], tmp_path / "late.npz", "--origin", "first")
    assert (len(found), found[0]["windows"]) == (5, 1)
    _, (*_, summary), _ = run(files["plain"], tmp_path / "late.npz", "--origin", 10**12 + 11_500)
    assert summary["dropped"]["before"] + summary["binned"] == 400


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (["missing.npz"], "missing.npz: cannot be read"),
        (["udp:0"], "'0' is not a port"),
        (["-", "--on-disorder", "sort"], "a live stream cannot be sorted as a whole"),
        (["-", "--stop-at", "2"], "expected a probability above 0"),
        (["-", "--stop-at", "0.5", "--continuous"], "must process every bin"),
        (["-", "--format", "npz"], "cannot read the format 'npz' from a stream"),
    ],
)
def test_wrong_use_ends_with_exit_code_2(run, files, typed, words, fault):
    typed(b"")
    code, printed, err = run(files["plain"], *words)
    assert (code, printed) == (2, [])
    assert fault in err
    assert err.startswith("axonnx run: ")


@pytest.mark.parametrize(
    "words",
    [
        ["--origin", "last"], ["--limit", "0"], ["--seed", "-1"], ["--engine", "fast"], ["--tolerance-us", "-4"],
    ],
)  # fmt: skip
def test_options_are_checked(files, recording, words, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["run", str(files["plain"]), str(recording), *words])
    assert ended.value.code == 2
    assert "usage: axonnx run" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ["--crop", "a,b"], ["--crop", "1"], ["--sensor", "8"], ["--sensor", "0x4"], ["--sensor", "4x4x3"],
        ["--resize", "--crop", "1,1"], ["--fit", "stretch"],
    ],
)  # fmt: skip
def test_ways_to_fit_are_checked(files, recording, words, capsys):
    assert main(["run", str(files["plain"]), str(recording), *words]) == 2
    assert capsys.readouterr().err.startswith("axonnx run: fit")


def test_truncated_and_empty_files_are_refused_before_any_decision(run, files, recording, tmp_path):
    cut = tmp_path / "cut.npz"
    cut.write_bytes(recording.read_bytes()[:-40])
    (tmp_path / "empty.npz").write_bytes(b"")
    (tmp_path / "odd.bin").write_bytes(bytes(12))
    (tmp_path / "model.onnx").write_bytes(files["plain"].read_bytes()[:-100])
    for words, fault in [
        ([files["plain"], cut], "cut off, is damaged"),
        ([files["plain"], tmp_path / "empty.npz"], "is empty (0 bytes)"),
        ([files["plain"], tmp_path / "odd.bin"], "has 2 of its 5 bytes"),
        ([tmp_path / "model.onnx", recording], "model.onnx: "),
        ([tmp_path / "no.onnx", recording], "cannot be read"),
    ]:
        code, printed, err = run(*words)
        assert (code, printed) == (2, [])
        assert fault in err
