"""Digits as firmware for a Cortex-M4 in qemu: the logits held against the numpy engine's, sizes, instructions."""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from axonnx.compiling import compile_to
from axonnx.export.exporting import export_run
from axonnx.runtime.model import load
from axonnx.train.data.registry import load_data_set
from axonnx.train.run import train_run
from benchmarks.timing import table

PAGE = Path(__file__).parents[1] / "docs" / "deploy.md"
BEGIN, END = "<!-- firmware: make firmware -->\n", "<!-- end -->"
TOOLS = ("arm-none-eabi-gcc", "qemu-system-arm", "make")
WEIGHTS = ("float32", "int16", "int8")
AT_ONCE = 10  # recordings of one start of the emulator
HEAD = ["file", "code", "weights", "RAM of a state", "instructions a step", "logits equal", "right"]


def make(folder: Path, *words: str) -> str:
    return subprocess.run(
        ["make", "--silent", "-C", str(folder), *words], capture_output=True, text=True, check=True
    ).stdout


def sizes(folder: Path) -> tuple[int, int]:
    """Bytes of code and of constants of the network alone."""
    found = re.findall(r"^\.(text|rodata)\S*\s+(\d+)", make(folder, "size"), re.MULTILINE)
    code, constants = (sum(int(size) for section, size in found if section == kind) for kind in ("text", "rodata"))
    return code, constants


def run(folder: Path, recordings) -> list[tuple[np.ndarray, int]]:
    """Logits and instructions a step, for each recording."""
    for number, events in enumerate(recordings):
        np.savetxt(folder / f"{number}.csv", events, "%d", ",", header="t,x,y,p", comments="")
    told: list[str] = []
    for first in range(0, len(recordings), AT_ONCE):
        names = [f"{number}.csv" for number in range(first, min(first + AT_ONCE, len(recordings)))]
        told += make(folder, "run", f"RECORDINGS={' '.join(names)}").splitlines()
    counts = [int(re.search(r", (\d+) instructions", line)[1]) for line in told[::2]]
    return [(np.array(line.split()[1:], np.float32), n) for line, n in zip(told[1::2], counts, strict=True)]


def row(path: Path, folder: Path, recordings, labels) -> list[str]:
    model = load(path, "numpy")
    compile_to(path, folder, "cortex-m")
    found, (code, constants) = run(folder, recordings), sizes(folder)
    equal = sum(
        np.array_equal(logits, model.predict(e).logits) for (logits, _), e in zip(found, recordings, strict=True)
    )
    right = sum(int(logits.argmax() == label) for (logits, _), label in zip(found, labels, strict=True))
    ram = int(re.search(r"states need ([\d,]+)\s+bytes", (folder / "README.md").read_text("utf-8"))[1].replace(",", ""))
    counts = [n for _, n in found]
    spent = f"{np.mean(counts):,.0f} ({min(counts):,} – {max(counts):,})"
    shares = [f"{number} of {len(found)}" for number in (equal, right)]
    return [path.stem, f"{code:,} B", f"{constants:,} B", f"{ram:,} B", spent, *shares]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.firmware", description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"put the table into {PAGE.name}")
    parser.add_argument("--run", type=Path, help="a run of digits-saccade; trained now where none is given")
    parser.add_argument("--recordings", type=int, default=50, help="(default: %(default)s)")
    chosen, _ = parser.parse_known_args(arguments)
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        print(f"firmware: left out, {', '.join(missing)} not found; make firmware installs what is needed")
        return 0
    test, rows = load_data_set("digits-saccade").test, []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        trained = chosen.run or train_run("digits-saccade", folder / "run").folder
        recordings = [test[number] for number in range(chosen.recordings)]
        for weights in WEIGHTS:
            export_run(trained, folder / f"digits, {weights}.onnx", weights=weights)
            place = folder / weights
            rows.append(row(folder / f"digits, {weights}.onnx", place, recordings, test.labels[: chosen.recordings]))
    text = "\n".join(table("", HEAD, rows).splitlines()[2:]) + "\n"
    print(text)
    if chosen.write:
        before, rest = PAGE.read_text("utf-8").split(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}\n{text}\n{END}{rest.split(END, 1)[1]}", "utf-8")
    return 0 if all(each[5].split(" of ")[0] == each[5].split(" of ")[1] for each in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
