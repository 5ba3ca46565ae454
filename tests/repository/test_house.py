"""Where every line lives: small folders, plain names, printing in one place, and tests that mirror the tree."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOPS = ("api", "base", "cli", "experiments", "export", "models", "report", "runtime", "train")
MOST = 20
BESIDE_THE_TREE = {"fuzz", "repository", "support"}  # tests of what is no package


def folders() -> list[Path]:
    return sorted({path.parent for top in TOPS for path in (ROOT / top).rglob("*.py")})


def modules(folder: Path) -> list[str]:
    return [path.stem for path in folder.glob("*.py") if path.stem not in ("__init__", "__main__")]


def repeats(module: str, package: str) -> bool:
    """Whether a module's name says its package's again: ``report_page`` or ``reports`` in ``report``."""
    stem = package.removesuffix("s")
    return module.removesuffix("s") == stem or module.startswith((f"{stem}_", f"{package}_"))


def uses(source: str) -> set[str]:
    """Of ``argparse`` and ``print``, what a source text uses."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [node.module] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
            found |= {"argparse"} & set(names)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            found |= {"print"} & {node.func.id}
    return found


@pytest.mark.parametrize("folder", [str(path.relative_to(ROOT)) for path in folders()])
def test_a_folder_is_small_and_its_modules_do_not_repeat_its_name(folder):
    names = modules(ROOT / folder)
    assert len(names) <= MOST
    assert [name for name in names if repeats(name, Path(folder).name)] == []


def test_the_name_check_bites():
    assert repeats("report_page", "report")
    assert repeats("engine", "engines")
    assert not repeats("page", "report")
    assert not repeats("numpy_engine", "engines")


def test_only_the_command_line_prints_and_reads_words():
    paths = [path for folder in folders() for path in folder.glob("*.py") if path.relative_to(ROOT).parts[0] != "cli"]
    found = {str(path.relative_to(ROOT)): uses(path.read_text("utf-8")) for path in paths}
    assert {path: names for path, names in found.items() if names} == {}
    assert uses("import argparse\nprint(1)") == {"argparse", "print"}


def test_tests_mirror_the_tree():
    here = {path.parent.relative_to(ROOT / "tests") for path in (ROOT / "tests").rglob("test_*.py")}
    assert [
        str(path) for path in sorted(here) if path.parts[0] not in BESIDE_THE_TREE and not (ROOT / path).is_dir()
    ] == []
