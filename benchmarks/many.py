"""``axonnx run`` on a folder of recordings against a shell loop over its files: processor time of all processes.

    python -m benchmarks.many [--recordings 1000] [--loop 8]

The loop is timed on some of the files (``--loop``), each a command of its own, and its time for all is their mean times
the number of files. Processor seconds are compared, not the clock's: they do not depend on what else the machine does.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from axonnx.export.exporting import export_network
from axonnx.runtime.readers import write_npz
from axonnx.train.build import input_contract, make_network, prepare
from axonnx.train.config.read import read_config

from .machine import machine
from .timing import table


def main() -> int:
    options = _parser().parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model, files = write_model_and_recordings(folder, options.recordings)
        run("run", model, files[0])  # the first command also reads the packages from the disk
        chosen = files[:: max(1, len(files) // options.loop)][: options.loop]
        each = [run("run", model, file) for file in chosen]
        loop = [len(files) * sum(values) / len(chosen) for values in zip(*each, strict=True)]
        rows = [_row(f"shell loop, from {len(chosen)} files", loop, loop, len(files))]
        for jobs in (1, 2, 4):
            spent = run("run", model, folder / "recordings", "--jobs", str(jobs))
            rows.append(_row(f"one command, `--jobs {jobs}`", spent, loop, len(files)))
    head = ["", "processor s", "of the loop", "clock s", "recordings / processor s"]
    print(table(f"{len(files):,} recordings of digits-saccade, 512-128-128-10", head, rows))
    print(machine("numpy", "joblib"))
    return 0


def write_model_and_recordings(folder: Path, count: int) -> tuple[Path, list[Path]]:
    """The network of digits-saccade with its initial weights, and that many of its recordings."""
    config = read_config("digits-saccade")
    prepared = prepare(config.data)
    splits = prepared.splits
    model = folder / "digits.onnx"
    export_network(make_network(config, prepared), input_contract(config, prepared), splits.classes, str(model))
    files = []
    for number in range(count):
        data, index = splits.train, number % len(splits.train)
        path = folder / "recordings" / splits.classes[data.labels[index]] / f"{number:05d}.npz"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_npz(path, data[index], data.sensor)
        files.append(path)
    return model, files


def run(*words: object) -> tuple[float, float]:
    """Processor seconds of a command and its processes, and seconds by the clock."""
    before, began = _children(), time.perf_counter()
    command = [sys.executable, "-m", "axonnx.cli", *map(str, words)]
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    return _children() - before, time.perf_counter() - began


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _row(name: str, spent: tuple[float, float] | list[float], loop: list[float], count: int) -> list[str]:
    return [
        name,
        f"{spent[0]:,.1f}",
        f"{loop[0] / spent[0]:.0f} × less",
        f"{spent[1]:,.0f}",
        f"{count / spent[0]:,.1f}",
    ]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("benchmarks.many")
    parser.add_argument("--recordings", type=int, default=1000)
    parser.add_argument("--loop", type=int, default=8, help="files that the shell loop is timed on")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
