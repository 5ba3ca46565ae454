"""The installed command in interpreters of its own: without torch, into a closed pipe, from a pipe."""

import json
import subprocess
import sys

import numpy as np
import pytest

from axonnx.runtime.binning import Sensor
from axonnx.runtime.events.arrays import make_events
from axonnx.runtime.readers import write_npz

WITHOUT_TORCH = """
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "torch":
            raise ModuleNotFoundError(f"{name} is blocked", name="torch")

sys.meta_path.insert(0, Refuse())
from axonnx.cli import main
code = main(sys.argv[1:])
heavy = ("torch.", "axonnx.models.", "axonnx.train.", "axonnx.export.")
assert code or not [name for name in sys.modules if f"{name}.".startswith(heavy)]
sys.exit(code)
"""


@pytest.fixture
def recording(tmp_path):
    times = np.arange(0, 20_000, 100)
    write_npz(tmp_path / "some.npz", make_events(times, times % 7, times % 5), Sensor(width=8, height=6))
    return tmp_path / "some.npz"


@pytest.fixture
def fresh(environment):
    def call(*words, code=WITHOUT_TORCH, **options):
        command = [sys.executable, "-c", code, *map(str, words)]
        return subprocess.run(command, capture_output=True, check=False, env=environment, timeout=300, **options)

    return call


def test_a_file_runs_and_is_inspected_where_there_is_no_torch(fresh, files, recording):
    done = fresh("run", files["plain"], recording, "--windows", "--json")
    assert done.returncode == 0, done.stderr.decode()
    *decisions, summary = map(json.loads, done.stdout.splitlines())
    assert (len(decisions), summary["binned"]) == (4, 200)
    assert fresh("inspect", files["noisy"]).returncode == 0


def test_the_blocked_interpreter_bites(fresh):
    done = fresh("train", "digits-static")
    assert done.returncode == 2
    assert b"needs the package 'torch'" in done.stderr


def test_standard_input_is_a_pipe(fresh, files):
    lines = "".join(f"{t},3,2,1\n" for t in range(0, 12_000, 250)).encode()
    done = fresh("run", files["plain"], "-", "--engine", "numpy", input=lines)
    assert done.returncode == 0, done.stderr.decode()
    assert b"events     48 read, 48 binned" in done.stdout


def test_a_reader_that_stops_reading_is_no_fault(files, recording, environment):
    command = [
        sys.executable,
        "-m",
        "axonnx.cli",
        "run",
        str(files["plain"]),
        str(recording),
        "--every-bin",
        "--engine",
        "numpy",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as running:
        running.stdout.close()
        assert running.stderr.read() == b""
        assert running.wait(100) == 141
