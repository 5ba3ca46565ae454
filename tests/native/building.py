"""``setup.py`` as a module, and libraries that are built from the core's sources by hand."""

import importlib.util
import subprocess
from pathlib import Path
from types import ModuleType

from ..compilers import find_compiler

ROOT = Path(__file__).parents[2]


def setup_module() -> ModuleType:
    """``setup.py``, imported: nothing is built."""
    spec = importlib.util.spec_from_file_location("axonnx_setup", ROOT / "setup.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def build_library(target: Path, *flags: str) -> Path:
    """Build a core of plain C alone, with more flags than the usual ones."""
    from axonnx.runtime.codegen.rows import header

    (target.parent / "generated.h").write_text(header(), "utf-8")
    sources = [str(ROOT / "native" / f"{name}.c") for name in ("run", "core", "events")]
    given = ["-std=gnu99", "-O2", "-fPIC", "-w", "-DCORE_PLAIN", "-DISA=plain", "-DHAVE_PLAIN", f"-I{target.parent}"]
    subprocess.run([find_compiler(), *given, *flags, "-shared", *sources, "-o", str(target)], check=True)
    return target
