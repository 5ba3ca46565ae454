"""The source of one's own network: which file ``model.network`` names, and the bytes that a run keeps of it.

Nothing is executed here. The copy in a run folder may come from somebody else, so it is handed over for execution
only if it is trusted: if the caller says so, or if the user named a file of the same bytes in this process.
"""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from axonnx.base.errors import AxonnxError
from axonnx.train.config.settings import SHIPPED_NETWORKS, Config, ModelConfig

COPY = "network.py"  # in a run folder
MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
EVERYTHING = "everything"
_TRUSTED: set[str] = set()  # sha256 of code that may run in this process


@dataclass(frozen=True)
class OwnSource:
    """The bytes of a Python file, where they were found, and the class that is the network."""

    where: str
    name: str
    code: bytes

    @property
    def sha256(self) -> str:
        """Of the bytes."""
        return hashlib.sha256(self.code).hexdigest()

    def kept_in(self, config: Config) -> Config:
        """``config`` as a run folder has it: with the name of the copy beside it, and the copy's sha256."""
        model = config.model.model_copy(update={"network": f"{COPY}:{self.name}", "network_sha256": self.sha256})
        return config.model_copy(update={"model": model})


def trust_code(folder: str | os.PathLike[str] | None = None) -> None:
    """Let this process execute the code that a run folder holds; without a folder, that of every run it opens."""
    path = None if folder is None else Path(folder) / COPY
    if path is None or path.is_file():
        _TRUSTED.add(EVERYTHING if path is None else OwnSource(str(path), "", _read(path)).sha256)


def own_source(model: ModelConfig, base: Path) -> OwnSource | None:
    """Find the source of an own network, below ``base`` first; None for a shipped network."""
    if model.network in SHIPPED_NETWORKS:
        return None
    place, _, name = model.network.rpartition(":")
    path = _file(place, base) if place.endswith(".py") else _module(place)
    source = _checked(OwnSource(str(path), name, _read(path)), model)
    _TRUSTED.add(source.sha256)  # the user named it, so its copy in a run folder needs no other word
    return source


def kept_source(model: ModelConfig, folder: Path) -> OwnSource | None:
    """Return the copy that a run folder holds of its own network's source; None for a shipped network."""
    if model.network in SHIPPED_NETWORKS:
        return None
    place, _, name = model.network.rpartition(":")
    if place != COPY or model.network_sha256 is None:
        raise AxonnxError(
            f"{folder}/config.toml: model.network is {model.network!r} with sha256 {model.network_sha256}; a run "
            f"folder names its own copy, '{COPY}:{name}', and its sha256. Restore config.toml, or train again"
        )
    path = folder / COPY
    if not path.is_file():
        raise AxonnxError(
            f"{path}: is missing; it is the code of the network {name} that this run was trained with. Restore it "
            f"(sha256 {model.network_sha256}), or train again"
        )
    source = _checked(OwnSource(str(path), name, _read(path)), model)
    if not _TRUSTED & {source.sha256, EVERYTHING}:
        raise AxonnxError(
            f"{path}: opening this run would execute this Python code, which has all your rights. Read it; if you "
            f"trust it, allow it: Run(folder, trust_code=True)",
            options=("trust_code",),
        )
    return source


def _checked(source: OwnSource, model: ModelConfig) -> OwnSource:
    if model.network_sha256 not in (None, source.sha256):
        raise AxonnxError(
            f"{source.where}: has sha256 {source.sha256[:12]}…; the run was trained with {model.network_sha256[:12]}… "
            f"(model.network_sha256). Restore that code, or train anew with the changed one and without the sha256"
        )
    return source


def _file(place: str, base: Path) -> Path:
    """Beside the configuration, or in the current folder."""
    tried = list(dict.fromkeys([base / place, Path(place)]))
    found = [path for path in tried if path.is_file()]
    if not found:
        raise AxonnxError(
            f"model.network: no file {' nor '.join(str(path) for path in tried)}; the path counts from the "
            f"configuration file's folder or from the current one"
        )
    return found[0]


def _module(place: str) -> Path:
    try:
        spec = find_spec(place) if MODULE.fullmatch(place) else None
    except (ImportError, ValueError):
        spec = None
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        raise AxonnxError(
            f"model.network: there is no Python module {place!r} with a source file; install it, or give the file: "
            f"'my_network.py:MyNet'"
        )
    return Path(spec.origin)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as fault:
        raise AxonnxError(f"{path}: cannot be read: {fault.strerror or fault}") from None
