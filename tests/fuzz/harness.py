"""Runs campaigns where a crash is seen: in child processes with limits on memory and time.

A campaign is a module in ``tests/fuzz/campaigns/`` with

    NAME = "model files"                what the table calls it
    def case(seed: int) -> str          "accepted" or "refused"; everything in it follows from ``seed``

and, where it helps,

    def setup() -> None                 once in each child, before limits hold: imports, compiling, samples
    def material(seed: int) -> bytes    the damaged input of a case, kept beside a finding

A case raises ``Finding`` where two things disagree that should not. Every other exception that leaves it is a finding
too, and so are a child that dies, a case that takes too long and one that asks for too much memory. What restarted
children need again, like samples that take their time to make, goes into ``shared_folder()``.
"""

from __future__ import annotations

import os
import pkgutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any

from tests.fuzz import campaigns
from tests.fuzz.child import FOLDER, Child, Limits, Report

ROOT = Path(__file__).parents[2]
FINDINGS = ROOT / "tests" / "fuzz" / "findings"
OUTCOMES = ("accepted", "refused")


class Finding(Exception):  # noqa: N818 - it is a result, not an error
    """Something that must not be; says what."""


@dataclass
class Result:
    """What a campaign found so far."""

    module: str
    counts: Counter[str] = field(default_factory=Counter)
    findings: list[Report] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def cases(self) -> int:
        """How many there were."""
        return sum(self.counts.values())


def shared_folder() -> Path:
    """Inside a child: a folder that lives as long as its campaign runs."""
    return Path(os.environ.get(FOLDER) or os.environ.setdefault(FOLDER, tempfile.mkdtemp(prefix="axonnx-fuzz-")))


def names() -> list[str]:
    """The modules of all campaigns."""
    return sorted(entry.name for entry in pkgutil.iter_modules(campaigns.__path__))


def load(module: str) -> Any:
    """A campaign by the name of its module; one outside ``tests/fuzz/campaigns/`` by its whole name."""
    return import_module(module if "." in module else f"tests.fuzz.campaigns.{module}")


def run(
    module: str,
    *,
    cases: int | None = None,
    seconds: float | None = None,
    first: int = 0,
    limits: Limits | None = None,
    keep: Path | None = None,
) -> Result:
    """Seeds ``first``, ``first`` + 1, … until so many cases or seconds are over; findings are kept in ``keep``."""
    result, began = Result(module), time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="axonnx-fuzz-") as folder,
        Child(module, folder, limits or Limits()) as child,
    ):
        for seed in count(first) if cases is None else range(first, first + cases):
            if seconds is not None and time.monotonic() - began > seconds:
                break
            report = child.case(seed)
            result.counts[report.kind] += 1
            if report.kind not in OUTCOMES:
                result.findings.append(report)
                if keep is not None:
                    _keep(report, child.material(seed), keep)
        result.seconds = time.monotonic() - began
    return result


def _keep(report: Report, material: bytes | None, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{report.module.rpartition('.')[2]}-{report.seed}"
    command = f"{Path(sys.executable).name} -m tests.fuzz {report.module} --seed {report.seed}"
    (folder / f"{name}.txt").write_text(f"{report.kind}\n{command}\n\n{report.text}\n", encoding="utf-8")
    if material is not None:
        (folder / f"{name}.bin").write_bytes(material)


def table(results: list[Result]) -> str:
    """One line for each campaign."""
    lines = [
        f"{'campaign':<18}{'cases':>9}{'accepted':>10}{'refused':>9}{'findings':>10}{'seconds':>9}  kinds of findings"
    ]
    for result in results:
        counts = result.counts
        kinds = ", ".join(f"{number} {kind}" for kind, number in sorted(counts.items()) if kind not in OUTCOMES)
        lines.append(
            f"{result.module:<18}{result.cases:>9}{counts['accepted']:>10}{counts['refused']:>9}"
            f"{len(result.findings):>10}{result.seconds:>9.0f}  {kinds or '-'}"
        )
    return "\n".join(lines)


def revision() -> str:
    """The commit that is fuzzed."""
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"
