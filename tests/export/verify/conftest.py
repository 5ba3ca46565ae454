"""A small trained run, its files in every mode, and a way to run commands."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from axonnx.cli import main

SMALL = ["--model.hidden", "[24, 16]", "--optimiser.epochs", "1", "--data.bins", "15"]


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("verify") / "run"
    assert main(["train", "digits-saccade", "--out", str(folder), "--quiet", *SMALL]) == 0
    return folder


@pytest.fixture(scope="session")
def exported(run_folder: Path) -> Callable[..., Path]:
    """Exports once for each set of options."""
    made: dict[tuple[str, ...], Path] = {}

    def export(*options: str) -> Path:
        if options not in made:
            path = run_folder.parent / f"model{len(made)}.onnx"
            words = ["export", str(run_folder), "-o", str(path), "--limit", "32", "--passes", "2", "--quiet", *options]
            assert main(words) == 0
            made[options] = path
        return made[options]

    return export


@pytest.fixture
def verify(run_folder: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, dict]]:
    """Runs ``axonnx verify --json``: the exit code and what it printed."""

    def call(path: Path, *options: str) -> tuple[int, dict]:
        capsys.readouterr()
        words = ["--run", str(run_folder), "--limit", "12", "--json", "--quiet"]
        code = main(["verify", str(path), *words, *options])
        return code, json.loads(capsys.readouterr().out)

    return call
