"""Decode files in a child process, for libraries that crafted files can crash, stall or fill with memory.

The child process has limits on its memory and time, and returns plain arrays.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.base.files import refuse_device
from axonnx.base.numpy_files import UNREADABLE, read_array
from axonnx.runtime.events.arrays import Sensor
from axonnx.runtime.readers.binary import read_bytes, read_head, whole_records
from axonnx.runtime.readers.prophesee import read_header
from axonnx.runtime.readers.recording import Recording, events_from

CHILD = Path(__file__).with_name("confined_child.py")
PACKAGE = {"faery": "faery", "hdf5": "h5py", "tree": "h5py"}
# Limits for a file: a base value, and an amount for each byte of the file.
BYTES, BYTES_A_BYTE = 2**30, 64
SECONDS, BYTES_A_SECOND = 20, 2**20
REFUSED = 3


class Tree(NamedTuple):
    """What a whole HDF5 file holds: arrays and texts in nested groups, and the attributes of each group by its path."""

    members: dict[str, Any]
    attributes: dict[str, dict[str, Any]]


def read_tree(path: Path) -> Tree:
    """Return everything in an HDF5 file.

    Raises:
        AxonnxError: If the file is damaged, too large once it is decoded, or points to other files.
    """
    arrays = read_confined(path, "tree")
    index = json.loads(arrays[0].tobytes())
    groups: dict[str, dict[str, Any]] = {"": {}}
    for place in index["groups"]:  # a group comes before its members
        if place:
            above, _, name = place.rpartition("/")
            groups[place] = groups[above][name] = {}
    for (place, texts), values in zip(index["data"], arrays[1:], strict=True):
        above, _, name = place.rpartition("/")
        groups[above][name] = values[()] if texts is None else texts
    return Tree(groups[""], index["groups"])


def read_confined(path: Path, library: Literal["faery", "hdf5", "tree"], *words: str) -> list[NDArray]:
    """Return the arrays that ``confined_child.py`` decodes; refuse the file if the child fails or hits a limit."""
    refuse_device(path)
    if find_spec(PACKAGE[library]) is None:
        raise AxonnxError(f"{path}: needs {PACKAGE[library]}, which is not installed: pip install 'axonnx[io]'.")
    size = path.stat().st_size
    memory, seconds = BYTES + BYTES_A_BYTE * size, SECONDS + size // BYTES_A_SECOND
    command = [sys.executable, "-P", str(CHILD), str(memory), str(seconds), library, str(path.resolve()), *words]
    with tempfile.TemporaryFile() as result:
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=result,
                stderr=subprocess.PIPE,
                timeout=4 * seconds,  # wall-clock time, on a busy machine; the child's own limit is processor time
                check=False,
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},  # each thread would reserve memory
            )
        except subprocess.TimeoutExpired:
            raise _fault(path, library, f"it did not finish within {4 * seconds} s") from None
        if done.returncode:
            raise _fault(path, library, _reason(done.returncode, done.stderr, seconds))
        arrays = _arrays(path, library, result)
    if len(arrays) != _expected(library, words, arrays):
        raise _fault(path, library, f"it returned {len(arrays)} arrays")
    return arrays


def _expected(library: str, words: tuple[str, ...], arrays: list[NDArray]) -> int:
    """Return how many arrays a library has to return; the first array of a tree says so."""
    if library == "tree":
        return 1 + len(json.loads(arrays[0].tobytes())["data"]) if arrays else 1
    return 5 if library == "faery" else 2 * len(words)


def _arrays(path: Path, library: str, result: IO[bytes]) -> list[NDArray]:
    size, found = result.seek(0, os.SEEK_END), []
    result.seek(0)
    try:
        while result.tell() < size:
            found.append(read_array(result, size - result.tell()))
    except UNREADABLE as fault:
        raise _fault(path, library, str(fault)) from None
    return found


def _reason(code: int, said: bytes, seconds: int) -> str:
    if code == -signal.SIGXCPU or code == -signal.SIGKILL:
        return f"it did not finish within {seconds} s of processor time"
    if code == REFUSED:
        return said.decode(errors="replace").strip().rpartition("\n")[2]
    return f"it ended by {signal.Signals(-code).name}" if code < 0 else f"it ended with exit code {code}"


def _fault(path: Path, library: str, reason: str) -> AxonnxError:
    return AxonnxError(
        f"{path}: {PACKAGE[library]} cannot read it ({reason}). The file may be cut off or damaged, or have another "
        f"format."
        f" Copy it again, or give its format"
    )


FILE_TYPE = {"aedat4": "aedat", "evt3": "evt", "es": "es"}
UNSTATED = (65535, 65535)  # what confined_child.py returns for an unknown size


def read_by_faery(path: Path, format_name: str) -> Recording:
    """Read the events of a file in a format that faery decodes; times are in microseconds.

    faery does not report what else is in a file, so nothing is counted in `skipped`. A truncated Event Stream is read
    as a shorter one, because the format does not mark its end.
    """
    _check_whole(path, format_name)
    (width, height), t, x, y, p = read_confined(path, "faery", FILE_TYPE[format_name])
    stated = (width, height) != UNSTATED and width > 0 and height > 0
    sensor = Sensor(width=int(width), height=int(height)) if stated else None
    return Recording(events_from(path, t, x, y, p), format_name, sensor)


def _check_whole(path: Path, format_name: str) -> None:
    """Refuse files that are missing, empty, or end in the middle of a word, which faery would ignore."""
    head = read_head(path)
    if format_name == "evt3":
        whole_records(path, read_bytes(path), read_header(head)[1], "<u2")
