"""Jobs and their records on disk: one JSON file for each case and seed, and all of an experiment's in one file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from axonnx.base.errors import AxonnxError
from axonnx.base.files import write_text
from axonnx.train.data import digest

Tree = dict[str, Any]
Record = dict[str, Any]
FORMAT = 1


class Job(NamedTuple):
    """One case with one seed: everything a measure needs."""

    case: str
    seed: int
    settings: Tree  # of the training run, whole
    options: Tree  # of the measure
    group: int | None = None  # the speaker or user that is held out

    @property
    def name(self) -> str:
        """Tells it from the others of its experiment."""
        without = "" if self.group is None else f", without {self.group}"
        return f"{self.case}, seed {self.seed}{without}"

    @property
    def digest(self) -> str:
        """Tells one job from another that is to be done differently."""
        return digest_of([self.settings, self.options, self.seed])


def digest_of(tree: Any) -> str:
    """Return a short hash of settings."""
    return digest.digest_of(tree)[:12]


class Store:
    """What an experiment leaves in its folder while it runs. ``runs/`` is shared by all experiments of a scale."""

    def __init__(self, folder: Path, name: str, scale: str) -> None:
        self.records = folder / scale / name
        self.runs = folder / scale / "runs"

    def find(self, job: Job) -> Record | None:
        """Return the record of a job that was done before, in the same way."""
        path = self._path(job)
        if not path.is_file():
            return None
        try:
            record: Record = json.loads(path.read_text("utf-8"))
        except (ValueError, RecursionError):
            return None  # it is measured anew
        return record if isinstance(record, dict) and record.get("digest") == job.digest else None

    def keep(self, job: Job, record: Record) -> Record:
        """Write a job's record, whole or not at all."""
        held_out = {} if job.group is None else {"group": job.group}
        whole = {"case": job.case, "seed": job.seed, **held_out, "digest": job.digest, **record}
        path = self._path(job)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, json.dumps(whole, indent=1))
        return whole

    def _path(self, job: Job) -> Path:
        case = re.sub(r"[^A-Za-z0-9.]+", "-", job.case).strip("-").lower()
        group = "" if job.group is None else f"-without-{job.group}"
        return self.records / f"{case}-{job.seed}{group}.json"


def write_results(path: Path, name: str, scale: str, records: Iterable[Record]) -> None:
    """All records of an experiment in one file, numbers to six digits: what tables and figures are made from."""
    lines = [json.dumps(_rounded(record), separators=(",", ":")) for record in records]
    head = json.dumps({"format": FORMAT, "experiment": name, "scale": scale})
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, head[:-1] + ', "records": [\n' + ",\n".join(lines) + "\n]}\n")


def read_results(path: Path) -> tuple[str, list[Record]]:
    """Return the scale and the records of a results file."""
    if not path.is_file():
        raise AxonnxError(f"{path}: no stored results; run the experiment first")
    try:
        tree = json.loads(path.read_text("utf-8"))
    except (ValueError, RecursionError) as fault:
        raise AxonnxError(f"{path}: not a results file: {fault}") from None
    if not isinstance(tree, dict) or tree.get("format") != FORMAT or not {"scale", "records"} <= set(tree):
        raise AxonnxError(f"{path}: not a results file of format {FORMAT}; run the experiment again")
    return tree["scale"], tree["records"]


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {key: _rounded(part) for key, part in value.items()}
    return [_rounded(part) for part in value] if isinstance(value, list) else value


def mean_and_std(values: Sequence[float]) -> tuple[float, float]:
    """Mean and standard deviation over seeds (n − 1; nan for one)."""
    return float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")
