"""Frames and images: shapes, integers, centre and shift, batches."""

import json

import numpy as np
import pytest

from axonnx.base.errors import AxonnxError
from axonnx.cli import main
from axonnx.runtime import frame_pipeline
from axonnx.runtime.format.contract import InputContract, MergingContract
from axonnx.runtime.frame_pipeline import FramePipeline
from axonnx.runtime.program.layer_noise import stream_noise
from axonnx.runtime.streams.frame_files import read_frames


def some(shape, seed=0):
    return np.random.default_rng(seed).integers(-10, 31, shape)


@pytest.mark.parametrize("name", ["frames", "images", "noisy_images"])
def test_each_sample_is_centred_shifted_and_run(engines, tmp_path, monkeypatch, name):
    monkeypatch.setattr(frame_pipeline, "BATCH", 3)
    engine = engines(name)
    shape = (4, 2, 1, 3) if name == "frames" else (3, 2, 2)
    np.savez(tmp_path / "many.npz", frames=some((7, *shape)))
    samples = read_frames(tmp_path / "many.npz", engine.program.contract.input)
    decisions = list(FramePipeline(engine, samples, seed=5).decisions())
    noise, steps = stream_noise(engine.program, 5), len(samples[0])
    assert len(decisions) == 7
    for number, decision in enumerate(decisions):
        x = ((samples[number] - 10) / 8).astype(np.float32)[:, None]
        chunk = engine.advance(engine.initial_state(1), x, noise(number, 0, steps))
        expected = chunk.logits[:, 0] / np.float32(steps)
        np.testing.assert_array_equal(decision.member_logits, expected)
        assert (decision.window, decision.t_us, decision.steps, decision.final) == (number, None, steps, True)
    assert len({decision.member_logits.tobytes() for decision in decisions}) > 3


def test_one_sample_keeps_its_number_and_its_noise(engines, tmp_path):
    engine = engines("noisy_images")
    np.save(tmp_path / "many.npy", some((5, 3, 2, 2)))
    contract = engine.program.contract.input
    every = list(FramePipeline(engine, read_frames(tmp_path / "many.npy", contract)).decisions())
    (third,) = FramePipeline(engine, read_frames(tmp_path / "many.npy", contract, 3), first=3).decisions()
    assert third.window == 3
    assert third.member_logits.tobytes() == every[3].member_logits.tobytes()


@pytest.mark.parametrize("dtype", ["uint8", "int64", "float32", "bool"])
def test_whole_numbers_of_any_type_are_taken(engines, tmp_path, dtype):
    values = np.ones((3, 2, 2), dtype)
    np.savez(tmp_path / "one.npz", x=values)
    found = read_frames(tmp_path / "one.npz", engines("images").program.contract.input)
    assert found.shape == (1, 1, 3, 2, 2)
    assert (found == 1).all()


@pytest.mark.parametrize(
    ("values", "fault"),
    [
        (np.zeros((2, 2, 3)), r"holds an array \[2, 2, 3\]; .* one sample \[3, 2, 2\], .*channels come first"),
        (np.zeros((5, 3, 3, 2)), r"images of 3×2×2: one sample \[3, 2, 2\], or several \[N, 3, 2, 2\]"),
        (np.zeros((0, 3, 2, 2)), r"holds an array \[0, 3, 2, 2\]"),
        (np.full((3, 2, 2), 31), r"the value at \[0, 0, 0, 0\] is 31; expected integers from -10 to 30 \(12 of 12"),
        (np.full((3, 2, 2), 0.5), r"is 0.5; expected integers"),
        (np.full((3, 2, 2), np.nan), r"is nan; expected integers"),
        (np.full((3, 2, 2), "a"), r"holds <U1; expected integers"),
    ],
)
def test_what_the_contract_does_not_admit_is_refused(engines, tmp_path, values, fault):
    np.save(tmp_path / "wrong.npy", values)
    with pytest.raises(AxonnxError, match=rf"wrong\.npy: .*{fault}"):
        read_frames(tmp_path / "wrong.npy", engines("images").program.contract.input)


def test_files_that_hold_something_else_are_refused(engines, tmp_path):
    contract = engines("images").program.contract.input
    np.savez(tmp_path / "other.npz", t=np.arange(3))
    np.savez(tmp_path / "events.npz", t=np.arange(3), x=np.arange(3))
    (tmp_path / "text.npz").write_text("no")
    np.savez(tmp_path / "pickled.npz", frames=np.array([{}], dtype=object))
    for name, fault in [
        ("other.npz", "holds t; the network expects .*: expected one array called frames or x"),
        (
            "events.npz",
            "holds a recording of events: t, x; the network expects images of 3×2×2 from an npz or npy file",
        ),
        (
            "text.npz",
            "is neither an npz nor an npy file; the network expects .* cannot run on event recordings",
        ),
        ("pickled.npz", "is not a readable npz or npy file"),
        ("missing.npz", "is not a readable npz or npy file"),
    ]:
        with pytest.raises(AxonnxError, match=fault):
            read_frames(tmp_path / name, contract)
    np.save(tmp_path / "one.npy", some((3, 2, 2)))
    with pytest.raises(AxonnxError, match="has no sample 1; expected an index from 0 to 0"):
        read_frames(tmp_path / "one.npy", contract, 1)


MERGED = InputContract(
    name="events", shape=(1, 2, 2), steps=3, merging=MergingContract(recorded=5, frames=2, clip=4), largest=4
)


def test_recorded_frames_are_merged_as_the_contract_says(tmp_path):
    recorded = np.arange(5).repeat(4).reshape(1, 5, 1, 2, 2)
    for values in (recorded, recorded[0], recorded.astype(np.float32), np.concatenate([recorded, recorded])):
        np.save(tmp_path / "recorded.npy", values)
        found = read_frames(tmp_path / "recorded.npy", MERGED)
        assert found.shape[1:] == (3, 1, 2, 2)
        assert (found == np.array([1, 4, 4])[:, None, None, None]).all()  # 0 + 1, min(2 + 3, 4), 4


def test_frames_that_are_merged_already_stay(tmp_path):
    merged = np.arange(3).repeat(4).reshape(1, 3, 1, 2, 2)
    np.save(tmp_path / "merged.npy", merged)
    assert (read_frames(tmp_path / "merged.npy", MERGED) == merged).all()


@pytest.mark.parametrize(
    ("values", "fault"),
    [
        (np.zeros((4, 1, 2, 2)), r"one sample \[3, 1, 2, 2\] or \[5, 1, 2, 2\], or several \[N, 3, 1, 2, 2\] or"),
        (np.zeros((4, 1, 2, 2)), r"expects 3 frames of 1×2×2 \(sums of 2 of 5 recorded frames\)"),
        (np.full((5, 1, 2, 2), 0.5), r"the value at \[0, 0, 0, 0, 0\] is 0.5; expected integers"),
        (np.full((3, 1, 2, 2), 5), r"is 5; expected integers from -4 to 4"),
    ],
)
def test_frames_that_are_neither_are_refused(tmp_path, values, fault):
    np.save(tmp_path / "wrong.npy", values)
    with pytest.raises(AxonnxError, match=rf"wrong\.npy: .*{fault}"):
        read_frames(tmp_path / "wrong.npy", MERGED)


def test_the_command_runs_frames_and_images(files, tmp_path, capsys):
    np.save(tmp_path / "frames.npy", some((3, 4, 2, 1, 3)))
    assert main(["run", str(files["frames"]), str(tmp_path / "frames.npy"), "--json", "--engine", "numpy"]) == 0
    *decisions, summary = map(json.loads, capsys.readouterr().out.splitlines())
    assert [decision["window"] for decision in decisions] == [0, 1, 2]
    assert summary["samples"] == summary["decisions"] == 3
    assert summary["spikes"]["hidden.0.neuron"] > 0
    assert main(["run", str(files["frames"]), str(tmp_path / "frames.npy"), "--index", "2", "--engine", "numpy"]) == 0
    assert capsys.readouterr().out.startswith("sample 2 ")


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (["-"], "the event stream -; this network expects images of 3×2×2 from an npz or npy file"),
        (["udp:3333"], "the event stream udp:3333"),
        (["x.npy", "--stop-at", "0.9"], "--stop-at is for events"),
        (["x.npy", "--every-bin"], "--every-bin is for events"),
        (["x.npy", "--crop", "1,1"], "--fit is for events"),
    ],
)
def test_what_is_for_events_is_refused_for_images(files, capsys, words, fault):
    assert main(["run", str(files["images"]), *words, "--engine", "numpy"]) == 2
    assert fault in capsys.readouterr().err


def test_an_image_is_shown_in_every_time_step(tmp_path):
    """As many images as time steps are images still; what has a time axis of its own stays as it is."""
    contract = InputContract(name="events", shape=(1, 2, 3), steps=4, repeated=True)
    for shape, samples in (((1, 2, 3), 1), ((4, 1, 2, 3), 4), ((5, 1, 2, 3), 5)):
        images = np.abs(some(shape))
        np.save(tmp_path / "images.npy", images)
        found = read_frames(tmp_path / "images.npy", contract)
        assert found.shape == (samples, 4, 1, 2, 3)
        assert all(np.array_equal(found[:, step], images.reshape(samples, 1, 2, 3)) for step in range(4))
    sequences = np.abs(some((2, 4, 1, 2, 3)))
    np.save(tmp_path / "frames.npy", sequences)
    assert np.array_equal(read_frames(tmp_path / "frames.npy", contract), sequences)
    np.save(tmp_path / "other.npy", np.abs(some((4, 2, 3))))
    with pytest.raises(AxonnxError, match=r"images of 1×2×3, each shown in 4 time steps: one sample \[1, 2, 3\]"):
        read_frames(tmp_path / "other.npy", contract)


def test_contracts_without_repeated_images_are_written_as_before():
    plain, shown = (InputContract(name="events", shape=(2,), steps=3, repeated=each) for each in (False, True))
    assert "repeated" not in plain.model_dump_json()
    assert InputContract.model_validate_json(plain.model_dump_json()) == plain
    assert InputContract.model_validate_json(shown.model_dump_json()) == shown
