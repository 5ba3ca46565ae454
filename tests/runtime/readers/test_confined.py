"""Libraries that crash, hang, panic or grow: whatever they do, the reader says so and lives."""

import sys
import time

import numpy as np
import pytest

from axonnx.base.errors import AxonnxError
from axonnx.runtime.readers import confined, read_events


@pytest.fixture
def library(tmp_path, monkeypatch):
    """Puts a module called faery with this body in the place of the library."""

    def make(body):
        (tmp_path / "faery.py").write_text(f"def events_stream_from_file(*_words, **_options):\n    {body}\n")
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))
        monkeypatch.setattr(confined, "find_spec", lambda name: name)
        (tmp_path / "a.es").write_bytes(b"Event Stream\x02\0\0\1")
        return tmp_path / "a.es"

    return make


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("import os; os.abort()", "it ended by SIGABRT"),
        ("import os; os.kill(os.getpid(), 11)", "it ended by SIGSEGV"),
        ("import os; os._exit(0)", "faery cannot read it"),
        ("import os; os._exit(7)", "it ended with exit code 7"),
        ("raise type('Panic', (BaseException,), {})('index out of range')", "Panic: index out of range"),
        ("bytearray(8 << 30)", "MemoryError"),
        ("print('not an array', flush=True)", "faery cannot read it"),
    ],
)
def test_whatever_the_library_does_is_a_refusal(library, body, reason):
    with pytest.raises(AxonnxError, match=reason):
        read_events(library(body))


def test_a_library_that_never_ends_is_ended(library, monkeypatch):
    monkeypatch.setattr(confined, "SECONDS", 1)
    began = time.monotonic()
    with pytest.raises(AxonnxError, match="did not finish within 1 s of processor time"):
        read_events(library("while True: pass"))
    with pytest.raises(AxonnxError, match="did not finish within 4 s"):
        read_events(library("import time; time.sleep(100)"))
    assert time.monotonic() - began < 60


def test_what_the_library_gives_is_never_unpickled(library, tmp_path):
    body = f"import pickle, sys; sys.stdout.buffer.write(pickle.dumps([1])); sys.stdout.flush(); sys.exit(0)"  # noqa: F541
    with pytest.raises(AxonnxError, match="faery cannot read it"):
        read_events(library(body))


def test_arrays_arrive_as_they_were_sent(library):
    body = (
        "import numpy as np; e = np.zeros(3, [('t', 'u8'), ('x', 'u2'), ('y', 'u2'), ('p', '?')]); e['t'] = 1, 2, 3; "
        "return type('S', (), {'dimensions': lambda s: (8, 6), 'to_array': lambda s: e})()"
    )
    found = read_events(library(body))
    assert np.array_equal(found.events["t"], [1, 2, 3])
    assert (found.sensor.width, found.sensor.height) == (8, 6)
    assert "faery" not in sys.modules or hasattr(sys.modules["faery"], "EVENTS_DTYPE")  # ours was never imported here
