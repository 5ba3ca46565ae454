"""Everything that the README shows is run: its Python, and its commands (on a shorter training run)."""

import re
import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from axonnx.cli import main
from axonnx.runtime import load

ROOT = Path(__file__).parents[2]
SVG = "{http://www.w3.org/2000/svg}"
README = (ROOT / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
# What makes a command of the tour short enough for a test; the commands are the README's otherwise.
SHORTER = {
    "train": ["--optimiser.epochs", "1", "--model.hidden", "[16, 16]", "--eval_samples", "1", "--quiet"],
    "export": ["--limit", "16", "--passes", "1", "--quiet"],
    "verify": ["--samples", "2", "--limit", "16", "--recordings", "2", "--quiet"],
    "profile": ["--limit", "16"],
    "report": [],
    "run": [],
    "inspect": [],
    "compile": [],
    "experiment": ["--quick", "--quiet"],
    "sweep": ["--set", "model.hidden=[16]", "--seeds", "1", "--quiet"],
}


# What commands that are not ours need; they are left out where it is missing.
NEEDED = {
    ("make", "-sC"): ("make", "gcc", "arm-none-eabi-gcc", "qemu-system-arm"),
    ("./desktop/network", "recording.csv"): ("make", "gcc", "arm-none-eabi-gcc", "qemu-system-arm"),
    ("node", "browser/run.mjs"): ("node",),
}


def tour() -> list[tuple[str, str]]:
    """Python and commands in the order of the README, up to the section on own networks."""
    end = README.index("## Compose a network of your own")
    found = []
    for match in re.finditer(r"^```(python|console)\n(.*?)^```", README[:end], re.MULTILINE | re.DOTALL):
        kind, text = match.groups()
        found += (
            [(kind, text)] if kind == "python" else [(kind, line) for line in text.splitlines() if line[:2] == "$ "]
        )
    return found


def test_the_tour_runs_from_beginning_to_end(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    steps = tour()
    assert {line.split()[2] for kind, line in steps if line.startswith("$ axonnx ")} == set(SHORTER)
    told = []
    for kind, text in steps:
        if kind == "python":
            exec(compile(text, "README.md", "exec"), {"__name__": "readme"})
            continue
        program, verb, *words = text[2:].split()
        if program == "axonnx":
            assert main([verb, *words, *SHORTER[verb]]) == 0, text
        elif all(map(shutil.which, NEEDED[program, verb])):
            done = subprocess.run([program, verb, *words], capture_output=True, text=True, check=False)
            assert done.returncode == 0, f"{text}: {done.stderr}"
            told += re.findall(r"^logits (.*)", done.stdout, re.MULTILINE)
    assert (tmp_path / "report.html").stat().st_size > 10_000
    assert_same_bits(told, load("digits.onnx").predict("recording.npz").logits)


def assert_same_bits(told: list[str], expected: np.ndarray) -> None:
    """Whatever was printed on a desktop, by node and by firmware."""
    for logits in told:
        assert np.array_equal(np.array(logits.split(), np.float32), expected)


@pytest.mark.parametrize("number", range(2))
def test_networks_of_the_readme_run(number):
    after = README.index("## Compose a network of your own")
    blocks = re.findall(r"^```python\n(.*?)^```", README[after:], re.MULTILINE | re.DOTALL)
    assert len(blocks) == 2
    exec(compile(blocks[number], "README.md", "exec"), {"__name__": "readme"})


def test_make_targets_exist():
    makefile = (ROOT / "Makefile").read_text("utf-8")
    named = re.findall(r"^make (\w+)", README, re.MULTILINE)
    assert named == ["demo", "test"]
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in named)


def test_links_point_to_files():
    links = [link for link in re.findall(r"\]\(([^)]+)\)", README) if "://" not in link]
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_the_picture_has_a_title_for_screen_readers():
    picture = ElementTree.parse(ROOT / "docs/pipeline.svg").getroot()
    named = {part.get("id") for part in picture if part.tag in (SVG + "title", SVG + "desc") and part.text}
    assert picture.get("role") == "img"
    assert set(picture.get("aria-labelledby").split()) == named == {"title", "description"}
    assert "](docs/pipeline.svg)" in README
