"""Which format a file is, the errors that all readers share, and any damage: events or an AxonnxError, nothing else."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from axonnx.base.errors import AxonnxError
from axonnx.runtime.readers import FORMATS, Recording, read_events, read_recordings, write_npz

from .event_files import (
    AEDAT31_HEADER,
    aedat2_bytes,
    aedat31_bytes,
    csv_bytes,
    dat_bytes,
    evt2_bytes,
    nmnist_bytes,
    random_events,
)

EVENTS = random_events(20)
FILES = {
    "csv": csv_bytes(EVENTS),
    "nmnist": nmnist_bytes(EVENTS),
    "aedat2": aedat2_bytes(range(20), range(20)),
    "aedat2-davis240": aedat2_bytes(range(20), range(20)),
    "aedat3.1": aedat31_bytes(EVENTS),
    "evt2": evt2_bytes(EVENTS),
    "dat": dat_bytes(EVENTS),
}
HEADS = {
    "aedat2": b"#!AER-DAT2.0\r\n",
    "aedat3.1": AEDAT31_HEADER,
    "evt2": b"% evt 2.0\n",
    "dat": b"% Version 2\n\0\x08",
}
OFTEN = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


def numpy_bytes(folder):
    write_npz(folder / "a.npz", EVENTS)
    np.save(folder / "a.npy", EVENTS)
    return {"npz": (folder / "a.npz").read_bytes(), "npy": (folder / "a.npy").read_bytes()}


def attempt(path, data, format_name):
    """Events or our own error; any other exception fails the test."""
    path.write_bytes(data)
    fault = None
    try:
        recordings = read_recordings(path, format=format_name)
    except AxonnxError as error:
        recordings, fault = [], str(error)
    assert fault is None or fault.startswith(str(path))
    assert all(isinstance(recording, Recording) for recording in recordings)
    return recordings


@OFTEN
@given(st.data())
def test_changed_and_shortened_files(tmp_path, data):
    files = FILES | numpy_bytes(tmp_path)
    name = data.draw(st.sampled_from(sorted(files)))
    changed = bytearray(files[name])
    for at, value in data.draw(
        st.dictionaries(st.integers(0, len(changed) - 1), st.integers(0, 255), max_size=4)
    ).items():
        changed[at] = value
    attempt(tmp_path / "changed", bytes(changed[: data.draw(st.integers(0, len(changed)))]), name)


@OFTEN
@given(st.data(), st.binary(max_size=200))
def test_any_bytes_after_a_good_beginning(tmp_path, data, tail):
    name = data.draw(st.sampled_from([*HEADS, "nmnist", "csv", "npz", "npy", "shd", "es", "aedat4"]))
    attempt(tmp_path / "any", HEADS.get(name, b"") + tail, name)


@pytest.mark.parametrize("name", sorted(FILES))
def test_whole_files_are_read(tmp_path, name):
    (recording,) = attempt(tmp_path / "whole", FILES[name], name)
    assert len(recording.events) == 20


@pytest.mark.parametrize(
    ("name", "content"),
    [
        *[("csv", "csv"), ("nmnist", "bin"), ("nmnist", "bs2"), ("aedat2", "aedat"), ("aedat3.1", "aedat")],
        *[("dat", "dat"), ("npz", "npz"), ("npy", "npy"), ("aedat3.1", "strange"), ("npz", "csv"), ("evt2", "dat")],
    ],
)
def test_content_decides_and_the_suffix_only_where_content_cannot(tmp_path, name, content):
    path = tmp_path / f"a.{content}"
    path.write_bytes((FILES | numpy_bytes(tmp_path))[name])
    assert read_events(path).format == name


@pytest.mark.parametrize("name", [name for name in FORMATS if FORMATS[name].suffixes])
def test_missing_and_empty_files(tmp_path, name):
    path = tmp_path / f"a{FORMATS[name].suffixes[0]}"
    for options in ({}, {"format": name}):
        with pytest.raises(AxonnxError, match=r"cannot be read \(No such file"):
            read_events(path, **options)
    path.touch()
    for options in ({}, {"format": name}):
        with pytest.raises(AxonnxError, match=r"is empty \(0 bytes\)"):
            read_events(path, **options)


def test_a_folder_is_no_recording(tmp_path):
    with pytest.raises(AxonnxError, match=r"cannot be read \(Is a directory\)"):
        read_events(tmp_path)


@pytest.mark.parametrize("suffix", [".mp4", ".npz", ""])
def test_unknown_content_lists_what_is_known(tmp_path, suffix):
    path = tmp_path / f"a{suffix}"
    path.write_bytes(b"RIFF....")
    with pytest.raises(AxonnxError, match=r"byte 0: found b'RIFF....' and the suffix") as error:
        read_events(path)
    for name in ("npz (.npz)", "aedat3.1 (.aedat .aedat3)", "evt3 (.raw)", "shd (.h5 .hdf5)"):
        assert name in str(error.value)


def test_an_unknown_format_name_lists_what_is_known(tmp_path):
    (tmp_path / "a.csv").write_text("t,x\n")
    with pytest.raises(AxonnxError, match=r"unknown format 'matlab'; expected one of npz"):
        read_events(tmp_path / "a.csv", format="matlab")


def test_events_out_of_order_are_kept_as_they_are(tmp_path):
    (tmp_path / "a.csv").write_text("t,x\n5,0\n3,1\n")
    recording = read_events(tmp_path / "a.csv")
    assert recording.events["t"].tolist() == [5, 3]
    assert not recording.in_order


PROBE = """
import sys
for name in {blocked}:
    sys.modules[name] = None
import axonnx.runtime.binning, axonnx.runtime.readers
print(sorted({loaded} & set(sys.modules)))
"""


@pytest.mark.parametrize("extra", ["", "import h5py"])
def test_importing_readers_loads_neither_torch_nor_optional_packages(extra):
    """The second case proves that the probe would see such a package."""
    probe = PROBE.format(blocked=["torch"], loaded={"h5py", "faery", "tonic"}) + extra.join(["\n", "\n"])
    code = f"{extra}\n{probe}"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == ("['h5py']" if extra else "[]")
