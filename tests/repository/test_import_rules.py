"""Who may import whom, kept by an import check over the tree and by a fresh interpreter without torch."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# A folder's own modules and the standard library are free to it; of the rest, these are not.
FORBIDDEN = {
    "models": {"axonnx.train", "axonnx.export", "axonnx.runtime", "onnx", "onnxruntime", "tonic"},
    "train": {"axonnx.export", "onnx", "onnxruntime"},
    "export": {"axonnx.train"},
    "runtime": {"torch", "axonnx.models", "axonnx.train", "axonnx.export", "tonic", "sklearn"},
    "experiments": {"tonic"},
    "cli": {"torch", "onnx", "onnxruntime", "numpy"},
}
for folder in ("models", "train", "export", "runtime"):
    FORBIDDEN[folder] |= {"axonnx.cli", "axonnx.experiments"}
FORBIDDEN["experiments"].add("axonnx.cli")

# Where compiled kernels are kept is one rule for training and running; it needs nothing else of runtime/.
SHARED = {"models/compiling.py": {"axonnx.runtime.kernel_cache", "axonnx.runtime.kernel_cache.kernel_folder"}}

# A verb of export/ begins with a run folder, which only train/ can read.
READS_RUNS = {f"export/{verb}command.py" for verb in ("", "demo_", "eval_", "profile_", "report_", "verify_")}
# And so does the proof, whose one end is the run.
READS_RUNS |= {f"export/verify/{name}.py" for name in ("structure", "recordings", "verify")}


def imported_names(source: str) -> set[str]:
    """Every module that a source text imports, at any depth."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            names |= {f"{node.module}.{alias.name}" for alias in node.names} | {str(node.module)}
    return names


def breaches(folder: str, source: str) -> set[str]:
    """What a file of ``folder`` imports although the design forbids it."""
    names = imported_names(source)
    return {name for name in names for bad in FORBIDDEN[folder] if name == bad or name.startswith(bad + ".")}


@pytest.mark.parametrize("folder", FORBIDDEN)
def test_folders_import_only_what_the_design_allows(folder):
    paths = sorted((ROOT / folder).rglob("*.py"))
    assert paths
    found = {str(path.relative_to(ROOT)): breaches(folder, path.read_text("utf-8")) for path in paths}
    found = {path: names - SHARED.get(path, set()) for path, names in found.items()}
    assert {path: names for path, names in found.items() if names and path not in READS_RUNS} == {}


@pytest.mark.parametrize(
    ("folder", "source"),
    [
        ("runtime", "import torch"),
        ("runtime", "def f():\n    from torch.nn import functional"),
        ("runtime", "from axonnx import models"),
        ("models", "from axonnx.train.loop import fit"),
        ("train", "import axonnx.export"),
        ("export", "from axonnx.experiments.plan import Plan"),
        ("cli", "import numpy as np"),
    ],
)
def test_the_import_check_bites(folder, source):
    assert breaches(folder, source)


def test_the_import_check_lets_the_allowed_pass():
    assert breaches("train", "import torch\nfrom axonnx.runtime.events import EVENT") == set()


BLOCK_TORCH = """
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "torch":
            raise ModuleNotFoundError(f"{name} is blocked", name="torch")

sys.meta_path.insert(0, Refuse())
"""


def run_python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def runtime_modules() -> list[str]:
    paths = (path.relative_to(ROOT).with_suffix("") for path in (ROOT / "runtime").rglob("*.py"))
    return sorted("axonnx." + ".".join(path.parts).removesuffix(".__init__") for path in paths)


def test_the_whole_runtime_imports_in_an_interpreter_without_torch():
    imports = "\n".join(f"import {name}" for name in runtime_modules())
    done = run_python(f"{BLOCK_TORCH}\n{imports}\nassert 'torch' not in sys.modules")
    assert done.returncode == 0, done.stderr


def test_the_blocked_interpreter_bites():
    done = run_python(f"{BLOCK_TORCH}\nimport axonnx.models")
    assert done.returncode != 0
    assert "torch is blocked" in done.stderr
