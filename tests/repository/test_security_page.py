"""The limits that docs/security.md states are those that hold."""

import re
from pathlib import Path

from axonnx.base import numpy_files
from axonnx.cli import guard
from axonnx.export.convert import nir_equations, nir_graph, nir_source
from axonnx.runtime.readers import binary, blocks, confined, confined_child
from axonnx.runtime.serve.limits import Limits
from axonnx.runtime.streams import epochs, reorder, udp_source, windows
from axonnx.runtime.streams import live_sources as stream_sources
from axonnx.train import build

PAGE = (Path(__file__).parents[2] / "docs" / "security.md").read_text("utf-8")


def row(start):
    (line,) = [line for line in PAGE.splitlines() if line.startswith(f"| {start}")]
    return line


def test_the_stated_limits_hold():
    assert (numpy_files.MOST_TIMES_LARGER, numpy_files.ALWAYS_ADMITTED) == (64, 2**30)
    assert "64 × the file's size, at least 1 GiB" in row("arrays of an npz")
    assert (confined.BYTES, confined.BYTES_A_BYTE) == (2**30, 64)
    assert "1 GiB + 64 × the file's size" in row("memory of a child")
    assert (confined.SECONDS, confined.BYTES_A_SECOND) == (20, 2**20)
    assert "20 s + 1 s for each MiB" in row("its processor time")
    assert f"{stream_sources.LONGEST_LINE:,} bytes" in row("a csv line")
    assert (reorder.MOST_HELD, windows.MOST_SILENT_BINS, build.MOST_PARAMETERS) == (2**22, 2**20, 2**28)
    assert ("2²²" in row("events that wait"), "2²⁰" in row("silent bins"), "2²⁸" in row("parameters")) == (True,) * 3
    assert f"{udp_source.AHEAD // 1_000_000} s" in row("a step ahead")
    assert f"{udp_source.BUFFER >> 20} MiB" in row("receive buffer")
    assert (epochs.BACK, epochs.CONFIRM) == (1_000_000, 64)
    assert "1 s; 64" in row("a step back")
    assert (binary.DECODED, blocks.LONGEST_LINE) == (8, 2**20)
    assert "8 × its size" in row("a recording that is decoded")
    assert "1 MiB" in row("a line of a csv file")
    assert f"{confined_child.MOST_OBJECTS:,}; {nir_graph.MOST_EDGES:,}; 10⁷; 10⁷" in row("groups and data sets")
    assert nir_source.MOST_INPUTS == nir_equations.MOST_KEPT == 10**7
    most = Limits()
    sizes = f"{most.memory_bytes >> 30} GiB; {most.message_bytes >> 10} KiB"
    assert f"{most.clients:,}; {sizes}; {most.saved:,}; {most.watchers}" in row("streams of a server")


def test_the_stated_exit_codes_are_those_of_the_command():
    stated = {int(code) for code in re.findall(r"^\| (\d+) \|", PAGE, re.MULTILINE)}
    codes = (guard.FINE, guard.FAILED, guard.WRONG_USE, guard.OUR_FAULT, guard.INTERRUPTED, guard.READER_GONE)
    codes += (guard.HUNG_UP, guard.TERMINATED)
    assert stated == set(codes)


def test_every_file_that_is_named_is_there():
    root = Path(__file__).parents[2]
    assert all((root / name).exists() for name in re.findall(r"`((?:runtime|train|tests)/[\w/.]+)`", PAGE))
