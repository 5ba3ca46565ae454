"""Who may import whom: one ordered list of packages, and fresh interpreters without torch."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# A package imports from itself and from those before it. There are no exemptions.
ORDER = (
    "base",
    "native",
    "runtime.events",
    "runtime.binning",
    "runtime.readers",
    "runtime.format",
    "runtime.program",
    "runtime.codegen",
    "runtime.codegen.c",
    "runtime.codegen.js",
    "runtime.codegen.verilog",
    "runtime.engines",
    "runtime.deploy",
    "runtime.streams",
    "runtime",
    "runtime.measure",
    "runtime.report",
    "runtime.jobs",
    "runtime.serve",
    "runtime.doctor",
    "models.maths",
    "models.fast",
    "models",
    "train.data",
    "train.config",
    "train",
    "export.collapse",
    "export.graph",
    "export",
    "export.verify",
    "export.convert",
    "api",
    "cli",
    "experiments",
    "experiments.measures",
)

# What a folder must not need, at any depth.
FOREIGN = {
    "base": {"torch", "onnx", "onnxruntime", "tonic", "sklearn"},
    "runtime": {"torch", "tonic", "sklearn"},
    "runtime.report": {"matplotlib"},
    "runtime.jobs": {"matplotlib"},
    "runtime.serve": {"matplotlib", "axonnx.runtime.report", "axonnx.runtime.jobs"},
    "models": {"onnx", "onnxruntime", "tonic", "sklearn", "axonnx.runtime", "axonnx.export"},
    "train": {"onnx", "onnxruntime", "axonnx.runtime.report"},
    "experiments": {"tonic"},
}


def folder_of(package: str) -> Path:
    """The folder of a package: ``api`` is the package axonnx itself, and ``base`` stands in it."""
    return ROOT / "api/base" if package == "base" else ROOT / package.replace(".", "/")


def packages() -> set[str]:
    tops = {name.split(".")[0] for name in ORDER} - {"base"}
    found = {".".join(path.parent.relative_to(ROOT).parts) for top in tops for path in (ROOT / top).rglob("*.py")}
    return {name.removeprefix("api.") for name in found}


def imported_names(source: str) -> set[str]:
    """Every name that a source text imports, at any depth: modules, and what is taken out of them."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def package_of(name: str) -> str | None:
    """The package that an imported name lives in: ``axonnx.runtime.model.load`` is of ``runtime``."""
    top, *words = name.split(".")
    if top == "experiments":
        words = [top, *words]
    elif top != "axonnx":
        return None
    packages = (".".join(words[:end]) for end in range(len(words), 0, -1))
    return next((package for package in packages if package in ORDER), "api")  # what no package has, the front door has


def breaches(package: str, source: str) -> set[str]:
    """What a module of ``package`` imports although it may not."""
    names = imported_names(source)
    later = ORDER[ORDER.index(package) + 1 :]
    upwards = {name for name in names if package_of(name) in later}
    foreign = set().union(*(names for name, names in FOREIGN.items() if f"{package}.".startswith(f"{name}.")))
    return upwards | {name for name in names for bad in foreign if name == bad or name.startswith(bad + ".")}


def test_the_order_names_every_package():
    assert packages() == set(ORDER)


@pytest.mark.parametrize("package", ORDER)
def test_imports_go_one_way(package):
    paths = sorted(folder_of(package).glob("*.py"))
    assert paths
    found = {str(path.relative_to(ROOT)): breaches(package, path.read_text("utf-8")) for path in paths}
    assert {path: names for path, names in found.items() if names} == {}


@pytest.mark.parametrize(
    ("package", "source"),
    [
        ("runtime", "import torch"),
        ("runtime.engines", "def f():\n    from torch.nn import functional"),
        ("runtime", "from axonnx import models"),
        ("runtime.streams", "from axonnx.runtime.model import load"),
        ("models.maths", "from axonnx.models.fast import lif"),
        ("models", "from axonnx.runtime.events.arrays import EVENT"),
        ("train", "import axonnx.export"),
        ("export", "from experiments.plan import Plan"),
        ("export.collapse", "from axonnx.export.graph.translate import Body"),
        ("cli", "from experiments.perform import perform"),
        ("runtime.serve", "from axonnx.runtime.report.page import page"),
        ("runtime", "import axonnx"),
        ("export", "from axonnx import load"),
    ],
)
def test_the_import_check_bites(package, source):
    assert breaches(package, source)


def test_the_import_check_lets_the_allowed_pass():
    assert breaches("train", "import torch\nfrom axonnx.runtime.events.arrays import EVENT") == set()
    assert breaches("export", "from axonnx.export.graph.grid import on_grid") == set()


BLOCK_TORCH = """
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "torch":
            raise ModuleNotFoundError(f"{name} is blocked", name="torch")

sys.meta_path.insert(0, Refuse())
"""
VERBS_WITHOUT_TORCH = ("build", "prove", "deploy", "tools", "options", "parsers")


def run_python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def modules_without_torch() -> list[str]:
    paths = [path for folder in ("api/base", "runtime") for path in (ROOT / folder).rglob("*.py")]
    named = (".".join(path.relative_to(ROOT).with_suffix("").parts) for path in paths)
    verbs = [f"axonnx.cli.{verb}" for verb in VERBS_WITHOUT_TORCH] + [
        "axonnx.model",
        "axonnx.trained_run",
        "axonnx.loading",
    ]
    return sorted("axonnx." + name.removeprefix("api.").removesuffix(".__init__") for name in named) + verbs


def test_runtime_report_and_their_verbs_import_in_an_interpreter_without_torch():
    imports = "\n".join(f"import {name}" for name in modules_without_torch())
    done = run_python(f"{BLOCK_TORCH}\n{imports}\nassert 'torch' not in sys.modules")
    assert done.returncode == 0, done.stderr


def test_the_blocked_interpreter_bites():
    done = run_python(f"{BLOCK_TORCH}\nimport axonnx.models")
    assert done.returncode != 0
    assert "torch is blocked" in done.stderr
