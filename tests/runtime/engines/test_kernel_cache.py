"""Compiled kernels: kept where nobody else can write, under a name that every number compiled in has a part in."""

import ast
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from axonnx.base import private_folders
from axonnx.base.kernel_cache import digest, kernel_folder
from axonnx.base.private_folders import own_folder
from axonnx.models.fast import compiling
from axonnx.runtime.engines.numba import jit as numba_compile
from axonnx.runtime.kernels import jit as event_kernels

ROOT = Path(__file__).parents[3]


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_a_folder_of_our_own(tmp_path):
    folder = own_folder(tmp_path / "axonnx", "kernels")
    assert folder == tmp_path / "axonnx" / "kernels"
    assert mode(folder) == 0o700
    assert own_folder(tmp_path / "axonnx", "kernels") == folder


def test_a_folder_that_others_can_read_becomes_private(tmp_path):
    (tmp_path / "axonnx" / "kernels").mkdir(parents=True, mode=0o755)
    assert mode(own_folder(tmp_path / "axonnx", "kernels")) == 0o700


@pytest.mark.parametrize("part", ["axonnx", "axonnx/kernels"])
@pytest.mark.parametrize("how", ["link", "group", "world", "file"])
def test_a_folder_that_others_could_fill_is_not_used(part, how, tmp_path):
    target = tmp_path / "cache" / part
    target.parent.mkdir(parents=True)
    if how == "link":
        (tmp_path / "planted" / "kernels").mkdir(parents=True)
        target.symlink_to(tmp_path / "planted")
    elif how == "file":
        target.touch()
    else:
        target.mkdir()
        target.chmod(0o770 if how == "group" else 0o707)
    assert own_folder(tmp_path / "cache" / "axonnx", "kernels") is None


def test_a_folder_of_another_user_is_not_used(tmp_path, monkeypatch):
    (tmp_path / "axonnx" / "kernels").mkdir(parents=True, mode=0o700)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert own_folder(tmp_path / "axonnx", "kernels") is None


def test_a_folder_that_another_user_could_replace_is_not_used(tmp_path):
    tmp_path.chmod(0o777)
    assert own_folder(tmp_path / "axonnx", "kernels") is None
    tmp_path.chmod(0o1777)  # as the system's temporary folder: names there belong to who made them
    assert own_folder(tmp_path / "axonnx", "kernels") is not None


def test_a_planted_folder_in_the_temporary_one_is_passed_by(tmp_path, monkeypatch):
    (tmp_path / "no folder").touch()
    (tmp_path / "planted").mkdir()
    (tmp_path / f"axonnx-{os.geteuid()}").symlink_to(tmp_path / "planted")
    monkeypatch.setenv("AXONNX_CACHE_DIR", str(tmp_path / "no folder"))
    monkeypatch.setattr(private_folders.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(private_folders.tempfile, "tempdir", str(tmp_path))
    folder = kernel_folder.__wrapped__(numba_compile.sources())
    assert folder.parent == tmp_path
    assert folder.name.startswith("axonnx-")
    assert not folder.is_symlink()
    assert mode(folder) == 0o700
    assert list((tmp_path / "planted").iterdir()) == []


def imported_here(path):
    """The files of axonnx that a module takes names from."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("axonnx."):
            words = [[*str(node.module).split(".")[1:], alias.name] for alias in node.names]
            modules = [ROOT.joinpath(*parts).with_suffix(".py") for parts in words]
            found |= {path if path.exists() else path.parent.with_suffix(".py") for path in modules}
    return found


@pytest.mark.parametrize(
    "sources",
    [numba_compile.sources(), compiling.sources(), event_kernels.sources()],
    ids=["engine", "models", "events"],
)
def test_every_file_that_kernels_take_numbers_from_is_in_the_key(sources):
    kernels = [path for path in sources if "@compiled" in path.read_text("utf-8")]
    assert kernels
    aside = {ROOT / "base" / "kernel_cache.py"}  # says where, not what
    helpers = [path for path in sources if path.parent.name in ("numba", "kernels")]
    for path in {*kernels, *helpers}:
        assert imported_here(path) - aside <= set(sources), path.name


@pytest.mark.parametrize("folder", ["runtime", "models"])
def test_every_file_with_kernels_is_in_the_key(folder):
    sources = set(compiling.sources() if folder == "models" else numba_compile.sources() + event_kernels.sources())
    with_kernels = {p for p in (ROOT / folder).rglob("*.py") if re.search(r"^@compiled\b", p.read_text("utf-8"), re.M)}
    assert with_kernels
    assert with_kernels <= sources


def test_another_number_is_another_key(tmp_path):
    copy = tmp_path / "normal_table.py"
    copy.write_text("DEGREE = 5\n")
    before = digest([copy])
    copy.write_text("DEGREE = 6\n")
    assert digest([copy]) != before


WHERE = """
from axonnx.models.fast import lif_kernels
from axonnx.runtime.engines.numba import interpreter as numba_interpreter
print(lif_kernels.forward._cache.cache_path)
print(numba_interpreter.run._cache.cache_path)
"""


def test_one_variable_says_where_all_kernels_are(tmp_path):
    environment = {**os.environ, "AXONNX_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", WHERE], capture_output=True, text=True, check=True, env=environment)
    training, running = (Path(line) for line in done.stdout.splitlines())
    assert training.is_relative_to(tmp_path / "axonnx")
    assert running.is_relative_to(tmp_path / "axonnx")
    assert training.parts[len(tmp_path.parts) + 1] != running.parts[len(tmp_path.parts) + 1]
