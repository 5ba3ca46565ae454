"""Builds the native core with the package: the same C once for every instruction set of this kind of processor.

Everything else about the package is in pyproject.toml. The core is a plain shared library that is loaded by ctypes: it
knows nothing of Python, so one wheel for each platform serves every Python.

Without a C compiler the package installs without the core, and the build says so (pip shows that with -v).
AXONNX_WITHOUT_CORE=1 leaves the core out in any case; AXONNX_NEEDS_CORE=1 makes a build without it fail.
"""

import os
import platform
import re
import sys
import types
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext
from setuptools.errors import BaseError, CCompilerError

HERE = Path(__file__).parent
# The folders stand at the top of the repository and install as one package: ``api`` is axonnx itself, the others are
# below it.
TOPS = ("api", "cli", "export", "models", "native", "runtime", "train")
SUFFIX = {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")
# A product is rounded before it is added: a fused multiply-add has other bits.
FLAGS = [
    "-std=gnu99",
    "-O2",
    "-fPIC",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fvisibility=hidden",
    "-g0",
    "-w",
    "-Wno-psabi",
]
X86 = {
    "avx512": ["-mavx512f", "-mavx512bw", "-mavx512vl", "-mavx512dq", "-mavx512vnni", "-mfma"],
    "avx2": ["-mavx2"],
}
WITHOUT = """
axonnx: the native core was not built ({fault}).
axonnx: The package works without it: the engines numpy and ort give the same results, more slowly.
axonnx: Install gcc or clang and install axonnx again to get the core, or set AXONNX_WITHOUT_CORE=1 to leave it out.
"""
MACHINES = {"x86_64": X86, "amd64": X86, "aarch64": {"neon": []}, "arm64": {"neon": []}}


# On macOS, Python's own flags may ask for both kinds of processor at once, which have no instruction set in common.
if sys.platform == "darwin":
    os.environ.setdefault("ARCHFLAGS", f"-arch {platform.machine()}")


def target_machine() -> str:
    """Return the target processor; AXONNX_MACHINE names that of a cross compiler, ARCHFLAGS that of macOS."""
    kinds = set(re.findall(r"-arch\s+(\S+)", os.environ.get("ARCHFLAGS", ""))) or {platform.machine()}
    return os.environ.get("AXONNX_MACHINE", kinds.pop() if len(kinds) == 1 else "several").lower()


def instruction_sets(compiler: str) -> dict[str, list[str]]:
    """Return the instruction sets that this processor may have, with their flags; every build has plain C."""
    plain = {"plain": ["-DCORE_PLAIN"]}
    return plain if compiler == "msvc" else {**MACHINES.get(target_machine(), {}), **plain}


def generated_header() -> str:
    """``generated.h``, from the definitions of the operators; without the packages that the library needs."""
    folders = {
        "axonnx": "api",
        **{f"axonnx.{name}": name.replace(".", "/") for name in ("runtime", "runtime.codegen", "runtime.format")},
    }
    for name, folder in folders.items():
        package = types.ModuleType(name)
        package.__path__ = [str(HERE / folder)]
        sys.modules[name] = package
    from axonnx.runtime.codegen.rows import header

    for name in [name for name in sys.modules if name.split(".")[0] == "axonnx"]:
        del sys.modules[name]
    return header()


class BuildCore(build_ext):
    """One object for each instruction set, linked into one library."""

    def get_ext_filename(self, fullname: str) -> str:
        """Without a Python version: the library does not depend on one."""
        return os.path.join(*fullname.split(".")) + SUFFIX

    def build_extension(self, ext: Extension) -> None:
        """Build the core; without a compiler, say so and go on."""
        try:
            self._build(ext)
        except (BaseError, CCompilerError, OSError) as fault:
            print(WITHOUT.format(fault=fault), file=sys.stderr)
            if not ext.optional:
                raise

    def _build(self, ext: Extension) -> None:
        """Generate the header, compile, link."""
        temp = Path(self.build_temp)
        temp.mkdir(parents=True, exist_ok=True)
        (temp / "generated.h").write_text(generated_header(), encoding="utf-8")
        kind = self.compiler.compiler_type
        flags = ["/O2", "/fp:strict"] if kind == "msvc" else FLAGS
        sets = instruction_sets(kind)
        objects = []
        for isa, own in sets.items():
            for name in ("run", "training"):
                objects += self._compile(name, temp / isa, [*flags, *own, f"-DISA={isa}"], temp)
        have = [f"-DHAVE_{isa.upper()}" for isa in sets]
        for name in ("core", "events"):
            objects += self._compile(name, temp, [*flags, *have, *sets["plain"]], temp)
        target = self.get_ext_fullpath(ext.name)
        Path(target).parent.mkdir(parents=True, exist_ok=True)
        # An empty list keeps the import library that Microsoft's linker writes out of the package.
        self.compiler.link_shared_object(objects, target, build_temp=self.build_temp, export_symbols=[])

    def _compile(self, name: str, folder: Path, flags: list[str], include: Path) -> list[str]:
        given = {"include_dirs": [str(include), str(HERE / "native")], "extra_preargs": flags}
        return self.compiler.compile([str(Path("native", f"{name}.c"))], output_dir=str(folder), **given)

    def get_export_symbols(self, ext: Extension) -> list[str]:
        """None: a Python module's entry point is not among them."""
        return []


class PlatformWheel(bdist_wheel):
    """A wheel for every Python 3 on this platform."""

    def get_tag(self) -> tuple[str, str, str]:
        """For example py3-none-linux_x86_64."""
        return "py3", "none", super().get_tag()[2]


def extensions() -> list[Extension]:
    """Return the core's extension, or an empty list if the core is not wanted."""
    if os.environ.get("AXONNX_WITHOUT_CORE"):
        return []
    sources = [str(path.relative_to(HERE)) for path in sorted((HERE / "native").glob("*.c"))]
    return [Extension("axonnx.native.axonnx_core", sources, optional=not os.environ.get("AXONNX_NEEDS_CORE"))]


def package_folders() -> dict[str, str]:
    """Return every package by name, and its folder."""
    folders = sorted(
        path.parent.relative_to(HERE).as_posix() for top in TOPS for path in (HERE / top).rglob("__init__.py")
    )
    return {".".join(("axonnx", *folder.split("/"))).replace("axonnx.api", "axonnx", 1): folder for folder in folders}


if __name__ == "__main__":
    folders = package_folders()
    setup(
        packages=list(folders),
        package_dir=folders,
        ext_modules=extensions(),
        cmdclass={"build_ext": BuildCore, "bdist_wheel": PlatformWheel},
    )
