"""What an ensemble's file makes of its members' logits, by formula and in double precision.

p = mean_m softmax(logits_m);   entropy H[p] = −Σ p ln p;   mutual information H[p] − mean_m H[p_m]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

ROUNDING = 1e-5  # of softmax and logarithm in float32, which decide no spike


def check_ensemble(found: Mapping[str, NDArray[np.float32]]) -> Iterator[str]:
    """Every output of a file that is not what its ``member_logits`` [members, B, classes] give."""
    logits = found["member_logits"].astype(np.float64)
    powers = np.exp(logits - logits.max(-1, keepdims=True))
    each = powers / powers.sum(-1, keepdims=True)
    p = each.mean(0)
    expected = {"probabilities": p, "entropy": _entropy(p), "mutual_information": _entropy(p) - _entropy(each).mean(0)}
    for name, values in expected.items():
        off = ~(np.abs(found[name] - values) <= ROUNDING) if found[name].shape == values.shape else np.array([True])
        if off.any():
            yield f"output {name!r} of the file is not what its members' logits give ({int(off.sum())} of {off.size})"


def _entropy(p: NDArray[np.float64]) -> NDArray[np.float64]:
    found: NDArray[np.float64] = -(p * np.log(np.maximum(p, np.finfo(np.float64).tiny))).sum(-1)
    return found
