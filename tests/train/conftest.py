"""Common ground of the training tests: one thread, folders of their own, data made once."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from axonnx.cli.options import settings_of
from axonnx.train import run
from axonnx.train.build import prepare
from axonnx.train.config.read import read_config

from .tiny_runs import write_config, write_data


@pytest.fixture(scope="package", autouse=True)
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def cache(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def _own_folders(cache, tmp_path, monkeypatch) -> None:
    """Neither the user's caches and data nor the place where pytest was started come into a test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.delenv("AXONNX_DATA", raising=False)
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.fixture(autouse=True)
def _no_pictures(monkeypatch) -> None:
    """Drawing takes longer than a tiny run; runs that are set up for a whole module are drawn."""
    monkeypatch.setattr(run, "draw_curves", lambda *_: False)


@pytest.fixture(scope="session")
def frames(tmp_path_factory) -> Path:
    """Sequences of frames, for spiking networks."""
    return write_data(tmp_path_factory.mktemp("data") / "frames.npz")


@pytest.fixture(scope="session")
def images(tmp_path_factory) -> Path:
    """Images, for binary networks."""
    return write_data(tmp_path_factory.mktemp("data") / "images.npz", time=False)


@pytest.fixture
def config_file(tmp_path, frames):
    """A function that writes a tiny configuration and returns its path."""
    return lambda name="tiny", **changes: write_config(tmp_path / f"{name}.toml", frames, **changes)


@pytest.fixture(scope="session")
def saccade(cache):
    """The embedded events and a small configuration for them; the camera's film is run once in a session."""
    before = os.environ.get("XDG_CACHE_HOME")
    os.environ["XDG_CACHE_HOME"] = str(cache)
    config = read_config(
        "digits-saccade", settings_of(["--data.bins", "6", "--model.hidden", "[24]", "--optimiser.epochs", "2"])
    )
    prepared = prepare(config.data)
    if before is None:
        del os.environ["XDG_CACHE_HOME"]
    else:
        os.environ["XDG_CACHE_HOME"] = before
    return config, prepared
