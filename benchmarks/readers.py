"""Readers of recordings beside faery and expelliarmus: each in a process of its own, for its speed and its memory."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from benchmarks.timing import table

WAYS = {
    "axonnx, block by block": ("axonnx", ("evt2", "dat", "csv")),
    "axonnx, whole (`read_events`)": ("whole", ("evt2", "dat", "csv")),
    "axonnx, block by block, without the native core": ("plain", ("evt2", "dat", "csv")),
    "faery, block by block": ("faery", ("evt2", "dat", "csv")),
    "expelliarmus, block by block": ("chunks", ("evt2", "dat")),
    "expelliarmus, whole": ("expelliarmus", ("evt2", "dat")),
}
NEEDS = {"faery": "faery", "chunks": "expelliarmus", "expelliarmus": "expelliarmus"}
FILES = {"evt2": "a.raw", "dat": "a.dat", "csv": "a.csv"}

# What a reader takes in a fresh interpreter: the second of two readings is timed, memory is the most beyond imports.
CHILD = """
import sys, time
way, form, path = sys.argv[1:]

def peak():  # ru_maxrss would be that of the process which started this one
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))

def axonnx_blocks():
    return sum(len(block) for block in opener(path, format=form)().blocks)

def whole():
    return len(read_events(path, format=form).events)

def by_faery():
    return sum(len(events) for events in faery.events_stream_from_file(path))

def by_expelliarmus():
    return len(expelliarmus.Wizard(encoding=form, fpath=path).read())

def in_chunks():
    wizard = expelliarmus.Wizard(encoding=form, fpath=path, chunk_size=65536)
    return sum(len(chunk) for chunk in wizard.read_chunk())

if way in ("axonnx", "whole", "plain"):
    from axonnx import native
    from axonnx.runtime.readers import opener, read_events
    if way == "plain":
        native.core = lambda: None
elif way == "faery":
    import faery
else:
    import expelliarmus
read = {"axonnx": axonnx_blocks, "plain": axonnx_blocks, "whole": whole, "faery": by_faery,
        "expelliarmus": by_expelliarmus, "chunks": in_chunks}[way]
before = peak()
read()
began = time.process_time()
count = read()
print(count, time.process_time() - began, peak() - before)
"""


def write_files(folder: Path, count: int) -> dict[str, Path]:
    """The same random events of a 1280 × 720 sensor in each format (a fourth of them as text)."""
    rng = np.random.default_rng(0)
    t = np.sort(rng.integers(0, count // 4, count))
    x, y, p = rng.integers(0, 1280, count), rng.integers(0, 720, count), rng.integers(0, 2, count)
    high = t >> 6
    new = np.flatnonzero(np.diff(high, prepend=-1))
    words = np.insert(p << 28 | (t & 63) << 22 | x << 11 | y, new, 8 << 28 | high[new])
    records = np.stack([t, x | y << 14 | p << 28], axis=1)
    paths = {form: folder / name for form, name in FILES.items()}
    paths["evt2"].write_bytes(b"% evt 2.0\n% geometry 1280x720\n% end\n" + words.astype("<u4").tobytes())
    header = b"% Version 2\n% Width 1280\n% Height 720\n" + bytes([12, 8])
    paths["dat"].write_bytes(header + records.astype("<u4").tobytes())
    with paths["csv"].open("w") as file:
        file.write("t,x,y,p\n")
        for at in range(0, count // 4, 2**16):
            part = slice(at, min(at + 2**16, count // 4))
            columns = (values[part].tolist() for values in (t, x, y, p))
            file.writelines("{},{},{},{}\n".format(*row) for row in zip(*columns, strict=True))
    return paths


def measured(way: str, form: str, path: Path) -> tuple[float, float]:
    """Million events a second, and MiB beyond what the imports took."""
    command = [sys.executable, "-c", CHILD, way, form, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    count, seconds, memory = map(float, done.stdout.split())
    return count / seconds / 1e6, memory


def compared(folder: Path, count: int) -> str:
    """Every reader on every format, on a file and on one four times as large."""
    rows, sizes = [], (count // 4, count)
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for size in sizes:
        paths = write_files(folder, size)
        for name, (way, forms) in WAYS.items():
            for form in forms if find_spec(NEEDS.get(way, "axonnx")) else ():
                found.setdefault((form, name), []).append(measured(way, form, paths[form]))
    for form in FILES:
        for name in WAYS:
            if (form, name) in found:
                (_, small), (speed, large) = found[form, name]
                rows.append([form, name, f"{speed:.1f}", f"{small:.0f}", f"{large:.0f}"])
    head = ["format", "reader", "Mevents/s", f"MiB, {sizes[0]:,} events", f"MiB, {sizes[1]:,} events"]
    absent = sorted({need for need in NEEDS.values() if not find_spec(need)})
    note = f"Not installed here, so not timed: {', '.join(absent)}.\n" if absent else ""
    about = (
        "The larger file is timed, on its second reading; memory is the peak beyond what imports took. csv files have "
        "a fourth of the events.\n"
    )
    return "\n".join([table("Readers, one thread, a process each", head, rows), about, note])
