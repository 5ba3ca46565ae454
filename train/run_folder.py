"""A run's folder: all that a run leaves behind, readable without this program.

config.toml    the resolved configuration; ``axonnx train config.toml`` repeats the run
network.py     the source of one's own network, whose sha256 stands in config.toml
data.json      samples of each class in each part, and what binning left out of them
results.csv    a row for each epoch
metrics.json   final figures for each part of the data
curves.png     loss, accuracy and firing rates over the epochs
checkpoint/    weights and optimiser (safetensors), their hashes, versions and random state (JSON); of a finished run
               also the witness of its training
log.txt        what happened when
tensorboard/   the columns of results.csv for TensorBoard, where that is installed
"""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from io import StringIO
from pathlib import Path
from typing import Any

from axonnx.base.errors import AxonnxError
from axonnx.base.files import claimed, remove_leftovers, replacing, write_text
from axonnx.train.config.own import COPY, OwnSource
from axonnx.train.config.read import read_config, to_toml
from axonnx.train.config.settings import Config


@dataclass(frozen=True)
class RunFolder:
    """Paths and files of one run."""

    path: Path

    @property
    def checkpoint(self) -> Path:
        """Where checkpoints are."""
        return self.path / "checkpoint"

    @property
    def tensorboard(self) -> Path:
        """Where TensorBoard looks."""
        return self.path / "tensorboard"

    def holds_run(self, or_start: bool) -> bool:
        """Whether a run was started here; without one and without ``or_start``, that is refused."""
        started = (self.path / "config.toml").is_file()
        if not started and not or_start:
            self.config()
        return started

    def check_free(self) -> None:
        """Refuse a folder that holds a run already."""
        if (self.path / "config.toml").exists():
            raise AxonnxError(
                f"{self.path}: holds a run already. Resume it, overwrite it, or name another folder",
                options=("resume", "overwrite", "output"),
            )

    def create(self, config: Config, overwrite: bool = False, source: OwnSource | None = None) -> None:
        """Start anew; a folder that holds a run already is not touched without ``overwrite``."""
        if not overwrite:
            self.check_free()
        for name in ("metrics.json", "data.json", "curves.png", "results.csv", "log.txt", COPY):
            (self.path / name).unlink(missing_ok=True)
        for folder in (self.checkpoint, self.tensorboard):
            shutil.rmtree(folder, ignore_errors=True)
        self.path.mkdir(parents=True, exist_ok=True)
        if source is not None:
            with replacing(self.path / COPY) as temporary:
                temporary.write_bytes(source.code)
        write_text(self.path / "config.toml", to_toml(config))

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep every other training out while the block lasts, and clear away what killed ones left half-written."""
        self.path.mkdir(parents=True, exist_ok=True)
        with claimed(self.path) as ours:
            if not ours:
                raise AxonnxError(
                    f"{self.path}: another training writes here at this moment. "
                    "Wait for its end, or name another folder"
                )
            for folder in (self.path, self.checkpoint):
                remove_leftovers(folder)
            yield

    def config(self) -> Config:
        """Read the configuration of this run."""
        path = self.path / "config.toml"
        if not path.is_file():
            raise AxonnxError(f"{self.path}: no run here (config.toml is missing). Start one: axonnx train")
        return read_config(str(path))

    def write_results(self, rows: Sequence[dict[str, Any]]) -> None:
        """All rows so far."""
        names = list(dict.fromkeys(name for row in rows for name in row))
        text = StringIO()
        writer = csv.DictWriter(text, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        write_text(self.path / "results.csv", text.getvalue())

    def read_results(self, epochs: int) -> list[dict[str, Any]]:
        """Read the rows of the first ``epochs`` epochs."""
        path = self.path / "results.csv"
        try:
            text = path.read_text("utf-8") if path.is_file() else ""
            # A row that is longer or shorter than the header has None for a key, or for a value.
            rows = [{key: _number(value) for key, value in row.items()} for row in csv.DictReader(StringIO(text))]
        except (UnicodeDecodeError, csv.Error, TypeError):
            rows = []
        # The count comes from a file: never make a list of its length.
        if len(rows) < epochs or any(row.get("epoch") != i for i, row in enumerate(rows[:epochs], 1)):
            raise AxonnxError(
                f"{path}: does not hold the rows of epochs 1 to {epochs}, after which the checkpoint was taken; "
                f"restore it from a copy, or train again and overwrite it"
            )
        return rows[:epochs]

    def write_metrics(self, metrics: dict[str, Any]) -> None:
        """Write the final figures."""
        write_text(self.path / "metrics.json", json.dumps(metrics, indent=1))

    def write_data(self, facts: dict[str, Any]) -> None:
        """Write what the data is, and what training does not see of it."""
        write_text(self.path / "data.json", json.dumps(facts, indent=1))

    def log(self, line: str) -> None:
        """One more line of the log, with the time."""
        with open(self.path / "log.txt", "a", encoding="utf-8") as file:
            file.write(f"{datetime.now().astimezone().isoformat(timespec='seconds')} {line}\n")


def _number(text: str) -> Any:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text
