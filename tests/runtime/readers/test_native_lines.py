"""The native pass over lines: what it takes is what the plain one gives, and what it leaves is not plain."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axonnx.runtime.readers.csv_text import FIELDS, plain_rows

from ..no_core import needs_core

pytestmark = needs_core
MOST = {"x": 65535, "y": 65535, "p": 255}
EDGES = [0, 1, 255, 256, 65535, 65536, 10**18 - 1, 10**18, 2**63 - 1, 2**63]
NUMBERS = st.one_of(st.sampled_from(EDGES), st.integers(0, 300)).map(str)
CELLS = st.one_of(
    st.builds(
        lambda before, sign, zeros, number, after: before + sign + zeros + number + after,
        st.sampled_from(["", "", " ", "\t "]),
        st.sampled_from(["", "", "", "+", "-"]),
        st.sampled_from(["", "", "0", "0000000000000000000"]),
        NUMBERS,
        st.sampled_from(["", "", " ", " \t"]),
    ),
    st.text(" \t+-0189,.ex\r\u0663", max_size=4),
)
COLUMNS = st.permutations(FIELDS).flatmap(lambda names: st.sampled_from([names, [n for n in names if n in "tx"]]))


def naive(line, columns):
    """The event of a plain line, or None."""
    cells = line.removesuffix("\r").split(",")
    if len(cells) != len(columns) or not all(re.fullmatch(r"[ \t]*[+-]?[0-9]{1,18}[ \t]*", cell) for cell in cells):
        return None
    found = {"y": 0, "p": 0} | {name: int(cell) for name, cell in zip(columns, cells, strict=True)}
    fits = all(0 <= found[name] <= most for name, most in MOST.items())
    return tuple(found[name] for name in FIELDS) if fits else None


@settings(deadline=None, max_examples=300)
@given(st.data(), COLUMNS, st.sampled_from(["\n", "\r\n"]))
def test_plain_lines_are_taken_and_no_other(data, columns, end):
    width = st.sampled_from([len(columns)] * 6 + [0, 1, len(columns) + 1])
    lines = data.draw(st.lists(width.flatmap(lambda n: st.lists(CELLS, min_size=n, max_size=n)), max_size=8))
    text = "".join(",".join(cells) + end for cells in lines) + data.draw(st.sampled_from(["", "5", "7,8", "\r"]))
    events, stop = plain_rows(text.encode(), list(columns))
    rows = text[: text.rfind("\n") + 1].split("\n")[:-1]
    expected = []
    for row in rows:
        if (event := naive(row, columns)) is None:
            break
        expected.append(event)
    assert events.tolist() == expected
    assert stop == len("".join(f"{row}\n" for row in rows[: len(expected)]).encode())


def test_events_are_written_whole():
    text = b"".join(b"%d,%d,%d,%d\n" % (t, t % 65536, (7 * t) % 65536, t % 256) for t in range(0, 10**6, 997))
    events, stop = plain_rows(text, list(FIELDS))
    t = np.arange(0, 10**6, 997)
    assert stop == len(text)
    assert (events["t"] == t).all()
    assert (events["x"] == t % 65536).all()
    assert (events["y"] == 7 * t % 65536).all()
    assert (events["p"] == t % 256).all()


@pytest.mark.parametrize(
    ("line", "plain"),
    [
        ("999999999999999999,65535,65535,255", True),
        ("-999999999999999999,0,-0,+0", True),
        ("1000000000000000000,0,0,0", False),
        ("0000000000000000001,0,0,0", False),
        ("9223372036854775808,0,0,0", False),
        ("0,65536,0,0", False),
        ("0,0,65536,0", False),
        ("0,0,0,256", False),
        ("0,-1,0,0", False),
        ("0,0,0", False),
        ("0,0,0,0,0", False),
        ("0,0,0,0,", False),
        ("0,0,+-1,0", False),
        ("0,0,,0", False),
        ("0.0,0,0", False),
        ("0;0;0;0", False),
        ("0,0 0,0,0", False),
        ("0,0,0,0\r", True),
        ("0,0,0,0\r\r", False),
        ("", False),
    ],
)
def test_the_edge_of_plain(line, plain):
    events, stop = plain_rows(f"{line}\n1,2,3,4\n".encode(), list(FIELDS))
    assert (naive(line, FIELDS) is not None) == plain
    assert len(events) == (2 if plain else 0)
    assert stop == (len(line) + 9 if plain else 0)
