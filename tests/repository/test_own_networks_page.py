"""The example of docs/own-networks.md, run as it stands: trained, exported, verified, profiled and reported."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from axonnx.cli import main
from axonnx.train.trained import open_run

PAGE = (Path(__file__).parents[2] / "docs" / "own-networks.md").read_text("utf-8")
BLOCKS = dict(re.findall(r"^```(\w+)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Frames of three classes, and the files of the page."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    labels = np.arange(60) % 3
    share = np.full((60, 1, 1, 4, 4), 0.1)
    share[np.arange(60), 0, 0, labels] = 0.8
    frames = np.random.default_rng(0).random((60, 5, 1, 4, 4)) < share
    np.savez("frames.npz", frames=frames.astype(np.uint8), labels=labels)
    Path("my_network.py").write_text(BLOCKS["python"], "utf-8")
    Path("my_run.toml").write_text(BLOCKS["toml"], "utf-8")
    return tmp_path


def test_the_page_runs_from_beginning_to_end(here):
    commands = BLOCKS["bash"].splitlines()
    assert [line.split()[1] for line in commands] == ["train", "export", "verify", "profile", "report"]
    for line in commands:
        assert main(line.split()[1:]) == 0, line
        Path("my_network.py").unlink(missing_ok=True)  # from here on the run's own copy counts
    assert json.loads(Path("verify.json").read_text("utf-8"))["mismatches"] == 0
    assert json.loads(Path("profile.json").read_text("utf-8"))["samples"] > 0
    assert "to_second" in Path("report.html").read_text("utf-8")
    network = open_run("runs/mine").network
    assert (type(network).__name__, network.dropout.p) == ("MyNet", 0.1)
