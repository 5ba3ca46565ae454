"""The design page names every folder, and only what exists."""

import re
from pathlib import Path

from .test_house import TOPS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/design.md").read_text("utf-8")
BESIDE = ("benchmarks", "tests/fuzz")  # not installed


def section(title: str) -> str:
    return PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]


def test_the_tree_has_a_row_for_every_folder_and_each_begins_with_a_file_of_its_own():
    rows = dict(re.findall(r"^\| `([\w/]+)/` \|.*\| `(\w+\.py)` \|$", section("The tree"), re.MULTILINE))
    folders = {path.parent for top in (*TOPS, *BESIDE) for path in (ROOT / top).rglob("*.py")}
    assert set(rows) == {str(folder.relative_to(ROOT)) for folder in folders}
    assert [f"{folder}/{file}" for folder, file in rows.items() if not (ROOT / folder / file).is_file()] == []


def test_every_file_that_the_page_names_exists():
    names = re.findall(r"`((?:\w+/)+\w*(?:\.py)?|\w+\.py)`", section("Six walks") + section("Where to add what"))
    assert len(names) > 30
    assert [name for name in names if not (ROOT / name).exists()] == []
