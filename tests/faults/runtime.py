"""Faults of what the runtime adds to a network: bins, windows, noise, sessions, decisions and engines."""

from __future__ import annotations

import pytest

from axonnx.runtime.binning.stream import Binner
from tests.faults.bench import Bench, Ended, ends


def bins_one_microsecond_late(patch: pytest.MonkeyPatch) -> None:
    """A session bins every event as if it came a microsecond later."""
    push = Binner.push

    def late(binner, events):
        moved = events.copy()
        moved["t"] += 1
        return push(binner, moved)

    patch.setattr(Binner, "push", late)


@ends(1, "a session bins events on the borders", quick=True)
def a_session_bins_one_microsecond_late(bench: Bench) -> Ended:
    """A microsecond moves no event of these recordings into another bin; the crafted ones it does."""
    return bench.verify(bench.file, bench.run, plant=bins_one_microsecond_late)
