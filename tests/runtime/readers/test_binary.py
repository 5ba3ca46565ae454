"""Counters that start again at zero."""

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axonnx.base.errors import AxonnxError
from axonnx.runtime.readers import binary, read_events
from axonnx.runtime.readers.binary import check_budget, memory_left, unwrap, within_memory


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ([], []),
        ([5], [5]),
        ([0, 200, 255, 3], [0, 200, 255, 259]),
        ([250, 1, 250, 2], [250, 257, 506, 514]),  # a rise by 249 of 256 is a silence
        ([250, 1, 255, 2], [250, 257, 255, 258]),  # one by 254 is an event from before the wrap
        ([0, 255, 6], [0, 255, 262]),  # but not where no wrap was seen
        ([100, 90, 110], [100, 90, 110]),  # events out of order, no wrap
    ],
)
def test_eight_bits_by_hand(raw, expected):
    assert unwrap(np.array(raw, np.int64), 8).tolist() == expected


@settings(deadline=None)
@given(st.lists(st.integers(0, (1 << 22) - 1), min_size=1), st.integers(0, (1 << 23) - 1))
def test_steps_below_half_the_range_are_recovered(steps, start):
    times = start + np.cumsum([0, *steps])
    assert unwrap(times % (1 << 23), 23).tolist() == times.tolist()


LIMIT = 6 * 10**9
LARGE = 20 * 10**9
HEADS = {
    "a.bin": b"",
    "a.aedat": b"#!AER-DAT2.0\r\n",
    "b.aedat": b"#!AER-DAT3.1\r\n#!END-HEADER\r\n",
    "a.csv": b"t,x\n",
}
HEADS |= {"a.raw": b"% evt 2.0\n% end\n", "a.dat": b"% Version 2\n\x0c\x08"}
READ = f"""
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, ({LIMIT}, {LIMIT}))
from axonnx.runtime.readers import read_events
read_events(sys.argv[1])
"""


@pytest.mark.parametrize("name", HEADS)
def test_20_gigabytes_are_refused_under_a_limit_of_6(name, tmp_path):
    with (tmp_path / name).open("wb") as file:
        file.write(HEADS[name])
        file.truncate(LARGE + len(HEADS[name]))
    done = subprocess.run(
        [sys.executable, "-c", READ, str(tmp_path / name)], capture_output=True, text=True, check=False
    )
    last = done.stderr.strip().splitlines()[-1]
    assert done.returncode == 1, done.stderr
    assert last.startswith("axonnx.base.errors.AxonnxError"), last
    assert name in last
    assert any(reason in last for reason in ("memory", "this process can have", "no end of line")), last


def test_the_left_memory_is_that_of_the_limit(monkeypatch):
    assert memory_left() is None or memory_left() > 0
    script = "import resource; resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))\n"
    script += "from axonnx.runtime.readers.binary import memory_left; print(memory_left())"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "None\n" or 0 < int(done.stdout) < 1 << 30


def test_what_needs_more_than_is_left_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(binary, "memory_left", lambda: 1000)
    check_budget(tmp_path / "a", 1000)
    with pytest.raises(AxonnxError, match=r"a: takes 1,001 bytes once it is decoded; this process can have 1,000"):
        check_budget(tmp_path / "a", 1001)
    (tmp_path / "a.bin").write_bytes(bytes(1000))
    with pytest.raises(AxonnxError, match=r"a.bin: takes 8,000 bytes"):
        read_events(tmp_path / "a.bin")
    monkeypatch.setattr(binary, "memory_left", lambda: None)  # a system that does not say
    assert len(read_events(tmp_path / "a.bin").events) == 200


def test_a_refused_request_for_memory_is_a_refusal_of_the_file(tmp_path):
    (tmp_path / "a.bin").write_bytes(bytes(10))
    with (
        pytest.raises(AxonnxError, match=r"a.bin: does not fit into memory: it has 10 bytes"),
        within_memory(tmp_path / "a.bin"),
    ):
        raise MemoryError("3 GiB")


@pytest.mark.parametrize("name", ["a.bin", "a.csv", "a.npz", "a.raw", "a.es", "a.h5"])
def test_a_named_pipe_is_refused_at_once(name, tmp_path):
    os.mkfifo(tmp_path / name)
    for form in (None, "shd", "npy", "csv"):
        with pytest.raises(AxonnxError, match=rf"{name}: is a named pipe; expected a file"):
            read_events(tmp_path / name, format=form)
