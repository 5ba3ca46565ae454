"""Native and plain decoders of binary words, and a naive third: the same events, counts and clocks in any blocks."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from axonnx.runtime.events.arrays import EVENT
from axonnx.runtime.readers import prophesee

from ..no_core import needs_core, without_core

pytestmark = needs_core
OFTEN = settings(deadline=None, max_examples=150)


def readings(bits):
    """Of a counter: about zero, half its range, its end, and 1/128 before it, where a step forward is a late one."""
    places = ((0, 3), (2 ** (bits - 1) - 2, 2 ** (bits - 1) + 2), (2**bits - 3, 2**bits - 1))
    late = 2**bits - 2 ** (bits - 7)
    return st.one_of(*(st.integers(*ends) for ends in (*places, (late - 2, late + 2))))


EVT2_WORDS = st.one_of(
    st.builds(lambda p, rest: p << 28 | rest, st.integers(0, 1), st.integers(0, 2**28 - 1)),
    readings(28).map(lambda high: 8 << 28 | high),
    st.integers(0, 2**32 - 1),
)


class NaiveClock:
    """A counter followed reading by reading."""

    def __init__(self, bits):
        self.span, self.last, self.turns = 2**bits, None, 0

    def at(self, raw):
        if self.last is not None and self.last - raw > self.span / 2:
            self.turns += 1
        elif self.last is not None and raw - self.last >= self.span - self.span // 128:
            self.turns = max(0, self.turns - 1)
        self.last = raw
        return raw + self.turns * self.span


def naive_evt2(words):
    """Events, and how many words of each kind are none."""
    clock, high, events, others = NaiveClock(28), None, [], {}
    for word in words:
        kind = word // 2**28
        if kind == 8:
            high = clock.at(word % 2**28)
        elif kind > 1:
            others[kind] = others.get(kind, 0) + 1
        elif high is None:
            others["early"] = others.get("early", 0) + 1
        else:
            events.append((high * 64 + word // 2**22 % 64, word // 2**11 % 2**11, word % 2**11, kind))
    return events, others


def pair(make):
    """The same decoder twice: in numpy, and by the native core."""
    with without_core():
        plain = make()
    fast = make()
    assert plain._native is None
    assert fast._native is not None
    return plain, fast


def shown(clock):
    return clock.bits, clock.known, clock.last, clock.turns


def blocks_of(draw, words, dtype="<u4"):
    borders = sorted(draw(st.lists(st.integers(0, len(words)), max_size=4)))
    return np.split(np.array(words, np.uint64).astype(dtype), borders)


@OFTEN
@given(st.data(), st.lists(EVT2_WORDS, max_size=60))
def test_evt2_in_three_ways(data, words):
    """Silence, words of all kinds, events before any time, clocks that wrap and come back."""
    plain, fast = pair(prophesee.Evt2Decoder)
    found = []
    for block in blocks_of(data.draw, words):
        events = plain(block)
        assert events.dtype == EVENT
        assert events.tobytes() == fast(block).tobytes()
        assert shown(plain.clock) == shown(fast.clock)
        assert (plain.counts == fast.counts).all()
        found += events.tolist()
    events, others = naive_evt2(words)
    assert found == events
    counts = dict(enumerate(plain.counts.tolist()))
    assert {("early" if kind == 16 else kind): count for kind, count in counts.items() if count} == others
    assert plain.skipped() == fast.skipped()
    assert sum(plain.skipped().values()) == sum(others.values())


@OFTEN
@given(st.data(), st.lists(st.tuples(readings(32), st.integers(0, 2**32 - 1)), max_size=60), st.sampled_from([1, 2]))
def test_dat_in_three_ways(data, records, version):
    (plain, fast), naive, found = pair(lambda: prophesee.DatDecoder(version)), NaiveClock(32), []
    for block in blocks_of(data.draw, [t << 32 | word for t, word in records], "<u8"):
        rows = np.empty(len(block), prophesee.RECORD)
        rows["t"], rows["data"] = block >> np.uint64(32), block & np.uint64(2**32 - 1)
        events = plain(rows)
        assert events.tobytes() == fast(rows).tobytes()
        assert shown(plain.clock) == shown(fast.clock)
        found += events.tolist()
    x, y = (2**bits for bits in prophesee.BITS[version])
    assert found == [(naive.at(t), w % x, w // x % y, w // (x * y) % 2) for t, w in records]
