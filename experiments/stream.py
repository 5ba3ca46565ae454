"""``python -m experiments.stream FILE``: what a file decides on a stream in which one recording follows another.

Recordings are put one after the other without a pause, in random orders, as somebody would make one gesture after
another. Copies of the network begin one after the other, a part of a window apart, so that a window begins soon after
every change. Counted are

    decisions     those with at least ``least`` time steps behind them: how many name what is seen at their time
    confident     those whose probability reaches ``sure``, and how many of these are right
    latency       from the beginning of a recording to the first confident decision that is right
    false         confident decisions that name anything else, equal ones in a row counted once, a minute of the stream;
                  those within a window after a change, where the window shows both, are counted by themselves, too

All times are those of the streams. Of data sets whose times are simulated, so is every figure in seconds.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.cli.guard import FINE, guarded
from axonnx.model import load
from axonnx.runtime.events.arrays import concatenate_events
from axonnx.runtime.model import Model
from axonnx.runtime.readers import read_recordings
from axonnx.runtime.streams.adapt import Fit
from axonnx.runtime.streams.sources import FileSource

GAP_US = 1000  # between two recordings
BOOTSTRAPS = 2000


class Piece(NamedTuple):
    """A recording on the network's sensor: its events from time zero on, its class, and who was recorded."""

    events: NDArray[np.void]
    label: int
    group: int


class Said(NamedTuple):
    """A decision: when, after how many steps, what, how surely."""

    t_us: int
    steps: int
    label: int
    probability: float


@dataclass(frozen=True)
class Counted:
    """What was counted on one stream."""

    group: int
    recordings: int
    minutes: float
    decisions: int
    right: int
    confident: int
    confident_right: int
    false: int
    false_at_changes: int
    latencies: tuple[float, ...]  # seconds; of recordings without a confident decision that is right: infinite


def decided(model: Model, events: NDArray[np.void], copies: int, least: int) -> list[Said]:
    """Return all decisions of the copies on a stream, in the order of time."""
    binning = model.contract.input.binning
    assert binning is not None
    found = []
    for copy in range(copies):
        origin = int(events["t"][0]) + copy * binning.duration_us // copies
        session = model.session(seed=0, origin=origin)
        for start in range(0, len(events), CHUNK):
            found += [
                Said(int(each.t_us or 0), each.steps, each.winner, float(each.probabilities[each.winner]))
                for each in session.push(events[start : start + CHUNK])
                if each.steps >= least
            ]
    return sorted(found)


CHUNK = 200_000


def joined(pieces: Sequence[Piece]) -> tuple[NDArray[np.void], NDArray[np.int64]]:
    """Put recordings one after the other; where each begins, and where the last one ends."""
    parts, starts = [], [0]
    for piece in pieces:
        moved = piece.events.copy()
        moved["t"] += starts[-1]
        parts.append(moved)
        starts.append(int(moved["t"][-1]) + GAP_US)
    return concatenate_events(parts), np.array(starts)


def count(
    model: Model, pieces: Sequence[Piece], order: NDArray[np.int64], copies: int, least: int, sure: float
) -> Counted:
    """Run one stream and count."""
    chosen = [pieces[int(at)] for at in order]
    events, starts = joined(chosen)
    binning = model.contract.input.binning
    assert binning is not None
    said = decided(model, events, copies, least)
    seen = np.searchsorted(starts, [each.t_us - 1 for each in said], "right") - 1
    labels = np.array([piece.label for piece in chosen])
    truth = labels[np.minimum(seen, len(labels) - 1)]
    right = np.array([each.label for each in said]) == truth
    confident = np.array([each.probability for each in said]) >= sure
    since = np.array([each.t_us for each in said]) - starts[np.minimum(seen, len(labels) - 1)]
    false = at_changes = 0
    before = None
    for each, ok, is_sure, age in zip(said, right, confident, since, strict=True):
        if is_sure:
            if not ok and each.label != before:
                false += 1
                at_changes += int(age < binning.duration_us)
            before = each.label
    latencies = []
    for number in range(len(labels)):
        first = np.flatnonzero(confident & right & (seen == number))
        latencies.append(float(since[first[0]]) / 1e6 if len(first) else float("inf"))
    return Counted(
        chosen[0].group, len(chosen), float(starts[-1]) / 6e7, len(said), int(right.sum()), int(confident.sum()),
        int((confident & right).sum()), false, at_changes, tuple(latencies),
    )  # fmt: skip


def summary(counted: Sequence[Counted]) -> dict[str, object]:
    """Return the figures of several streams together, with 95 % intervals by a bootstrap over groups."""
    groups = sorted({each.group for each in counted})
    by_group = [[each for each in counted if each.group == group] for group in groups]
    random, drawn = np.random.default_rng(0), []
    for _ in range(BOOTSTRAPS if len(groups) > 1 else 0):
        taken = random.integers(0, len(groups), len(groups))
        drawn.append(_figures([each for at in taken for each in by_group[at]]))
    figures = _figures(counted)
    intervals = {
        name: [float(edge) for edge in np.quantile([each[name] for each in drawn], [0.025, 0.975], method="nearest")]
        for name in (figures if drawn else ())
    }
    return {"groups": len(groups), "streams": len(counted), **figures, "intervals": intervals}


def _figures(counted: Sequence[Counted]) -> dict[str, float]:
    total = {name: sum(getattr(each, name) for each in counted) for name in SUMS}
    latencies = np.array([latency for each in counted for latency in each.latencies])
    return {
        "recordings": total["recordings"],
        "minutes": total["minutes"],
        "accuracy": total["right"] / max(1, total["decisions"]),
        "confident": total["confident"] / max(1, total["decisions"]),
        "confident_accuracy": total["confident_right"] / max(1, total["confident"]),
        "latency_median": float(np.quantile(latencies, 0.5, method="higher")),
        "latency_90": float(np.quantile(latencies, 0.9, method="higher")),
        "never": float(np.isinf(latencies).mean()),
        "false_a_minute": total["false"] / total["minutes"],
        "false_at_changes_a_minute": total["false_at_changes"] / total["minutes"],
    }


SUMS = ("recordings", "minutes", "decisions", "right", "confident", "confident_right", "false", "false_at_changes")


def streams_of(pieces: Sequence[Piece], streams: int, length: int) -> Iterator[tuple[list[Piece], NDArray[np.int64]]]:
    """Go through each group's recordings in random orders, ``length`` of them to a stream, all if 0."""
    for group in sorted({piece.group for piece in pieces}):
        own = [piece for piece in pieces if piece.group == group]
        for number in range(streams):
            order = np.random.default_rng([group, number]).permutation(len(own))
            yield own, order[: length or None]


def begun_anywhere(pieces: Sequence[Piece], begins: int) -> Iterator[tuple[list[Piece], NDArray[np.int64]]]:
    """Go through every recording alone, ``begins`` times, each time from a random moment of its first third on."""
    for number, piece in enumerate(pieces):
        for begin in np.random.default_rng(number).random(begins):
            t = piece.events["t"]
            left = piece.events[t >= int(begin / 3 * float(t[-1]))]
            yield [piece._replace(events=_from_zero(left))], np.zeros(1, np.int64)


def from_files(model: Model, folder: Path, fit: Fit) -> list[Piece]:
    """Read recordings whose file names are numbers of classes, the first class being 1 as the publishers count."""
    entering, found = model.contract.input, []
    assert entering.binning is not None
    for path in sorted(folder.iterdir()):
        if not path.stem.isdecimal():
            continue
        for recording in read_recordings(path):
            source = FileSource(str(path), recording).sorted()
            events = fit.adapter(source, entering.binning.sensor, entering.fit)(source.recording.events)
            found.append(Piece(_from_zero(events), int(path.stem) - 1, 0))
    if not found:
        raise AxonnxError(
            f"{folder}: holds no recordings that are named by the number of their class from 1 on, as 1.bin"
        )
    return found


def from_run(run: Path, part: str) -> list[Piece]:
    """Take the recordings of a part of a run's data."""
    from axonnx.train.build import prepare
    from axonnx.train.data.recordings import Recordings
    from axonnx.train.run_folder import RunFolder

    data = prepare(RunFolder(run).config().data).splits.parts[part]
    if not isinstance(data, Recordings) or data.groups is None:
        raise AxonnxError(f"{run}: its {part} part holds no recordings of events by known people")
    return [
        Piece(_from_zero(data[number]), int(data.labels[number]), int(data.groups[number]))
        for number in range(len(data))
    ]


def _from_zero(events: NDArray[np.void]) -> NDArray[np.void]:
    moved = events.copy()
    moved["t"] -= moved["t"][0] if len(moved) else 0
    return moved


def main(words: Sequence[str] | None = None) -> int:
    """Print what a file decides on streams."""
    given = _parser().parse_args(words)
    return guarded("experiments.stream", lambda: _run(given))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m experiments.stream", description=__doc__, allow_abbrev=False,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("model", help="an exported file")
    parser.add_argument("--recordings", type=Path, help="folder of recordings named by their class from 1 on, as 3.bs2")
    parser.add_argument("--fit", nargs="*", default=[], help="as in axonnx run: swap, resize, …")
    parser.add_argument("--run", type=Path, help="the run of the file, whose data are taken instead")
    parser.add_argument("--part", default="test", help="the part of its data")
    parser.add_argument("--streams", type=int, default=3, help="random orders of each person's recordings")
    parser.add_argument("--begins", type=int, default=0, help="instead of streams: every recording alone, so often, "
                        "each time from a random moment of its first third on")  # fmt: skip
    parser.add_argument("--length", type=int, default=0, help="recordings in a stream (default: all of a person)")
    parser.add_argument("--copies", type=int, default=3, help="copies of the network, a part of a window apart")
    parser.add_argument("--least", type=int, default=16, help="fewest time steps behind a decision")
    parser.add_argument("--sure", type=float, default=0.85, help="the probability of a confident decision")
    parser.add_argument("--json", action="store_true", help="every stream and the figures as JSON")
    return parser


def _run(given: argparse.Namespace) -> int:
    model = load(given.model)
    if (given.run is None) == (given.recordings is None):
        raise AxonnxError("give either --recordings FOLDER or --run RUN")
    pieces = from_run(given.run, given.part) if given.run else from_files(model, given.recordings, Fit.of(given.fit))
    counted = [
        count(model, own, order, given.copies, given.least, given.sure)
        for own, order in (
            begun_anywhere(pieces, given.begins) if given.begins else streams_of(pieces, given.streams, given.length)
        )
    ]
    found = summary(counted)
    if given.json:
        print(json.dumps({"figures": found, "streams": [asdict(each) for each in counted]}, indent=1))
        return FINE
    intervals = found.pop("intervals")
    assert isinstance(intervals, dict)
    for name, value in found.items():
        low, high = intervals.get(name, (None, None))
        between = "" if low is None else f"   ({low:.4g} – {high:.4g})"
        print(f"{name.replace('_', ' '):<28}{value:>10.4g}{between}")
    return FINE


if __name__ == "__main__":
    sys.exit(main())
