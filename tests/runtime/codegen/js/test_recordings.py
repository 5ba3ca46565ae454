"""Readers in JavaScript give the events of the readers here; what they cannot read is refused."""

import io
import json
from base64 import b64encode
from types import SimpleNamespace

import numpy as np
import pytest

from axonnx.base.errors import AxonnxError
from axonnx.runtime.binning import Binning, bin_events
from axonnx.runtime.codegen.js.module_text import library
from axonnx.runtime.events.arrays import EVENT, Sensor
from axonnx.runtime.format.contract import FitContract
from axonnx.runtime.readers import Recording, read_events, write_npz
from axonnx.runtime.streams.adapt import Fit
from axonnx.runtime.streams.sources import FileSource

from ...readers.event_files import csv_bytes, dat_bytes, evt2_bytes, nmnist_bytes, random_events
from ...streams.conftest import real
from .node import needs_node, node

__all__ = ["real"]
MODULE = f"{library('recordings.js')}\nexport {{ fitRecording, readRecording }};"


def in_node(
    data: bytes, name: str, then: str = "found", kind: str = "Uint8Array", text: str = MODULE
) -> SimpleNamespace:
    """What the reader makes of a file's bytes, or what it says."""
    script = f"""
    const bytes = {kind}.from(Uint8Array.from(atob('{b64encode(data).decode()}'), (letter) => letter.charCodeAt(0)));
    const plain = (columns) => Object.fromEntries(
      Object.entries(columns).map(([name, values]) => [name, values?.length >= 0 ? [...values] : values]));
    try {{
      const found = await module.readRecording(bytes, {json.dumps(name)});
      return plain({then});
    }} catch (fault) {{ return {{ fault: fault.message }}; }}
    """
    return SimpleNamespace(**node().ask(text, script))


def npz(events, **more) -> bytes:
    file = io.BytesIO()
    np.savez(file, **{name: events[name] for name in "txyp"}, **more)
    return file.getvalue()


def structured(events) -> bytes:
    file = io.BytesIO()
    np.save(file, events)
    return file.getvalue()


WRITERS = {
    "a.csv": csv_bytes,
    "shuffled.csv": lambda events: csv_bytes(events, "p,y,t,x"),
    "a.npz": lambda events: npz(events, sensor=np.array([128, 128, 2])),
    "a.npy": structured,
    "a.raw": evt2_bytes,
    "new.raw": lambda events: evt2_bytes(events, b"% format EVT2;height=128;width=128\n% end\n"),
    "a.dat": dat_bytes,
    "old.dat": lambda events: dat_bytes(events, version=1),
    "a.bin": nmnist_bytes,
}


@needs_node
@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize(("span", "kind"), [(100_000, "Uint8Array"), (2**24, "Uint8Array"), (100_000, "Buffer")])
def test_events_are_those_of_the_readers_here(name, span, kind, tmp_path):
    """Bytes as a browser or as node hands them over: a slice of node's is no copy."""
    events = random_events(400, span=span)
    data = WRITERS[name](events)
    (tmp_path / name).write_bytes(data)
    expected, found = read_events(tmp_path / name), in_node(data, name, kind=kind)
    for column in "txyp":
        assert np.array_equal(getattr(found, column), expected.events[column]), column
    assert len(found.t) == 400


@needs_node
def test_compressed_and_structured_arrays_and_one_of_many(tmp_path):
    events = random_events(90)
    write_npz(tmp_path / "packed.npz", events, Sensor(width=128, height=128))
    found = in_node((tmp_path / "packed.npz").read_bytes(), "packed.npz")
    assert np.array_equal(found.t, events["t"])
    assert found.sensor == {"width": 128, "height": 128}
    several = in_node(npz(events, offsets=np.array([0, 30, 90])), "several.npz")
    assert np.array_equal(several.x, events["x"][:30])
    assert several.recordings == 2
    assert EVENT.names == ("t", "x", "y", "p")


@needs_node
@pytest.mark.parametrize(
    ("data", "name", "text"),
    [
        (b"hello", "a.txt", "unknown format; expected npz"),
        (b"t,x\n1,2\n3,x\n", "a.csv", "line 3, column x: expected a whole number"),
        (b"t,x\n1,\n", "a.csv", "line 2, column x"),
        (b"x,y\n1,2\n", "a.csv", "a recording needs both"),
        (b"PK\x03\x04" + bytes(40), "a.npz", "cut off"),
        (b"% evt 3.0\n", "a.raw", "expected EVT 2.0 or DAT"),
        (bytes(7), "a.bin", "cut off"),
    ],
)
def test_other_files_are_refused_with_the_reason(data, name, text):
    assert text in in_node(data, name).fault


@needs_node
@pytest.mark.parametrize("stated", [None, (128, 128), (32, 16), (40, 30)])
def test_recordings_come_onto_the_networks_sensor_as_in_training(stated):
    """A sensor that is neither training's nor the network's is refused in both."""
    events, target = random_events(300), Sensor(width=32, height=16)
    if stated == (32, 16):
        events = events[(events["x"] < 32) & (events["y"] < 16)]
    rule = FitContract(sensor=Sensor(width=128, height=128), left=10, top=20, width=90, height=70)
    made = Binning(sensor=target, bins=1, bin_us=2**40, downsample=2)
    contract = {"input": {"shape": made.frame_shape, "binning": made.model_dump(), "fit": rule.model_dump()}}
    script = f"const contract = {json.dumps(contract)};\n{library('events.js')}\n{MODULE}"
    script += "\nexport { binRecording, contract };"
    more = {} if stated is None else {"sensor": np.array([*stated, 2])}
    read = "module.binRecording(module.fitRecording(found, module.contract))"
    found = in_node(
        npz(events, **more), "a.npz", f"({{outside: {read}.outside, frame: [...{read}.frames[0]]}})", text=script
    )
    sensor = None if stated is None else Sensor(width=stated[0], height=stated[1])
    source = FileSource("memory", Recording(events, "memory", sensor))
    if stated == (40, 30):
        with pytest.raises(AxonnxError, match="40×30"):
            Fit().adapter(source, target, rule)
        assert "40×30" in found.fault
        return
    adapter = Fit().adapter(source, target, rule)
    expected = bin_events(adapter(events), made)
    assert np.array_equal(np.array(found.frame), expected.frames.ravel())
    assert found.outside["cropped"] == adapter.dropped["cropped"]
    assert expected.frames.any()


@needs_node
@pytest.mark.data
@pytest.mark.parametrize("name", ["tonic_sample_ncars.dat", "tonic_sample_nmnist.bin"])
def test_real_recordings(name, real):
    path = real(f"recordings/{name}")
    expected, found = read_events(path).events, in_node(path.read_bytes(), name, kind="Buffer")
    for column in "txyp":
        assert np.array_equal(getattr(found, column), expected[column]), column
