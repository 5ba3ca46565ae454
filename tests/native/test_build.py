"""How the core is built: the header, the instruction sets, the wheel, and a build that finds no compiler."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

from axonnx.runtime.codegen.rows import header

from ..compilers import needs_compiler
from .building import ROOT, setup_module

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
NO_COMPILER = {"CC": "/nonexistent/cc"}
ONE_SET = {"AXONNX_MACHINE": "other"}  # of an unknown processor: plain C alone, which is built fastest
VARIABLES = ("AXONNX_WITHOUT_CORE", "AXONNX_NEEDS_CORE", "AXONNX_MACHINE", "ARCHFLAGS", "CC", "CFLAGS")

# setup.py where nothing that the package needs can be imported: a build has only setuptools.
ALONE = """
import importlib.util, sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {blocked!r}:
            raise ModuleNotFoundError(f"{{name}} is blocked", name=name)

sys.meta_path.insert(0, Refuse())
spec = importlib.util.spec_from_file_location("axonnx_setup", {path!r})
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
imported = []
sys.addaudithook(lambda event, given: imported.append(given[0]) if event == "import" else None)
sys.stdout.write(module.generated_header())
print(*(name for name in imported if name.startswith("axonnx.")), file=sys.stderr)
"""


@pytest.fixture(scope="module")
def alone():
    """The header, and the modules that it is made by, of an interpreter without all that the package needs."""
    needed = {line.split(">")[0] for line in PROJECT["project"]["dependencies"]} | {"torch", "ml_dtypes", "google"}
    code = ALONE.format(blocked=needed, path=str(ROOT / "setup.py"))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout, done.stderr.split()


def test_the_header_needs_nothing_that_the_package_needs(alone):
    assert alone[0] == header()


def test_make_builds_the_core_again_where_any_of_its_sources_changes(alone):
    listed = re.search(r"CORE_SOURCES := (.*?)\n\n", (ROOT / "Makefile").read_text("utf-8"), re.DOTALL)[1]
    made_by = {name.removeprefix("axonnx.").replace(".", "/") + ".py" for name in alone[1]}
    assert made_by == {word for word in listed.split() if word.startswith("runtime/")}
    assert "setup.py $(wildcard native/*.[ch])" in listed


@pytest.mark.parametrize(
    ("given", "compiler", "sets"),
    [
        ({"AXONNX_MACHINE": "x86_64"}, "unix", ["avx512", "avx2", "plain"]),
        ({"AXONNX_MACHINE": "AMD64"}, "msvc", ["plain"]),
        ({"AXONNX_MACHINE": "aarch64"}, "unix", ["neon", "plain"]),
        ({"AXONNX_MACHINE": "s390x"}, "unix", ["plain"]),
        ({"ARCHFLAGS": "-arch arm64"}, "unix", ["neon", "plain"]),
        ({"ARCHFLAGS": "-arch x86_64"}, "unix", ["avx512", "avx2", "plain"]),
        ({"ARCHFLAGS": "-arch arm64 -arch x86_64"}, "unix", ["plain"]),
    ],
)
def test_every_processor_has_its_instruction_sets(monkeypatch, given, compiler, sets):
    for name in ("AXONNX_MACHINE", "ARCHFLAGS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    assert list(setup_module().instruction_sets(compiler)) == sets


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """What a source distribution holds, unpacked: a build leaves nothing in the repository."""
    folder = tmp_path_factory.mktemp("build")
    copied = folder / "tree"
    ignored = shutil.ignore_patterns("__pycache__", "*.so", "*.dylib", "*.dll")
    for name in setup_module().TOPS:
        shutil.copytree(ROOT / name, copied / name, ignore=ignored)
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copied)
    done = build(copied, "sdist", "--dist-dir", str(folder))
    assert done.returncode == 0, done.stderr
    with tarfile.open(next(folder.glob("*.tar.gz"))) as archive:
        archive.extractall(folder, filter="data")
    return next(folder.glob("axonnx-*/"))


def build(folder: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    own = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    command = [sys.executable, "setup.py", *words]
    return subprocess.run(command, cwd=folder, env=own | environment, capture_output=True, text=True, check=False)


def wheel(tree: Path, target: Path, **environment: str) -> tuple[Path, str]:
    """The wheel that a build gives, and what the build said."""
    shutil.copytree(tree, target / "tree")
    done = build(target / "tree", "--quiet", "bdist_wheel", "--dist-dir", str(target), **environment)
    assert done.returncode == 0, done.stderr
    return next(target.glob("*.whl")), done.stderr


def names(path: Path) -> set[str]:
    with zipfile.ZipFile(path) as archive:
        return {name.removeprefix("axonnx/native/") for name in archive.namelist() if "axonnx/native/" in name}


def test_a_source_distribution_has_all_that_a_build_reads(tree):
    for folder, endings in (("native", "[ch]"), ("runtime/codegen", "py"), ("runtime/format", "py")):
        kept = {path.name for path in (ROOT / folder).glob(f"*.{endings}")}
        assert kept
        assert kept <= {path.name for path in (tree / folder).iterdir()}


@needs_compiler
def test_a_wheel_is_for_every_python_of_a_platform_and_brings_library_and_sources(tree, tmp_path):
    path, _ = wheel(tree, tmp_path, AXONNX_NEEDS_CORE="1", **ONE_SET)
    assert re.fullmatch(r"axonnx-[\d.]+-py3-none-(?!any)\w+\.whl", path.name)
    sources = {source.name for source in (ROOT / "native").glob("*.[ch]")}
    assert sources <= names(path)
    library = names(path) - sources - {"__init__.py", "py.typed"}
    assert len(library) == 1
    with zipfile.ZipFile(path) as archive:
        archive.extractall(tmp_path / "installed")
    code = "from axonnx import native; print(native.FOLDER, native.needed_core().isas)"
    words = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tmp_path / 'installed')!r}); {code}"]
    # Without site-packages there is no editable install that would be found instead.
    done = subprocess.run([words[0], "-S", *words[1:]], env={}, capture_output=True, text=True, check=False)
    assert done.stdout == f"{tmp_path / 'installed/axonnx/native'} ('plain',)\n", done.stderr


@pytest.mark.skipif(shutil.which("readelf") is None, reason="no readelf here; install binutils")
def test_the_library_needs_nothing_but_the_c_library():
    library = next((ROOT / "native").glob("axonnx_core.so"), None)
    if library is None:
        pytest.skip("the package was installed without its native core")
    said = subprocess.run(["readelf", "--dynamic", str(library)], capture_output=True, text=True, check=True).stdout
    assert re.findall(r"\(NEEDED\).*\[(.*)\]", said) == ["libc.so.6"]


def test_without_a_compiler_the_package_is_built_without_its_core_and_says_so_once(tree, tmp_path):
    path, said = wheel(tree, tmp_path, **NO_COMPILER)
    assert said.count("axonnx: the native core was not built (") == 1
    assert "/nonexistent/cc" in said
    assert "Install gcc or clang" in said
    assert not [name for name in names(path) if name.startswith("axonnx_core")]
    assert {"core.c", "__init__.py"} <= names(path)


def test_a_build_that_needs_its_core_fails_without_a_compiler(tree, tmp_path):
    shutil.copytree(tree, tmp_path / "tree")
    done = build(tmp_path / "tree", "--quiet", "bdist_wheel", AXONNX_NEEDS_CORE="1", **NO_COMPILER)
    assert done.returncode != 0
    assert "axonnx: the native core was not built (" in done.stderr


def test_a_core_that_is_not_wanted_is_not_built_and_the_wheel_is_for_any_platform(tree, tmp_path):
    path, said = wheel(tree, tmp_path, AXONNX_WITHOUT_CORE="1")
    assert path.name.endswith("-py3-none-any.whl")
    assert "native core was not built" not in said
    assert not [name for name in names(path) if name.startswith("axonnx_core")]
