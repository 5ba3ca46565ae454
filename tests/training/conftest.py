"""Common ground of the training tests: one thread, folders of their own, data made once."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from axonnx.train.build import prepare
from axonnx.train.configure import read_config

from .tiny_runs import tiny_tree, write_data


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

    def write(name: str = "tiny", data: Path = frames, **changes) -> str:
        lines: list[str] = []
        tree = tiny_tree(data, **changes)
        for key, value in sorted(tree.items(), key=lambda item: isinstance(item[1], dict)):
            if isinstance(value, dict):
                lines += [f"[{key}]", *(f"{inner} = {json.dumps(setting)}" for inner, setting in value.items())]
            else:
                lines.append(f"{key} = {json.dumps(value)}")
        path = tmp_path / f"{name}.toml"
        path.write_text("\n".join(lines) + "\n", "utf-8")
        return str(path)

    return write


@pytest.fixture(scope="session")
def saccade(cache):
    """The embedded events and a small configuration for them; the camera's film is run once in a session."""
    before = os.environ.get("XDG_CACHE_HOME")
    os.environ["XDG_CACHE_HOME"] = str(cache)
    config = read_config("digits-saccade", ["--data.bins", "6", "--model.hidden", "[24]", "--optimiser.epochs", "2"])
    prepared = prepare(config.data)
    if before is None:
        del os.environ["XDG_CACHE_HOME"]
    else:
        os.environ["XDG_CACHE_HOME"] = before
    return config, prepared
