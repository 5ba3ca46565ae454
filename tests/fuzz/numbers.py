"""Numbers that break things, and bytes that are nearly right."""

from __future__ import annotations

import random
import struct

INTEGERS = (0, 1, -1, 2, 3, 7, 16, 17, 127, 255, 256, -2, 1000, 65536, 2**20, 2**24, 10**9, 10**12, 2**31, 2**31 - 1)
INTEGERS += (-(2**31), 2**32, 2**40, 2**45, 2**53, 2**62, 2**63 - 1, -(2**63), -(10**12))
FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, 1e-30, 1e-45, -1e-45, 1e30, 3.4e38, -3.4e38, 2.0**24, 2.0**-24, 2.0**25)
FLOATS += (float("nan"), float("inf"), float("-inf"), 1.0000001)


def integer(rng: random.Random, now: int = 0) -> int:
    """Near the present one, or far from anything sensible; fits int64."""
    if rng.random() < 0.5:
        return max(-(2**63), min(2**63 - 1, now + rng.choice((-1, 1, 2, -2, now, -now))))
    return rng.choice(INTEGERS)


def real(rng: random.Random, now: float = 0.0) -> float:
    """Near the present one, or at an end of float32."""
    if rng.random() < 0.5:
        return now * rng.choice((-1.0, 0.5, 2.0, 3.0, 1.0001)) + rng.choice((0.0, 0.0, 0.1))
    return rng.choice(FLOATS)


def damage(rng: random.Random, data: bytes, other: bytes = b"") -> bytes:
    """Flips, cuts, splices, repeats and fills of bytes, a few at a time."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4, 16))):
        if not out:
            break
        at = rng.randrange(len(out))
        end = min(len(out), at + rng.choice((1, 2, 4, 8, 64)))
        kind = rng.randrange(7)
        if kind == 0:
            out[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            out[at] = rng.choice((0, 1, 127, 128, 255, rng.randrange(256)))
        elif kind == 2:
            del out[at:end]
        elif kind == 3:
            out[at:at] = out[at:end]
        elif kind == 4:
            out[at:end] = struct.pack("<q", integer(rng))[: end - at]
        elif kind == 5 and rng.random() < 0.3:
            del out[at:]
        elif other:
            begin = rng.randrange(len(other))
            out[at:end] = other[begin : begin + rng.choice((1, 4, 16, 256))]
    return bytes(out)
