"""Check that a saved session is consistent, because its numbers are used as indices later."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

import numpy as np

from axonnx.base.errors import AxonnxError
from axonnx.runtime.binning.stream import LAST_BIN, BinnerState
from axonnx.runtime.streams.session_state import SessionState

TABLES = ("progress", "binner", "outside", "tally", "spikes", "operations", "left_out")  # of counts
INT64 = range(-(2**63), 2**63)
COUNTS = range(2**62)  # 64-bit counts with room to continue


def check_session(state: SessionState, length: int, cells: int, early: bool, name: str) -> None:
    """Refuse a state whose numbers contradict each other, for windows of ``length`` bins of ``cells`` values."""
    fault = (
        _counters(asdict(state.progress), "progress")
        or _counters(state.left_out, "left_out")
        or _counters(state.epoch, "epoch")
        or _binner(state.binner, cells)
        or _arrays(state)
        or _step(state, length, early)
    )
    if fault:
        raise AxonnxError(
            f"{name}: the saved session is damaged ({fault}); continue from an earlier one, or start a new session"
        )


def _counters(value: object, where: str) -> str:
    """Return the first entry that is not a count within 62 bits, or an empty text."""
    if isinstance(value, Mapping) and where.rpartition(".")[2] in TABLES:
        return next(filter(None, (_counters(part, f"{where}.{key}") for key, part in value.items())), "")
    return "" if type(value) is int and value in COUNTS else f"{where} is {value!r}; expected a count"


def _binner(binner: BinnerState, cells: int) -> str:
    counters = {"events": binner.events, "clipped": binner.clipped, "outside": binner.outside.as_dict()}
    if fault := _counters(counters, "binner"):
        return fault
    if type(binner.bin) is not int or not 0 <= binner.bin <= LAST_BIN + 1:
        return f"its open bin is {binner.bin!r}; expected 0 to {LAST_BIN + 1}"
    if binner.origin is not None and (type(binner.origin) is not int or binner.origin not in INT64):
        return f"its origin is {binner.origin!r}; expected a 64-bit number of microseconds"
    if binner.anchor is not None and not _is_anchor(binner.anchor, binner.bin):
        return f"its bins follow {binner.anchor!r}; expected a 64-bit number of microseconds and a complete bin"
    counts = binner.counts
    if counts.shape != (cells,) or counts.dtype != np.int64 or ((counts < 0) | (counts >= COUNTS.stop)).any():
        return f"its open bin has counts {counts.dtype} {list(counts.shape)}; expected {cells} from 0 to 2⁶²"
    if type(binner.touched) is not bool or (counts.any() and not binner.touched):
        return "its open bin holds events, but is marked as empty"
    return "" if binner.origin is not None or (binner.bin, binner.touched) == (0, False) else "its origin is missing"


def _is_anchor(anchor: tuple[int, int], open_bin: int) -> bool:
    whole = len(anchor) == 2 and all(type(each) is int for each in anchor)
    return whole and anchor[0] in INT64 and 0 < anchor[1] <= open_bin


def _arrays(state: SessionState) -> str:
    wrong = [name for name, array in state.arrays.items() if array.ndim == 0 or len(array) != 1]
    return f"{wrong[0]!r} does not hold exactly one stream" if wrong else ""


def _step(state: SessionState, length: int, early: bool) -> str:
    """Check the network's step against the number k = bin mod T of complete bins of the open window.

    The network is at step k before its decision and at step T after it. It is at step 0 after whole silent windows. If
    early decisions are allowed, a network that has decided is at the step of its decision.
    """
    if type(state.step) is not int or type(state.decided) is not bool:
        return f"step is {state.step!r} and decided is {state.decided!r}; expected an integer and a boolean"
    inside = state.binner.bin % length
    expected = (range(1 if early else length, (inside or length) + 1)) if state.decided else range(inside, inside + 1)
    if state.step in expected:
        return ""
    done = f"{inside} of {length} bins of the window are complete and it has {'' if state.decided else 'not '}decided"
    return f"step is {state.step}, but {done}"
