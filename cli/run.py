"""``axonnx run``: an exported file on a recording, a live stream, frames or images; ``run_many`` takes folders."""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from axonnx.base.errors import AxonnxError
from axonnx.base.files import write_text
from axonnx.cli.options import add_fit_options, add_job_options, add_threads, call, fit_of, from_one, from_zero, origin
from axonnx.cli.run_many import run_many
from axonnx.cli.show.live_view import show
from axonnx.jobs.recording_paths import names_many
from axonnx.runtime.engines.choose import ENGINES
from axonnx.runtime.engines.interface import Engine
from axonnx.runtime.format.network_input import describe_input
from axonnx.runtime.frame_pipeline import FramePipeline, open_frames
from axonnx.runtime.model import load
from axonnx.runtime.streams.decision import Decision
from axonnx.runtime.streams.opening import open_stream
from axonnx.runtime.streams.pipeline import EventHistory, EventPipeline
from axonnx.runtime.streams.sources import is_live, open_source

EVENTS_ONLY = (
    *("format", "sensor", "crop", "origin", "stop_at", "max_events", "seconds", "tolerance_us", "on_disorder"),
    *("resize", "merge_polarities", "continuous", "windows", "every_bin", "live"),
)


def main(arguments: Sequence[str]) -> int:
    """``axonnx run``."""
    options = make_parser().parse_args(arguments)
    if options.live and options.json:
        raise AxonnxError("--live draws, --json prints objects for programs: choose one")
    if names_many(options.sources) and options.animate:
        raise AxonnxError("--animate draws one recording; give one")
    if names_many(options.sources):
        return run_many(options, options.sources)
    (options.source,) = options.sources
    if options.animate and is_live(options.source):
        raise AxonnxError(f"--animate draws a recording; {options.source} is a stream, which --live draws")
    given = [name for name in ("jobs", "cluster", "output") if getattr(options, name) not in (None, 1)]
    if given:
        raise AxonnxError(f"--{given[0]} is for many recordings; {options.source} is one")
    engine = load(options.model, options.engine, options.threads or 1).engine
    run = _frames(engine, options) if engine.program.contract.input.binning is None else _stream(engine, options)
    _print(run, engine, options)
    if options.animate:
        _animate(engine, options)
    return 0


def _animate(engine: Engine, options: argparse.Namespace) -> None:
    from axonnx.report.clip import decision_clip

    clip = decision_clip(engine.program, options.source, index=options.index, fit=fit_of(options), seed=options.seed)
    write_text(options.animate, clip)


def _print(run: EventPipeline | FramePipeline, engine: Engine, options: argparse.Namespace) -> None:
    contract = engine.program.contract
    length = contract.input.steps or 1
    decisions = _chosen(run.decisions(), options.limit)
    if isinstance(run, EventPipeline) and isinstance(run.adapter, EventHistory):
        show(decisions, run.adapter, sys.stdout)
    for decision in decisions:  # already consumed by --live
        print(json.dumps(decision.as_dict()) if options.json else _decision_line(decision, length), flush=True)
    facts = {"model": engine.program.name, "engine": engine.name, "source": options.source, **run.summary()}
    print(json.dumps({"summary": True, **facts}) if options.json else _summary_lines(facts), flush=True)
    if isinstance(run, EventPipeline) and (beyond := run.dropped().get("after")):
        advice = "--windows gives a decision for each window"
        if not run.session.progress.binned:
            advice = "none is in it: --origin first begins at the first event"
        print(
            f"axonnx run: {options.source}: {beyond:,} of {run.read:,} events lie beyond the window of the one answer "
            f"and are left out; {advice}",
            file=sys.stderr,
        )


def _chosen(decisions: Iterator[Decision], limit: int | None) -> Iterator[Decision]:
    return decisions if limit is None else itertools.islice(decisions, limit)


def _stream(engine: Engine, options: argparse.Namespace) -> EventPipeline:
    source = open_source(options.source, format_name=options.format, index=options.index, seconds=options.seconds)
    run = call(
        open_stream,
        options,
        engine=engine,
        source=source,
        fit=fit_of(options),
        tolerance_us=options.tolerance_us or 0,
        windows=bool(options.windows),
        continuous=bool(options.continuous),
        every_bin=bool(options.every_bin or options.live),
        seen=bool(options.live),
    )
    for note in run.source.notes:
        print(f"axonnx run: {run.source.name}: {note}", file=sys.stderr)
    return run


def _frames(engine: Engine, options: argparse.Namespace) -> FramePipeline:
    given = [name for name in EVENTS_ONLY if getattr(options, name) not in (None, False)]
    if given:
        taken = describe_input(engine.program.contract.input)
        raise AxonnxError(
            f"{engine.program.name}: --{given[0].replace('_', '-')} is for events; this network takes {taken} from an "
            f"npz or npy file"
        )
    return open_frames(engine, options.source, index=options.index, seed=options.seed)


def make_parser() -> argparse.ArgumentParser:
    """The options of the verb."""
    parser = argparse.ArgumentParser(
        "axonnx run",
        description="Run an exported file on events, and say what it sees.",
        epilog="SOURCE is a recording (npz, npy, csv, N-MNIST bin, AEDAT, EVT, DAT, ES, SHD), - for csv lines or "
        "16-byte records (--format records) on standard input, or udp:[HOST:]PORT for such records in datagrams. "
        "Networks of frames or images take an npz or npy file. Several, a folder, a glob or @list.txt give one answer "
        "for each recording and a summary, with the accuracy where folders are named after classes: "
        "axonnx run model.onnx data/test --jobs 4 -o answers.jsonl",
        allow_abbrev=False,
    )
    parser.add_argument("model", help="a file of axonnx export")
    parser.add_argument(
        "sources", nargs="+", metavar="SOURCE", help="where events (or frames, or images) come from; many as below"
    )
    parser.add_argument("--engine", choices=ENGINES, default="auto", help="inference engine (default: %(default)s)")
    add_threads(parser, "1, best for one recording")
    parser.add_argument("--seed", type=from_zero, default=0, help="of a stochastic file's noise (default: 0)")
    parser.add_argument("--json", action="store_true", help="one JSON object a decision, and one as summary")
    parser.add_argument("--limit", type=from_one, metavar="N", help="end after so many decisions")
    parser.add_argument("--index", type=from_zero, help="which recording of a file with many")
    _add_decision_options(parser.add_argument_group("decisions on events"))
    _add_source_options(parser.add_argument_group("events"))
    many = parser.add_argument_group("many recordings")
    add_job_options(many)
    many.add_argument(
        "-o",
        "--output",
        metavar="JSONL",
        help="a JSON object for each recording and one as summary; interrupted, the same command goes on",
    )
    return parser


def _add_decision_options(group: argparse._ArgumentGroup) -> None:
    which = group.add_mutually_exclusive_group()
    which.add_argument("--every-bin", action="store_true", default=None, help="a decision at the end of every bin")
    which.add_argument("--final-only", dest="every_bin", action="store_false", help="one a window (the default)")
    group.add_argument(
        "--windows",
        action="store_true",
        default=None,
        help="a decision for each window of a recording, as of a stream (default: one answer, of its first window)",
    )
    group.add_argument(
        "--live", action="store_true", default=None, help="draw the events and the decision as it forms (terminals)"
    )
    group.add_argument(
        "--animate", metavar="SVG", help="also write the events and the decision as it forms, as a moving picture"
    )
    group.add_argument(
        "--continuous",
        action="store_true",
        default=None,
        help="carry the state over from one window to the next",
    )
    group.add_argument("--stop-at", type=float, metavar="P", help="decide as soon as a class has this probability")
    group.add_argument(
        "--origin", type=origin, metavar="first|US", help="where the first window begins (default: as the file says)"
    )


def _add_source_options(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--format", help="file format, if it cannot be detected (required for stdin: csv or records)")
    add_fit_options(group)
    group.add_argument(
        "--tolerance-us",
        type=from_zero,
        metavar="US",
        help="put events that arrive up to US microseconds late back in order (default: 0)",
    )
    group.add_argument(
        "--on-disorder",
        choices=("refuse", "drop", "sort"),
        help="events later than that: an error (default), dropped and counted (default of udp), or the whole "
        "recording sorted",
    )
    group.add_argument("--max-events", type=from_one, metavar="N", help="read no more events")
    group.add_argument("--seconds", type=float, metavar="S", help="how long to listen to udp")


def _decision_line(decision: Decision, length: int) -> str:
    """Time, label, probability and entropy; what closes a window says so."""
    where = f"sample {decision.window:<6}" if decision.t_us is None else f"{decision.t_us / 1e6:>13.6f} s"
    width = max(len(name) for name in decision.classes)
    line = f"{where}  {decision.label:<{width}}  {100 * decision.confidence:>5.1f} %  entropy {decision.entropy:.3f}"
    if decision.mutual_information is not None:
        line += f"  mutual information {decision.mutual_information:.3f}"
    return line + _mark(decision, length)


def _mark(decision: Decision, length: int) -> str:
    if not decision.final or (decision.t_us is None and not decision.partial):
        return ""
    early = f", early, after {decision.steps} of {length} bins" if decision.early else ""
    partial = f", partly filled: the events end after {decision.ended_after} of {length} bins"
    silent = f", of {decision.windows:,} silent windows" if decision.windows > 1 else ""
    return f"  final{early}{silent}{partial if decision.partial else ''}"


def _summary_lines(facts: Mapping[str, Any]) -> str:
    """The same facts for people."""
    lines = []
    if "events" in facts:
        lines.append(f"events     {facts['events']:,} read, {facts['binned']:,} binned{_events(facts)}")
        skipped = f", {facts['bins_skipped']:,} of them skipped" if facts["bins_skipped"] else ""
        lines.append(f"bins       {facts['bins']:,}{skipped}")
    else:
        lines.append(f"samples    {facts['samples']:,}")
    lines.append(f"decisions  {facts['decisions']:,}, by the engine {facts['engine']}")
    if facts["spikes"] is not None:
        counts = ", ".join(f"{name} {count:,}" for name, count in facts["spikes"].items())
        lines.append(f"spikes     {counts} (in {facts['bins_counted']:,} bins)")
    return "\n".join(lines)


def _events(facts: Mapping[str, Any]) -> str:
    parts = [f"{count:,} {_reason(reason)}" for reason, count in facts["dropped"].items()]
    parts += [f"{facts[key]:,} {key}" for key in ("pending", "sorted", "clipped") if facts[key]]
    parts += [f"{count:,} {kind.replace('_', ' ')} skipped" for kind, count in facts["skipped"].items()]
    return "".join(f", {part}" for part in parts)


def _reason(reason: str) -> str:
    return "left out (beyond the window)" if reason == "after" else f"dropped ({reason.replace('_', ' ')})"
