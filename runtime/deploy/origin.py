"""Record the file from which a folder of code was made, in its README and in a JSON file."""

from __future__ import annotations

import json
from importlib import metadata
from typing import NamedTuple

from axonnx.runtime.format.contract import Contract
from axonnx.runtime.format.network_input import describe_input
from axonnx.runtime.program.instructions import Program

RECORD = "compiled.json"  # only folders of compiled networks contain it


class Origin(NamedTuple):
    """A file and the target that it is compiled for."""

    sha256: str
    target: str

    def record(self, program: Program) -> str:
        """Return the record for programs as JSON."""
        facts = {"file": program.name, "sha256": self.sha256, "target": self.target, "axonnx": version()}
        return json.dumps(facts, indent=1) + "\n"

    def sentence(self, program: Program) -> str:
        """Return the sentences for people: the contract in short, and the origin of the folder."""
        return (
            f"The network expects {takes(program.contract)}. Written by axonnx {version()} from the file with the "
            f"sha256 {self.sha256}.\n"
        )


def takes(contract: Contract) -> str:
    """Describe a network's input, and how events become it."""
    entering, binning = contract.input, contract.input.binning
    told = f"{describe_input(entering)}, whole numbers up to ±{entering.largest}"
    told += f" around {entering.centre}" if entering.centre else ""
    if binning is None:
        return told
    return f"{told}: events of a {binning.sensor.width}×{binning.sensor.height} sensor in bins of {binning.bin_us:,} µs"


def version() -> str:
    """Return the version of this package."""
    return metadata.version("axonnx")
