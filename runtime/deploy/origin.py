"""Record the file from which a folder of code was made, in its README and in a JSON file."""

from __future__ import annotations

import json
import textwrap
from importlib import metadata
from typing import NamedTuple

from axonnx.runtime.format.network_input import describe_device
from axonnx.runtime.program.instructions import Program

RECORD = "compiled.json"  # only folders of compiled networks contain it


class Origin(NamedTuple):
    """A file and the target that it is compiled for."""

    sha256: str
    target: str
    selftest: int  # the sum that the code's self-test must give

    def record(self, program: Program) -> str:
        """Return the record for programs as JSON."""
        facts = {"file": program.name, "sha256": self.sha256, "target": self.target, "axonnx": version()}
        return json.dumps(facts, indent=1) + "\n"

    def sentence(self, program: Program) -> str:
        """Return the sentences for people: what a device must send, and the origin of the folder."""
        device = textwrap.fill(describe_device(program.contract.input), 120)
        return f"{device}\n\nWritten by axonnx {version()} from the file with the sha256\n{self.sha256}.\n"


def version() -> str:
    """Return the version of this package."""
    return metadata.version("axonnx")
