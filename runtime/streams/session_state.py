"""The state of a session as a value that can be written to a file and read again."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.base.files import replacing
from axonnx.base.numpy_files import UNREADABLE, checked_arrays
from axonnx.runtime.binning.rules import Outside
from axonnx.runtime.binning.stream import BinnerState
from axonnx.runtime.program.instructions import Program
from axonnx.runtime.streams.tally import Tally

FORMAT = 1
COUNTED = ("spikes", "operations")
NETWORK = "network/"  # prefix of the names of the network's arrays


@dataclass(frozen=True)
class Progress:
    """Counters of a stream's events and bins."""

    events: int = 0
    outside: Outside = field(default_factory=Outside)
    counted: int = 0  # sum of the frames of all complete bins
    clipped: int = 0  # events that clipping removed from them
    bins: int = 0  # complete
    decisions: int = 0
    tally: Tally = field(default_factory=Tally)

    @property
    def binned(self) -> int:
        """Events in complete bins. After a flush, events = binned + outside."""
        return self.counted + self.clipped


@dataclass(frozen=True)
class SessionState:
    """A session between two chunks."""

    identity: Mapping[str, object]  # the network and the options that it belongs to
    binner: BinnerState
    step: int
    arrays: Mapping[str, NDArray[np.float32]]
    decided: bool
    progress: Progress
    left_out: Mapping[str, int] = field(default_factory=dict)  # events that were dropped before the session, by reason
    epoch: int = 0  # how often the clock of the source went back
    delivery: Mapping[str, Any] = field(default_factory=dict)  # of a server: decisions that are not acknowledged

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the state to an npz file. The file is complete, or not there at all."""
        binner = {key: value for key, value in vars(self.binner).items() if key not in ("counts", "outside")}
        if binner["anchor"] is None:
            del binner["anchor"]  # as before the field was added
        facts = {
            "format": FORMAT,
            "identity": dict(self.identity),
            "binner": {**binner, "outside": self.binner.outside.as_dict()},
            "step": self.step,
            "decided": self.decided,
            "progress": asdict(self.progress),
            **({"left_out": dict(self.left_out)} if any(self.left_out.values()) else {}),
            **({"delivery": dict(self.delivery)} if self.delivery else {}),
            **({"epoch": self.epoch} if self.epoch else {}),
        }
        arrays: dict[str, Any] = {NETWORK + name: array for name, array in self.arrays.items()}
        with replacing(path) as temporary, temporary.open("wb") as file:
            np.savez(file, allow_pickle=False, facts=np.array(json.dumps(facts)), counts=self.binner.counts, **arrays)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> SessionState:
        """Read a file that ``write`` wrote.

        Raises:
            AxonnxError: If the file is not a saved session of this format.
        """
        path = Path(path)
        try:
            arrays = checked_arrays(path)
            return cls._of(json.loads(str(arrays.pop("facts"))), arrays)
        except (*UNREADABLE, AttributeError) as fault:
            raise AxonnxError(
                f"{path}: is not a saved session of format {FORMAT} ({type(fault).__name__}: {fault}). Save the "
                f"session again"
            ) from None

    @classmethod
    def _of(cls, facts: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> SessionState:
        if facts.pop("format") != FORMAT:
            raise ValueError("another format")
        binner, progress = facts.pop("binner"), facts.pop("progress")
        anchor = binner.pop("anchor", None)
        optional = [facts.get(name, {}) for name in ("left_out", "delivery")]
        tables = (facts["identity"], *optional, *map(progress["tally"].get, COUNTED))
        if not all(isinstance(part, dict) for part in tables):
            raise ValueError("another layout")
        return cls(
            binner=BinnerState(
                **{**binner, "outside": Outside(**binner["outside"]), "counts": arrays.pop("counts")},
                anchor=None if anchor is None else tuple(anchor),
            ),
            arrays={name.removeprefix(NETWORK): array for name, array in arrays.items()},
            progress=Progress(
                **{**progress, "outside": Outside(**progress["outside"]), "tally": Tally(**progress["tally"])}
            ),
            **facts,
        )


@lru_cache(maxsize=1)  # a server's thousand sessions share one network
def fingerprint(program: Program) -> str:
    """Return the sha256 of a network's contract and all its numbers; the file name does not matter."""
    digest = hashlib.sha256(program.contract.model_dump_json().encode())
    for name in sorted(program.constants):
        digest.update(f"\n{name} {program.constants[name].shape}\n".encode())
        digest.update(np.ascontiguousarray(program.constants[name]).tobytes())
    return digest.hexdigest()
