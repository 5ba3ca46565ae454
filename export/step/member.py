"""One collapsed network of a file, with its captured step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from axonnx.export.step.capture import Captured
from axonnx.export.step.module import Slot
from axonnx.models import Network


@dataclass(frozen=True)
class Member:
    """One collapsed network with its captured step; ``prefix`` keeps the names of an ensemble's members apart."""

    network: Network
    captured: Captured
    prefix: str = ""

    def slots(self, kind: Literal["states", "noises", "traces"]) -> list[Slot]:
        """Slots with the member's own layer names."""
        found: tuple[Slot, ...] = getattr(self.captured.signature, kind)
        return [Slot(self.prefix + slot.layer, slot.field, slot.shape) for slot in found]
