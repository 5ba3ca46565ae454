"""Where every line lives: plain names, printing in one place, and tests that mirror the tree."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOPS = (
    "api",
    "cli",
    "experiments",
    "export",
    "models",
    "runtime",
    "train",
)
BESIDE_THE_TREE = {"faults", "fuzz", "repository", "support", "released"}  # tests of what is no package


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


def flags(source: str) -> set[str]:
    """Options of the command line, as ``--option``, in the texts of a source; docstrings may name them."""
    tree = ast.parse(source)
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docs = {id(node.body[0].value) for node in ast.walk(tree) if isinstance(node, documented) and _is_text(node.body)}
    texts = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str))
    return {
        flag for node in texts if id(node) not in docs for flag in re.findall(r"(?<![\w-])--[a-z][\w-]*", node.value)
    }


def _is_text(body: list[ast.stmt]) -> bool:
    return bool(body) and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)


def library() -> list[Path]:
    """Every module but those of the command line."""
    return [
        path
        for folder in folders()
        for path in folder.glob("*.py")
        if path.relative_to(ROOT).parts[0] not in ("cli", "experiments")
    ]


@pytest.mark.parametrize("folder", [str(path.relative_to(ROOT)) for path in folders()])
def test_modules_do_not_repeat_the_name_of_their_folder(folder):
    assert [name for name in modules(ROOT / folder) if repeats(name, Path(folder).name)] == []


def test_the_name_check_bites():
    assert repeats("report_page", "report")
    assert repeats("engine", "engines")
    assert not repeats("page", "report")
    assert not repeats("numpy_engine", "engines")


def test_only_the_command_line_prints_and_reads_words():
    found = {str(path.relative_to(ROOT)): uses(path.read_text("utf-8")) for path in library()}
    assert {path: names for path, names in found.items() if names} == {}
    assert uses("import argparse\nprint(1)") == {"argparse", "print"}


def test_only_the_command_line_names_its_options():
    """A page has style sheets, whose names look the same, and commands to type."""
    found = {str(path.relative_to(ROOT)): flags(path.read_text("utf-8")) for path in library()}
    pages = {
        str(path.relative_to(ROOT))
        for path in library()
        if path.parent == ROOT / "runtime/report" or path == ROOT / "api/base/palette.py"
    }
    assert {path: names for path, names in found.items() if names and path not in pages} == {}


def test_the_check_of_options_bites():
    assert flags('raise AxonnxError(f"{path}: choose one with --index 0 … {last}")') == {"--index"}
    assert flags('RESTORE = "train again with --on-disorder drop"') == {"--on-disorder"}
    assert flags('def f():\n    """As --live draws it."""\n    return "a -- b, 3--4"') == set()


def test_tests_mirror_the_tree():
    here = {path.parent.relative_to(ROOT / "tests") for path in (ROOT / "tests").rglob("test_*.py")}
    assert [
        str(path) for path in sorted(here) if path.parts[0] not in BESIDE_THE_TREE and not (ROOT / path).is_dir()
    ] == []
