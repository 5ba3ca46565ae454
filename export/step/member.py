"""One collapsed network of a file, with its traced step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from axonnx.export.step.module import Slot
from axonnx.export.step.trace import Trace
from axonnx.models import Network


@dataclass(frozen=True)
class Member:
    """One collapsed network with its trace; ``prefix`` keeps the names of an ensemble's members apart."""

    network: Network
    trace: Trace
    prefix: str = ""

    def slots(self, kind: Literal["states", "noises", "traces"]) -> list[Slot]:
        """Slots with the member's own layer names."""
        found: tuple[Slot, ...] = getattr(self.trace.signature, kind)
        return [Slot(self.prefix + slot.layer, slot.field, slot.shape) for slot in found]
