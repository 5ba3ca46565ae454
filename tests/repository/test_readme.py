"""Everything that the README shows is run: its Python, and its commands (on a shorter training run)."""

import re
from pathlib import Path
from xml.etree import ElementTree

from axonnx.cli import main

ROOT = Path(__file__).parents[2]
SVG = "{http://www.w3.org/2000/svg}"
README = (ROOT / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
# What makes a command of the tour short enough for a test; the commands are the README's otherwise.
SHORT = {"epochs": 1, "hidden": [16, 16], "eval_samples": 1}
SHORTER = {
    "train": ["--optimiser.epochs", "1", "--model.hidden", "[16, 16]", "--eval_samples", "1", "--quiet"],
    "export": ["--limit", "16", "--passes", "1", "--quiet"],
    "verify": ["--limit", "2", "--quiet"],
    "report": ["--limit", "32", "--quiet"],
    "run": [],
    "compile": [],
}


def tour() -> list[tuple[str, str]]:
    """Python and commands in the order of the README."""
    found = []
    for kind, text in BLOCKS:
        if kind in ("sh", "text"):  # make targets, and what the demo prints: see below
            continue
        found += (
            [(kind, text)] if kind == "python" else [(kind, line) for line in text.splitlines() if line[:2] == "$ "]
        )
    return found


def test_the_tour_runs_from_beginning_to_end(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    steps = tour()
    assert {line.split()[2] for kind, line in steps if line.startswith("$ axonnx ")} == set(SHORTER)
    for kind, text in steps:
        if kind == "python":
            short = text.replace(
                'train("digits-saccade", "digits")', f'train("digits-saccade", "digits", settings={SHORT})'
            )
            exec(compile(short, "README.md", "exec"), {"__name__": "readme"})
            continue
        program, verb, *words = text[2:].split()
        assert program == "axonnx"
        assert main([verb, *words, *SHORTER[verb]]) == 0, text
    assert (tmp_path / "report.html").stat().st_size > 10_000
    assert (tmp_path / "decision.svg").is_file()
    assert (tmp_path / "desktop" / "network.c").is_file()


def test_figures_of_the_first_table_are_those_of_the_pages_that_it_names():
    rows = re.findall(r"^\| \[[^]]+\]\(([^)]+)\)(.*)$", README, re.MULTILINE)
    assert len(rows) == 7
    for page, row in rows:
        source = (ROOT / page).read_text("utf-8")
        figures = re.findall(r"\d[\d.,]*\d(?= (?:ms|%|spikes|membranes|logits))", row.split("|", 1)[1])
        assert figures
        assert [figure for figure in figures if not re.search(rf"(?<![\d.,]){re.escape(figure)}(?![\d])", source)] == []


def test_what_the_readme_holds_is_run():
    assert {kind for kind, _ in BLOCKS} == {"sh", "text", "console", "python"}
    fences = re.findall(r"^```", README, re.MULTILINE)
    assert len(fences) == 2 * len(BLOCKS)


def test_make_targets_exist():
    makefile = (ROOT / "Makefile").read_text("utf-8")
    named = re.findall(r"^make (\w+)", README, re.MULTILINE)
    assert named == ["demo"]
    assert all(
        re.search(rf"^{target}:", makefile, re.MULTILINE) for target in [*named, *re.findall(r"`make (\w+)`", README)]
    )


def test_what_the_demo_prints_is_what_the_documents_show():
    """The README's lines are on the page about verify, or are those of commands that the demo runs."""
    shown = next(text for kind, text in BLOCKS if kind == "text").splitlines()
    proof = (ROOT / "docs/concepts/what-verify-proves.md").read_text("utf-8")
    assert [line for line in shown if line.startswith("verified") and line not in proof] == []
    told = [line.removeprefix("── ").partition(" (")[0] for line in shown if line.startswith("── ")]
    source = (ROOT / "cli/tools.py").read_text("utf-8")
    assert [line for line in told if line.partition(":")[0] not in source] == []


def test_links_point_to_files():
    links = [link for link in re.findall(r"\]\(([^)]+)\)", README) if "://" not in link]
    assert links
    assert [link for link in links if not (ROOT / link.partition("#")[0]).exists()] == []
    for page, _, anchor in (link.partition("#") for link in links if "#" in link):
        headings = re.findall(r"^#+ (.*)$", (ROOT / page).read_text("utf-8"), re.MULTILINE)
        assert anchor in {re.sub(r"[^\w -]", "", each).strip().lower().replace(" ", "-") for each in headings}


def test_the_picture_has_a_title_for_screen_readers():
    picture = ElementTree.parse(ROOT / "docs/pipeline.svg").getroot()
    named = {part.get("id") for part in picture if part.tag in (SVG + "title", SVG + "desc") and part.text}
    assert picture.get("role") == "img"
    assert set(picture.get("aria-labelledby").split()) == named == {"title", "description"}
    assert "](docs/pipeline.svg)" in README
