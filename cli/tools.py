"""The verbs around the others: demo, doctor, completion."""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from axonnx.base.errors import AxonnxError
from axonnx.base.plain_text import raw_stream
from axonnx.cli import command
from axonnx.cli.guard import FAILED, FINE
from axonnx.cli.options import Options, parser_of
from axonnx.examination import examine
from axonnx.runtime.doctor.findings import Cache, CoreFinding, Diagnosis, EngineFinding

CONFIGURATION = "digits-saccade"
MODES = {"mfa": (), "sampled": ("--members", "4"), "stochastic": ()}
Shell = Literal["bash", "zsh", "tcsh"]


def demo(options: Options) -> int:
    """``axonnx demo``."""
    print(run_demo(**options.of()))
    return FINE


def run_demo(output: str = "runs/demo", *, quick: bool = False) -> str:
    """Run the whole pipeline on built-in data: train, collapse, export, verify, run, profile, report.

    Each step is a command that a user would type, printed before it runs.

    Args:
        output: Folder for everything that is made.
        quick: Two epochs instead of all, to see that everything works.

    Returns:
        What was verified, how good the network is, and how long it took.
    """
    from axonnx.loading import load_data
    from axonnx.model import write_events
    from axonnx.train.data.recordings import Recordings

    steps = Demo(Path(output))
    steps.folder.mkdir(parents=True, exist_ok=True)
    run = str(steps.folder / CONFIGURATION)
    short = ["--optimiser.epochs", "2"] if quick else []
    steps.do("train a spiking network", "train", CONFIGURATION, "-o", run, "--overwrite", *short)
    models = {mode: str(steps.folder / f"{CONFIGURATION}-{mode}.onnx") for mode in MODES}
    proofs = {mode: str(steps.folder / f"verify-{mode}.json") for mode in MODES}
    for mode, extra in MODES.items():
        steps.do(f"collapse and export: {mode}", "export", run, "-o", models[mode], "--collapse", mode, *extra)
    for mode, path in models.items():
        steps.do(f"verify, bit for bit: {mode}", "verify", path, "--run", run, "--json", proofs[mode])
    test = load_data(CONFIGURATION)
    assert isinstance(test, Recordings)
    recording = str(write_events(steps.folder / "recording.npz", test[0], test.sensor))
    about = f"run it on a recording (of a {test.classes[int(test.labels[0])]})"
    steps.do(about, "run", models["mfa"], recording, *(["--live"] if sys.stdout.isatty() else []))
    profiled = str(steps.folder / "profile.json")
    steps.do("what it costs", "profile", models["mfa"], "--data", run, "--json", profiled)
    picture = str(steps.folder / "trade-off.png")
    beside = "what the three cost, side by side"
    steps.do(beside, "profile", *models.values(), "--data", run, "--limit", "128", "-o", picture)
    page = str(steps.folder / "report.html")
    words = ["--run", run, "--verify", proofs["mfa"], "--profile", profiled, "-o", page]
    steps.do("the report", "report", models["mfa"], *words)
    return _summary(steps, list(proofs.values()), page)


@dataclass
class Demo:
    """Runs commands, prints what it runs, and keeps the time."""

    folder: Path
    began: float = field(default_factory=time.monotonic)
    spent: list[tuple[str, float]] = field(default_factory=list)

    def do(self, about: str, verb: str, *words: str) -> None:
        """Run one command, printed as a user would type it."""
        bold, plain = ("\x1b[1m", "\x1b[0m") if sys.stdout.isatty() else ("", "")
        out = raw_stream(sys.stdout)
        print(f"\n{bold}── {about}{plain}\n$ axonnx {verb} {shlex.join(words)}\n", file=out, flush=True)
        began = time.monotonic()
        code = command.main([verb, *words])
        self.spent.append((verb, time.monotonic() - began))
        if code:
            raise AxonnxError(f"axonnx {verb} ended with exit code {code}")


def _summary(steps: Demo, proofs: Sequence[str], page: str) -> str:
    from axonnx.runtime.measure.result_files import read_result
    from axonnx.runtime.measure.verify_result import VerifyResult

    found = [read_result(VerifyResult, Path(proof)) for proof in proofs]
    compared = sum(number for result in found for _, number in result.compared)
    mismatches = sum(result.mismatches for result in found)
    (accuracy,) = (entry for entry in found[0].accuracy if entry.of == "file")
    took = ", ".join(f"{verb} {seconds:.0f} s" for verb, seconds in steps.spent)
    return "\n".join(
        [
            "",
            f"verified: {mismatches} mismatches in {compared:,} numbers, over {len(found)} files",
            f"accuracy: {100 * accuracy.accuracy:.1f} % of {accuracy.samples} test recordings",
            f"took {time.monotonic() - steps.began:.0f} s ({took})",
            f"report: {page}",
        ]
    )


def doctor(options: Options) -> int:
    """``axonnx doctor``: exit 0 if every engine that is here gives the right bits, 1 if one does not."""
    found = examine()
    options.show([found], lambda: text(found))
    return FINE if found.well else FAILED


def text(found: Diagnosis) -> str:
    """Return the same for people."""
    processor = found.processor
    memory = "" if processor.memory_bytes is None else f", {processor.memory_bytes / 2**30:.1f} GiB of memory"
    lines = [
        f"axonnx {found.axonnx}, {found.python}, {found.system}",
        f"{processor.model or processor.architecture}: {processor.usable} of {processor.processors} processors{memory}",
        f"instruction sets: {', '.join(processor.instruction_sets) or 'unknown'}",
        "",
        *(f"{program.name:<18}{program.version}  ({program.path})" for program in found.programs),
        *([] if found.programs else ["no C compiler, no node"]),
        "",
        f"native core       {_core(found.core)}",
        *(_engine(engine) for engine in found.engines),
        "",
        *(f"axonnx[{each.name}]".ljust(20) + _extra(each.missing) for each in found.extras),
        "",
        *(_cache(cache) for cache in found.caches),
        "",
        f"data folder (AXONNX_DATA): {found.data_root or 'not set'}",
        *(f"{each.name:<20}{each.found or 'not there'}" for each in found.data),
        "",
        ", ".join(f"{name} {version}" for name, version in found.packages.items()),
        "",
        "all engines that are here give the right bits" if found.well else "AN ENGINE DOES NOT WORK HERE: see above",
    ]
    return "\n".join(lines)


def _core(found: CoreFinding) -> str:
    if found.isa is None:
        return f"none: {found.note}"
    others = ", ".join(isa for isa in found.isas if isa != found.isa) or "nothing else"
    chosen = "named by AXONNX_ISA" if found.forced else "the best that this processor can run"
    return f"{found.isa}, {chosen}; it can also run {others}"


def _engine(found: EngineFinding) -> str:
    about = {
        "equal": f"equal: {found.numbers} numbers, bit for bit ({found.seconds:.1f} s)",
        "different": f"DIFFERENT in {found.differing} of {found.numbers} numbers",
        "missing": f"not here: {found.note}",
        "failed": f"FAILED: {found.note}",
    }
    return f"engine {found.name:<11}{about[found.status]}"


def _cache(found: Cache) -> str:
    return f"cache {found.name:<12}{found.files:>7,} files {found.bytes / 2**20:>9,.1f} MiB  {found.path}"


def _extra(missing: tuple[str, ...]) -> str:
    return f"lacks {', '.join(missing)}" if missing else "complete"


def completion(options: Options) -> int:
    """``axonnx completion``."""
    print(completion_script(**options.of()))
    return FINE


def completion_script(shell: Shell) -> str:
    """Return a script that completes verbs, options and shipped names.

    In bash: eval "$(axonnx completion bash)", there or in ~/.bashrc. In zsh: axonnx completion zsh > _axonnx, in a
    folder of $fpath.

    Args:
        shell: bash, zsh or tcsh.

    Returns:
        The text of the script.

    Raises:
        AxonnxError: If shtab is not installed.
    """
    if find_spec("shtab") is None:
        raise AxonnxError(
            "completion scripts are made by shtab, which is not installed: pip install 'axonnx[completion]'"
        )
    import shtab

    found: str = shtab.complete(whole_parser(), shell)
    return found


def whole_parser() -> argparse.ArgumentParser:
    """Return all verbs with their options under one parser."""
    whole = argparse.ArgumentParser("axonnx")
    verbs = whole.add_subparsers()
    for name, verb in command.VERBS.items():
        parents = [parser_of(name, verb)]
        one = verbs.add_parser(name, help=verb.does, parents=parents, add_help=False, conflict_handler="resolve")
        if name == "train":
            _add_settings(one)
        for action in one._actions:
            if action.choices is None and action.nargs != 0:
                action.complete = {"bash": "_shtab_compgen_files", "zsh": "_files", "tcsh": "f"}  # type: ignore[attr-defined]
    return whole


def _add_settings(train: argparse.ArgumentParser) -> None:
    """Shipped configurations by name, and every setting as an option."""
    from axonnx.train.config.read import settings, shipped

    for key, _, about in settings():
        train.add_argument(f"--{key}", help=about.replace("%", "%%"))
    for action in train._actions:
        if action.dest == "configuration":
            action.choices = list(shipped())
