"""The moving picture: well-formed, without a script or a request, and right at its end."""

import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from axonnx.base.errors import AxonnxError
from axonnx.cli import main
from axonnx.runtime.events.arrays import Sensor, make_events
from axonnx.runtime.model import load
from axonnx.runtime.readers import write_npz
from axonnx.runtime.report.clip import MOST_STEPS, Clip, animation, decision_clip

from ..streams.conftest import files

__all__ = ["files"]
RELEASED = Path(__file__).parents[2] / "released" / "version-1"
SVG = "{http://www.w3.org/2000/svg}"


def clip(steps=6, classes=("left", "right<", "a name that is too long to show")):
    odds = np.linspace([0.8, 0.1, 0.1], [0.1, 0.6, 0.3], steps)
    frames = np.random.default_rng(0).integers(0, 3, (steps, 2, 5, 7))
    return Clip("a & b", frames, odds, classes, tuple(f"{step} ms" for step in range(steps)))


@pytest.mark.parametrize("steps", [1, 2, 6, 500])
def test_it_is_well_formed_and_asks_for_nothing(steps):
    text = animation(clip(steps))
    root = ElementTree.fromstring(text)
    images = root.findall(f".//{SVG}image")
    assert len(images) == min(steps, MOST_STEPS)
    assert all(image.get("href").startswith("data:image/png;base64,") for image in images)
    assert not re.search(r"<script|https?://(?!www\.w3\.org/2000/svg)", text)
    names = re.findall(r"animation:([\w-]+) ", text)
    assert set(names) == set(re.findall(r"@keyframes ([\w-]+)\{", text))


def test_without_motion_the_last_step_is_seen():
    root = ElementTree.fromstring(animation(clip()))
    images = [image.get("style").startswith("opacity:0") for image in root.findall(f".//{SVG}image")]
    assert images == [True] * 5 + [False]
    labels = {text.text: text.get("style") for text in root.findall(f".//{SVG}text") if text.get("class") == "label"}
    assert [name for name, style in labels.items() if not style.startswith("opacity:0")] == ["right<"]
    widths = [float(bar.get("transform")[7:].split()[0]) for bar in root.iter() if "bar b" in bar.get("class", "")]
    assert widths == [0.1, 0.6, 0.3]
    assert root.find(f"{SVG}title").text == "a & b: decided for right<"


def test_steps_follow_each_other_without_a_gap():
    text = animation(clip(4))
    begins = [
        float(re.search(rf"@keyframes s{step}-{step}\{{(?:0%{{opacity:0}})?([\d.]+)%{{opacity:1}}", text)[1])
        for step in range(4)
    ]
    ends = [
        float(re.search(rf"@keyframes s{step}-{step}\{{.*?opacity:1}}([\d.]+)%{{opacity:0}}", text)[1])
        for step in range(3)
    ]
    assert ends == begins[1:]
    assert begins[0] == 0


def test_the_command_writes_what_the_file_decides(tmp_path, capsys):
    model, out = str(RELEASED / "resnet-mfa.onnx"), tmp_path / "decision.svg"
    frames = tmp_path / "frames.npz"
    np.savez(frames, frames=np.random.default_rng(1).integers(0, 2, (3, 24, 2, 8, 8)).astype(np.uint8))
    assert main(["run", model, str(frames), "--index", "1", "--animate", str(out)]) == 0
    decided = re.search(r"sample \d+\s+(\S+)", capsys.readouterr().out)[1]
    root = ElementTree.fromstring(out.read_text("utf-8"))
    assert root.find(f"{SVG}title").text == f"frames.npz through resnet-mfa.onnx: decided for {decided}"
    with pytest.raises(AxonnxError, match="has no sample 3"):
        decision_clip(load(model).program, frames, index=3)
    with pytest.raises(AxonnxError, match="nothing would move"):
        decision_clip(load(RELEASED / "binary-mlp-mfa.onnx").program, frames)
    for words, text in [(["-"], "is a stream"), ([str(frames), str(frames)], "is for one recording")]:
        assert main(["run", model, *words, "--animate", str(out)]) == 2
        assert text in capsys.readouterr().err


def test_a_recording_is_drawn_bin_by_bin(files, tmp_path):
    events = make_events(np.arange(0, 5_000, 50), np.arange(100) % 8, np.arange(100) % 6, np.arange(100) % 2)
    write_npz(tmp_path / "recording.npz", events, Sensor(width=8, height=6))
    model = load(files["plain"])
    text = decision_clip(model.program, tmp_path / "recording.npz")
    assert text.count("<image") == 5
    assert f"decided for {model.predict(tmp_path / 'recording.npz').label}" in text
    assert re.findall(r">(\d+ ms)<", text) == ["1 ms", "2 ms", "3 ms", "4 ms", "5 ms"]
