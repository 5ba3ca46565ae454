"""Digits in integers down to gates: the design simulated on recordings, and placed on an iCE40 UP5K.

    python -m benchmarks.hardware [--run RUN] [--recordings 360] [--write]

Cells and clock are what nextpnr reports, cycles are counted in Verilator's simulation of every recording. Time is
cycles over the reported clock: an estimate, not a measurement of a board.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import axonnx
from benchmarks.timing import table

PAGE = Path(__file__).parents[1] / "docs" / "hardware.md"
BEGIN, END = "<!-- hardware: make hardware -->\n", "<!-- end -->"
TOOLS = ("verilator", "g++", "make", "yosys", "nextpnr-ice40", "icepack")
HEAD = ["weights", "right", "numbers compared", "differ", "cells", "memories", "clock", "cycles", "time at that clock"]


def cycles(folder: Path, recordings) -> list[int]:
    """Clock cycles of each recording, from its first event to its decision."""
    subprocess.run(["make", "--silent", "-C", str(folder), "network"], check=True)
    for number, events in enumerate(recordings):
        rows = "".join(f"{t},{x},{y},{p}\n" for t, x, y, p in events.tolist())
        (folder / f"{number}.csv").write_text(f"t,x,y,p\n{rows}")
    names = [f"{number}.csv" for number in range(len(recordings))]
    told = subprocess.run(["./network", *names], cwd=folder, capture_output=True, text=True, check=True).stdout
    return [int(number) for number in re.findall(r"(\d+) cycles", told)]


def placed(folder: Path) -> tuple[int, str, float]:
    """Cells, memories and the clock in MHz that place and route report."""
    subprocess.run(["make", "--silent", "-C", str(folder), "report"], check=True, capture_output=True)
    report = json.loads((folder / "report.json").read_text())
    used = {name: each["used"] for name, each in report["utilization"].items()}
    clock = min(each["achieved"] for each in report["fmax"].values())
    return used["ICESTORM_LC"], f"{used['ICESTORM_RAM']} small, {used['ICESTORM_SPRAM']} large", clock


def row(run: axonnx.Run, weights: str, folder: Path, count: int) -> list[str]:
    model = run.export(folder / f"{weights}.onnx", weights=weights, passes=1)
    design, test = folder / weights, axonnx.load_data("digits-saccade")
    model.compile(design, target="up5k")
    found = model.verify(compiled=design, data="digits-saccade", limit=count)
    (program,) = found.implementations
    spent = cycles(design, [test[number] for number in range(count)])
    score = model.evaluate("digits-saccade")  # the whole test part
    cells, memories, clock = placed(design)
    mean = sum(spent) / len(spent)
    return [
        weights, f"{score.accuracy:.1%}", f"{program.spikes + program.logits + program.decisions:,}",
        f"{program.differing}", f"{cells:,} of 5,280", memories, f"{clock:.1f} MHz",
        f"{mean:,.0f} ({min(spent):,} – {max(spent):,})", f"{mean / clock / 1000:.2f} ms",
    ]  # fmt: skip


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hardware", description=__doc__.split("\n")[0])
    parser.add_argument("--write", action="store_true", help=f"put the table into {PAGE.name}")
    parser.add_argument("--run", type=Path, help="a run of digits-saccade; trained now where none is given")
    parser.add_argument("--recordings", type=int, default=360, help="(default: %(default)s)")
    chosen, _ = parser.parse_known_args(arguments)
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        print(f"hardware: left out, {', '.join(missing)} not found; make hardware installs what is needed")
        return 0
    with tempfile.TemporaryDirectory() as name:
        run = axonnx.Run(chosen.run) if chosen.run else axonnx.Run.train("digits-saccade", Path(name) / "run")
        rows = [row(run, weights, Path(name), chosen.recordings) for weights in ("integer4", "integer2")]
    text = table("Digits, 512-128-128-10, in integers on an iCE40 UP5K", HEAD, rows)
    print(text)
    if chosen.write:
        page = PAGE.read_text("utf-8")
        before, rest = page.split(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}\n{text}\n\n{END}{rest.split(END, 1)[1]}", "utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
