"""``axonnx demo``: the whole pipeline on the embedded data, each step by the command that a user would type."""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from axonnx.base.errors import AxonnxError
from axonnx.cli import export as export_command
from axonnx.cli import profile as profile_command
from axonnx.cli import verify as verify_command
from axonnx.cli.report import main as report_main
from axonnx.cli.run import main as run_main
from axonnx.cli.train import main as train_main
from axonnx.runtime.measure.result_files import read_result
from axonnx.runtime.measure.verify_result import VerifyResult
from axonnx.runtime.readers import write_npz
from axonnx.train.data.recordings import Recordings
from axonnx.train.data.sets.registry import load_data_set

CONFIGURATION = "digits-saccade"
MODES = {"mfa": (), "sampled": ("--members", "4"), "stochastic": ()}


@dataclass
class Demo:
    """Runs commands, tells what it runs, and keeps the time."""

    folder: Path
    began: float = field(default_factory=time.monotonic)
    spent: list[tuple[str, float]] = field(default_factory=list)

    def step(self, about: str, verb: str, words: Sequence[str], run: Callable[[Sequence[str]], int]) -> None:
        """One command, announced as a user would type it."""
        print(f"\n\x1b[1m── {about}\x1b[0m\n$ axonnx {verb} {shlex.join(words)}\n", flush=True)
        began = time.monotonic()
        code = run(words)
        self.spent.append((verb, time.monotonic() - began))
        if code:
            raise AxonnxError(f"axonnx {verb} ended with exit code {code}")


def main(arguments: Sequence[str]) -> int:
    """``axonnx demo``."""
    options = make_parser().parse_args(arguments)
    demo = Demo(Path(options.out))
    demo.folder.mkdir(parents=True, exist_ok=True)
    run = str(demo.folder / CONFIGURATION)
    short = ["--optimiser.epochs", "2"] if options.quick else []
    demo.step("train a spiking network", "train", [CONFIGURATION, "--out", run, "--overwrite", *short], train_main)
    models = {mode: str(demo.folder / f"{CONFIGURATION}-{mode}.onnx") for mode in MODES}
    for mode, extra in MODES.items():
        words = [run, "-o", models[mode], "--collapse", mode, *extra]
        demo.step(f"collapse and export: {mode}", "export", words, export_command.main)
    for mode, path in models.items():
        words = [path, "--run", run, "-o", str(demo.folder / f"verify-{mode}.json")]
        demo.step(f"verify, bit for bit: {mode}", "verify", words, verify_command.main)
    recording, label = _recording(demo.folder)
    words = [models["mfa"], recording, "--live" if sys.stdout.isatty() else "--final-only"]
    demo.step(f"run it on a recording (of a {label})", "run", words, run_main)
    profiled = str(demo.folder / "profile.json")
    demo.step("what it costs", "profile", [models["mfa"], "--run", run, "-o", profiled], profile_command.main)
    words = [*models.values(), "--run", run, "--limit", "128", "--plot", str(demo.folder / "trade-off.png")]
    demo.step("what the three cost, side by side", "profile", words, profile_command.main)
    page = str(demo.folder / "report.html")
    words = ["--model", models["mfa"], "--run", run, "--verify", str(demo.folder / "verify-mfa.json")]
    demo.step("the report", "report", [*words, "--profile", profiled, "-o", page], report_main)
    print(_summary(demo, page))
    return 0


def make_parser() -> argparse.ArgumentParser:
    """The options of the verb."""
    parser = argparse.ArgumentParser(
        "axonnx demo", description="Train, collapse, export, verify, run, profile, report."
    )
    parser.add_argument("--out", default="runs/demo", help="where everything goes (default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="two epochs instead of all: shows that everything works")
    return parser


def _recording(folder: Path) -> tuple[str, str]:
    """A test recording as a file of events."""
    test = load_data_set(CONFIGURATION).test
    assert isinstance(test, Recordings)
    path = folder / "recording.npz"
    write_npz(path, test[0], test.sensor)
    return str(path), test.classes[int(test.labels[0])]


def _summary(demo: Demo, page: str) -> str:
    found = [read_result(VerifyResult, demo.folder / f"verify-{mode}.json") for mode in MODES]
    compared = sum(number for result in found for _, number in result.compared)
    mismatches = sum(result.mismatches for result in found)
    (accuracy,) = (entry for entry in found[0].accuracy if entry.of == "file")
    took = ", ".join(f"{verb} {seconds:.0f} s" for verb, seconds in demo.spent)
    return "\n".join(
        [
            "",
            f"verified: {mismatches} mismatches in {compared:,} numbers, over {len(found)} files",
            f"accuracy: {100 * accuracy.accuracy:.1f} % of {accuracy.samples} test recordings",
            f"took {time.monotonic() - demo.began:.0f} s ({took})",
            f"report: {page}",
        ]
    )
