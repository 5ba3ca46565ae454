"""The machine's compiler: libraries are kept by all that decides their code, in a folder of our own."""

import ctypes

import numpy as np
import pytest

from axonnx.base import c_compiler
from axonnx.base.c_compiler import find_compiler, load_library
from axonnx.base.errors import AxonnxError

needs_compiler = pytest.mark.skipif(find_compiler() is None, reason="no C compiler on this machine")
SUM = "float total(const float *x, long n) { float s = 0; for (long i = 0; i < n; i++) s += x[i]; return s; }"


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("AXONNX_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(c_compiler, "_folder", c_compiler._folder.__wrapped__)
    return tmp_path / "axonnx" / "c"


@needs_compiler
def test_c_is_compiled_once_and_found_again(cache):
    x = np.arange(5, dtype=np.float32)
    for _ in range(2):
        total = load_library(SUM).total
        total.restype = ctypes.c_float
        assert total(x.ctypes.data_as(ctypes.c_void_p), ctypes.c_long(5)) == 10
    (kept,) = cache.iterdir()
    before = kept.stat().st_mtime_ns
    load_library(SUM)
    assert kept.stat().st_mtime_ns == before
    load_library(SUM, ["-DOTHER"])
    load_library(SUM + "\n")
    assert len(list(cache.iterdir())) == 3
    assert {path.stat().st_mode & 0o777 for path in cache.iterdir()} == {0o700}


@needs_compiler
def test_a_planted_link_is_not_loaded(cache, tmp_path):
    load_library(SUM)
    (kept,) = cache.iterdir()
    kept.unlink()
    (tmp_path / "planted.so").write_bytes(b"no library")
    kept.symlink_to(tmp_path / "planted.so")
    load_library(SUM)
    assert not kept.is_symlink()
    assert (tmp_path / "planted.so").read_bytes() == b"no library"


@needs_compiler
def test_what_the_compiler_refuses_is_said(cache):
    with pytest.raises(AxonnxError, match="does not compile our C"):
        load_library("int broken(")
    assert list(cache.iterdir()) == []


def test_without_a_compiler(monkeypatch):
    monkeypatch.setattr(c_compiler, "find_compiler", lambda: None)
    with pytest.raises(AxonnxError, match="no C compiler was found"):
        load_library(SUM)
