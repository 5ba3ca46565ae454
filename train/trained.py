"""A trained run, read back from its folder: what export, verification and experiments begin with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from axonnx.base.plain_text import escaped, escaped_lines
from axonnx.models import Network
from axonnx.runtime.format.contract import InputContract, Provenance
from axonnx.runtime.measure.samples import choose_samples
from axonnx.train.build import Prepared, input_contract, make_variant
from axonnx.train.checkpoint import read_index
from axonnx.train.config.read import to_toml
from axonnx.train.config.settings import Config
from axonnx.train.loop import part_feed
from axonnx.train.run import restore_run


class Origin(Protocol):
    """What a file is made of: a network, what it is fed, and data to run it on."""

    @property
    def name(self) -> str | None:
        """The run folder, if there is one."""

    @property
    def network(self) -> Network:
        """The network as it was trained."""

    @property
    def arriving(self) -> InputContract:
        """What the network is fed."""

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes, or of real values."""

    @property
    def units(self) -> tuple[str, ...] | None:
        """The units of real values; None for classes."""

    @property
    def parts(self) -> Sequence[str]:
        """The parts of its data."""

    @property
    def bayesian(self) -> bool:
        """Whether its weights have a posterior."""

    def data(self, part: str, limit: int | None) -> Sequence[tuple[Tensor, Tensor]]:
        """Batches of a part of the data."""

    def provenance(self) -> Provenance:
        """Where a file that is made of it says that it comes from."""


@dataclass(frozen=True)
class Trained:
    """A run folder, read: its configuration, its data, its network and what the network is fed."""

    config: Config
    prepared: Prepared
    network: Network
    arriving: InputContract
    folder: Path

    def __repr__(self) -> str:
        return f"Trained({str(self.folder)!r}: {self.config.data.name}, {type(self.network).__name__})"

    @property
    def name(self) -> str:
        """The run folder."""
        return str(self.folder)

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes, or of real values."""
        return self.prepared.outputs

    @property
    def units(self) -> tuple[str, ...] | None:
        """The units of real values; None for classes."""
        return self.prepared.units

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of the data set."""
        return tuple(self.prepared.splits.parts)

    @property
    def bayesian(self) -> bool:
        """Whether its weights have a posterior."""
        return make_variant(self.config.variant).spread != "none"

    def data(self, part: str, limit: int | None) -> Sequence[tuple[Tensor, Tensor]]:
        """Batches of a part of the data set: all of it, or ``limit`` samples as ``choose_samples`` chooses them."""
        return self.samples(part, choose_samples(self.prepared.splits.parts[part].labels, limit))

    def samples(self, part: str, chosen: NDArray[np.int64]) -> Sequence[tuple[Tensor, Tensor]]:
        """Batches of these samples of a part."""
        feed = part_feed(self.prepared, self.config, torch.device("cpu"), part, chosen)
        return [(batch.x, batch.labels) for batch in feed.epoch(0)]

    def provenance(self) -> Provenance:
        """Where a file that is made of this run says that it comes from."""
        index = read_index(self.folder / "checkpoint")
        return Provenance(
            checkpoint=index["files"]["weights"]["sha256"],
            config=escaped_lines(to_toml(self.config)),
            data=escaped(self.config.data.name),
            data_digest=index["data_digest"],
            versions=index["versions"],
        )


def open_run(run: str | Path) -> Trained:
    """Read a run folder."""
    config, prepared, network = restore_run(run, "cpu")
    return Trained(config, prepared, network.eval(), input_contract(config, prepared), Path(run))
