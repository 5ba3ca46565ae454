"""Settings that fit recordings, where a user gave none."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from axonnx.train.data.recordings import Recordings

BINS = 20
ROUND = (1, 1.5, 2, 3, 4, 5, 6, 8)  # of a duration's first digits


def suggested_binning(data: Recordings, bins: int | None = None, duration_ms: float | None = None) -> dict[str, float]:
    """Bins, and a duration that nine of ten recordings fit into."""
    lengths = np.array([events["t"][-1] for events in map(data.__getitem__, range(len(data))) if len(events)], np.int64)
    return binning_for(lengths, bins, duration_ms)


def binning_for(
    lengths_us: NDArray[np.int64], bins: int | None = None, duration_ms: float | None = None
) -> dict[str, float]:
    """``data.bins`` and ``data.duration_ms`` for recordings of these lengths: a round number that divides into bins."""
    chosen = BINS if bins is None else bins
    if duration_ms is None:
        longest = float(np.quantile(lengths_us, 0.9)) / 1000 if len(lengths_us) else 1000.0
        power = 10.0 ** np.floor(np.log10(max(longest, 1.0)))
        wide = next((power * digit for digit in ROUND if power * digit >= 0.95 * longest), 10 * power)
        duration_ms = -(-round(1000 * wide) // chosen) * chosen / 1000  # whole µs in each bin
    return {"data.bins": chosen, "data.duration_ms": duration_ms}
