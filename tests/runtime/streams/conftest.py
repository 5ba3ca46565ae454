"""Common ground of the stream tests: exported files, engines on them, one thread."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from axonnx.runtime.engines.interface import Engine
from axonnx.runtime.engines.numpy_engine import NumpyEngine
from axonnx.runtime.program.compilation import compile_file

from .small_models import export_all

BESIDE_THE_REPOSITORY = Path(__file__).resolve().parents[3].parent / "shared" / "data"


@pytest.fixture(scope="package", autouse=True)
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def files(tmp_path_factory) -> dict[str, Path]:
    return export_all(tmp_path_factory.mktemp("exported"))


@pytest.fixture(scope="session")
def engines(files) -> Callable[[str], Engine]:
    """The reference engine of a file, made once."""
    made: dict[str, Engine] = {}

    def engine(name: str) -> Engine:
        if name not in made:
            made[name] = NumpyEngine(compile_file(files[name]))
        return made[name]

    return engine


@pytest.fixture
def real() -> Callable[[str], Path]:
    """The path of a real recording; skips the test where it is not to be had."""
    folder = Path(os.environ.get("AXONNX_DATA", BESIDE_THE_REPOSITORY))

    def path(name: str) -> Path:
        if not (folder / name).exists():
            pytest.skip(f"{folder / name} is not there; set AXONNX_DATA to the folder of the real recordings")
        return folder / name

    return path


@pytest.fixture
def environment() -> dict[str, str]:
    """For fresh interpreters: one thread."""
    return {**os.environ, "OMP_NUM_THREADS": "1"}
