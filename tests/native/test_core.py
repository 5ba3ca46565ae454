"""The native core as it is loaded: which instruction set runs, and what is said of a library that must not be used."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from axonnx import native
from axonnx.base.errors import AxonnxError
from axonnx.runtime.doctor.findings import processor

from ..compilers import needs_compiler
from .building import build_library

needs_core = pytest.mark.skipif(native.core() is None, reason="the package was installed without its native core")
ISAS = native.core().isas if native.core() else ("plain",)
# The flags with which a compiler fuses, for processors that can.
FUSES = {"fma": ["-mfma"], "asimd": []}
CAN_FUSE = [flags for name, flags in FUSES.items() if name in processor().instruction_sets]


def asked(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A fresh interpreter, for the library is loaded once in each."""
    words = [sys.executable, "-c", f"from axonnx import native\n{code}"]
    return subprocess.run(words, env={**os.environ, **environment}, capture_output=True, text=True, check=False)


def look_at(monkeypatch: pytest.MonkeyPatch, library: Path) -> native.Core | str:
    """What is found where the library is another file."""
    monkeypatch.setattr(native, "_FILE", library)
    monkeypatch.delenv("AXONNX_ISA", raising=False)
    return native.find_core.__wrapped__()


@needs_core
def test_the_best_set_runs_and_plain_c_always_can(monkeypatch):
    monkeypatch.delenv("AXONNX_ISA", raising=False)
    found = native.find_core.__wrapped__()
    assert found.isa == found.isas[0]
    assert found.isas[-1] == "plain"
    assert len(set(found.isas)) == len(found.isas)


@needs_core
@pytest.mark.parametrize("isa", ISAS)
def test_the_environment_names_another_set(isa):
    done = asked("print(native.needed_core().isa)", AXONNX_ISA=isa)
    assert (done.returncode, done.stdout) == (0, f"{isa}\n"), done.stderr


@needs_core
def test_an_empty_name_is_no_name():
    done = asked("print(native.needed_core().isa)", AXONNX_ISA="")
    assert (done.returncode, done.stdout) == (0, f"{ISAS[0]}\n"), done.stderr


@needs_core
def test_a_set_that_is_not_there_is_refused_by_name(monkeypatch):
    monkeypatch.setenv("AXONNX_ISA", "sse9")
    with pytest.raises(AxonnxError) as fault:
        native.find_core.__wrapped__()
    assert str(fault.value) == (
        f"AXONNX_ISA is 'sse9', but this processor and this build of axonnx support {', '.join(ISAS)}; use one of them"
    )


def test_without_a_library_the_reason_names_the_remedy(monkeypatch, tmp_path):
    found = look_at(monkeypatch, tmp_path / "axonnx_core.so")
    assert found == f"axonnx was installed without its native core. {native.REMEDY}"
    assert "Install a C compiler" in native.REMEDY


def test_functions_of_the_package_say_the_same(monkeypatch):
    monkeypatch.setattr(native, "find_core", lambda: "there is none, because")
    assert native.core() is None
    assert native.find_function("normals", None) is None
    with pytest.raises(AxonnxError, match="there is none, because"):
        native.needed_core()


def test_a_file_that_is_no_library_is_named(monkeypatch, tmp_path):
    (tmp_path / "axonnx_core.so").write_text("not a library")
    found = look_at(monkeypatch, tmp_path / "axonnx_core.so")
    assert isinstance(found, str)
    assert found.startswith(f"{tmp_path / 'axonnx_core.so'}: the native core cannot be loaded (")
    assert found.endswith(native.REMEDY)


@needs_compiler
def test_a_library_that_is_built_as_it_should_be_is_taken(monkeypatch, tmp_path):
    found = look_at(monkeypatch, build_library(tmp_path / "axonnx_core.so", "-ffp-contract=off"))
    assert isinstance(found, native.Core)
    assert found.isas == ("plain",)


@needs_compiler
@pytest.mark.skipif(not CAN_FUSE, reason="this processor has no fused multiply-add")
def test_a_library_whose_compiler_fuses_is_refused(monkeypatch, tmp_path):
    """The sources forbid fusing to gcc by a pragma that stands behind ``#ifndef __clang__``."""
    flags = ["-ffp-contract=fast", "-D__clang__", *CAN_FUSE[0]]
    fused = build_library(tmp_path / "axonnx_core.so", *flags)
    found = look_at(monkeypatch, fused)
    assert found == f"{fused}: its compiler fused products with additions, which changes results. {native.REMEDY}"
