"""Which file a folder of code was made of: what its README ends with, and a record that says it to programs."""

from __future__ import annotations

import json
from importlib import metadata
from typing import NamedTuple

from axonnx.runtime.format.contract import Contract
from axonnx.runtime.format.network_input import describe_input
from axonnx.runtime.program.instructions import Program

RECORD = "compiled.json"  # only folders of compiled networks have it


class Origin(NamedTuple):
    """A file, and what it is to become."""

    sha256: str
    target: str

    def record(self, program: Program) -> str:
        """For programs."""
        facts = {"file": program.name, "sha256": self.sha256, "target": self.target, "axonnx": version()}
        return json.dumps(facts, indent=1) + "\n"

    def sentence(self, program: Program) -> str:
        """For people: the contract in short, and who wrote the folder."""
        return (
            f"It takes {takes(program.contract)}.\nWritten by axonnx {version()} from the file with the sha256 "
            f"{self.sha256}.\n"
        )


def takes(contract: Contract) -> str:
    """What a network takes, and how events become that."""
    entering, binning = contract.input, contract.input.binning
    told = f"{describe_input(entering)}, whole numbers up to ±{entering.largest}"
    told += f" around {entering.centre}" if entering.centre else ""
    if binning is None:
        return told
    return f"{told}: events of a {binning.sensor.width}×{binning.sensor.height} sensor in bins of {binning.bin_us:,} µs"


def version() -> str:
    """Of this package."""
    return metadata.version("axonnx")
