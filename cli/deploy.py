"""The verbs that deploy: run, serve, compile."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from axonnx.base.errors import AxonnxError
from axonnx.base.files import replacing, sha256_of, write_text
from axonnx.base.plain_text import escaped, raw_stream
from axonnx.cli.guard import FAILED, FINE
from axonnx.cli.live_view import show
from axonnx.cli.options import Options
from axonnx.model import Model, Stream, load
from axonnx.runtime.jobs.answers import Question, Row, Summary, find_recordings, jobs_for, loaded, names_many
from axonnx.runtime.jobs.running import Journal, in_order, pool_for, run_jobs
from axonnx.runtime.jobs.work import Outcome, named_fault
from axonnx.runtime.measure.metrics import error_lines
from axonnx.runtime.streams.adapt import Fit
from axonnx.runtime.streams.decision import Decision, values_text
from axonnx.runtime.streams.pipeline import EventHistory, EventPipeline
from axonnx.runtime.streams.sources import is_live

WIDTH = 44  # of a recording's name
ONE_AT_A_TIME = ("live", "windows", "continuous", "every_bin", "limit", "index", "seconds", "output")


def run(options: Options) -> int:
    """``axonnx run``: one recording, a stream, frames, or many recordings."""
    if options.live and options.json == "-":
        raise AxonnxError("--live draws, --json prints objects for programs: choose one")
    if names_many(options.source):
        return run_many(options)
    (source,) = options.source
    if options.output and is_live(source):
        raise AxonnxError(f"-o draws a recording; {source} is a stream, which --live draws")
    if options.jobs != "1":
        raise AxonnxError(f"--jobs is for many recordings; {source} is one")
    model = options.load(options.path)
    stream = model.stream(**{**options.of(), "source": source})
    for note in stream.notes:
        print(f"axonnx run: {source}: {note}", file=sys.stderr)
    _print(stream, model, source, options)
    if options.output:
        from axonnx.runtime.report.clip import decision_clip

        fit = Fit.of(options.fit)
        write_text(
            options.output, decision_clip(model.program, source, index=options.index, fit=fit, seed=options.seed)
        )
    return FINE


def _print(stream: Stream, model: Model, source: str, options: Options) -> None:
    length, pipeline = model.contract.input.steps or 1, stream.pipeline
    if isinstance(pipeline, EventPipeline):
        pipeline.tell = options.progress.note
    with _writing(options.json) as write:

        def summarise() -> None:
            facts = {"model": model.program.name, "engine": model.engine.name, "source": source, **stream.summary()}
            write({"summary": True, **facts}, lambda: _summary_lines(facts))

        with _also_if_interrupted(summarise):
            if isinstance(pipeline, EventPipeline) and isinstance(pipeline.adapter, EventHistory):
                show(stream, pipeline.adapter, raw_stream(sys.stdout))
            else:
                for decision in stream:
                    write(decision.as_dict(), partial(_decision_line, decision, length))
    if isinstance(pipeline, EventPipeline) and (beyond := pipeline.dropped().get("after")):
        advice = "--windows gives a decision for each window"
        if not pipeline.session.progress.binned:
            advice = "none is in it: --origin first begins at the first event"
        print(
            f"axonnx run: {source}: {beyond:,} of {pipeline.read:,} events lie beyond the window of the one answer "
            f"and are left out; {advice}",
            file=sys.stderr,
        )


@contextmanager
def _also_if_interrupted(summarise: Callable[[], None]) -> Iterator[None]:
    """Print the summary at the end of the block, also if a signal ended it: of what is known by then."""
    try:
        yield
    except KeyboardInterrupt:
        summarise()
        raise
    summarise()


@contextmanager
def _writing(place: str | None) -> Iterator[Callable[[Mapping[str, Any], Callable[[], str]], None]]:
    """Give a function that prints a fact as text, or as JSON with --json; --json FILE writes JSON and prints text."""
    if place in (None, "-"):
        yield lambda fact, text: print(json.dumps(fact) if place == "-" else text(), flush=True)
        return
    with replacing(str(place)) as temporary, temporary.open("w", encoding="utf-8") as file:

        def write(fact: Mapping[str, Any], text: Callable[[], str]) -> None:
            print(text(), flush=True)
            print(json.dumps(fact), file=file)

        yield write


def run_many(options: Options) -> int:
    """Run the verb on many files: exit code 1 if one of them failed, 0 otherwise."""
    for name in ONE_AT_A_TIME:
        if getattr(options, name) not in (None, False):
            raise AxonnxError(f"--{name} is for one recording; many have one answer each")
    files, question = find_recordings(options.source), _question(options)
    place = str(Path(question.data, question.model))
    engine = loaded(place, question.sha256, question.engine, question.threads).engine  # faults before the work
    jobs, pool, summary = jobs_for(question, files), pool_for(options.jobs), Summary()
    with _journal(options, question) as journal:
        counted = _counted(run_jobs(jobs, pool, journal), len(jobs), journal, options)
        with _writing(options.json) as write:

            def summarise() -> None:
                facts = {"summary": True, "model": question.model, "engine": engine.name, **summary.as_dict()}
                write(facts, lambda: summary_text(facts))

            with _also_if_interrupted(summarise):
                for row in _rows(in_order(jobs, counted), summary):
                    write(row, partial(row_line, row))
        if journal is not None:
            journal.remove()
    return FAILED if summary.failed else FINE


def _counted(outcomes: Iterable[Outcome], total: int, journal: Journal | None, options: Options) -> Iterator[Outcome]:
    """Pass the outcomes on and count them; those that the journal had come first and do not change the time left."""
    before = 0 if journal is None else len(journal.done)
    options.progress.begin("recordings", total)
    for number, outcome in enumerate(outcomes):
        if outcome.fault is not None:
            options.progress.note(f"failed: {named_fault(outcome.name, outcome.fault)}")
        options.progress.step(fresh=number >= before)
        yield outcome
    options.progress.end()


def _question(options: Options) -> Question:
    """Collect what is asked of every recording."""
    return Question(
        options.path,
        sha256_of(options.path),
        data=str(Path.cwd()),
        fit=Fit.of(options.fit),
        engine=options.engine,
        threads=options.threads or 1,
        seed=options.seed,
        format=options.format,
        tolerance_us=options.reorder,
        on_disorder=options.on_disorder,
        stop_at=options.stop_at,
        origin=options.origin,
    )


def _journal(options: Options, question: Question) -> Journal | nullcontext[None]:
    """Beside the JSON file, where results are kept while they come; without a file nothing is kept."""
    if options.json in (None, "-"):
        return nullcontext()
    about = {**asdict(question), "fit": repr(question.fit), "model": Path(question.model).name}
    del about["threads"]
    return Journal(f"{options.json}.journal", about)


def _rows(outcomes: Iterable[Outcome], summary: Summary) -> Iterator[Row]:
    for outcome in outcomes:
        if outcome.fault is not None:
            summary.failed[outcome.name] = outcome.fault
            yield {"recording": outcome.name, "error": outcome.fault}
            continue
        for row in outcome.value:
            summary.add(row)
            yield row


def row_line(row: Mapping[str, Any]) -> str:
    """Return recording, label, probability and entropy, and the true class if it is known and differs."""
    number = f"[{row['index']}]" if "index" in row else ""
    name = _cut(escaped(f"{row['recording']}{number}"))
    if "error" in row:
        return f"{name:<{WIDTH}}  FAILED"
    if "values" in row:
        text = values_text(row["values"], row["units"])
        known = "" if row["true"] is None else f"  is {values_text(row['true'], row['units'])}"
        return f"{name:<{WIDTH}}  {escaped(text + known)}"
    line = f"{name:<{WIDTH}}  {row['label']:<16}{100 * row['probability']:>6.1f} %  entropy {row['entropy']:.3f}"
    if row.get("answer", row["label"]) is None:
        line += f"  unsure: {', '.join(row['possible'])}"
    wrong = row["true"] is not None and row["true"] != row["label"]
    return f"{line}  is {escaped(row['true'])}" if wrong else line


def summary_text(facts: Mapping[str, Any]) -> str:
    """Return the counts for people."""
    counts = ", ".join(f"{label} {count:,}" for label, count in facts.get("labels", {}).items())
    lines = ["", f"recordings  {facts['recordings']:,}, by the engine {facts['engine']}"]
    if facts["events"]:
        left = "".join(
            f", {count:,} left out ({reason.replace('_', ' ')})" for reason, count in facts["left_out"].items()
        )
        lines.append(f"events      {facts['events']:,}{left}")
    if "units" in facts:
        given = ", ".join(f"{name} in {unit}" if unit else name for name, unit in facts["units"].items())
        lines.append(f"values      {given}")
        errors = facts["errors"]
        lines += [] if errors is None else [f"errors      on {errors['samples']:,} whose values are known"]
        lines += [] if errors is None else error_lines([*facts["units"].items()], errors)
    else:
        lines.append(f"answers     {counts or 'none'}")
    if facts.get("accuracy") is not None:
        low, high = facts["accuracy_interval"]
        lines.append(
            f"accuracy    {100 * facts['accuracy']:.2f} % ({100 * low:.1f} – {100 * high:.1f} %): {facts['right']:,} "
            f"of {facts['labelled']:,} whose class is known"
        )
    if facts["failed"]:
        lines.append(f"failed      {len(facts['failed']):,}, tried twice:")
        lines += [f"  {named_fault(name, fault)}" for name, fault in facts["failed"].items()]
    return "\n".join(lines)


def _cut(name: str) -> str:
    return name if len(name) <= WIDTH else f"…{name[1 - WIDTH :]}"


def _decision_line(decision: Decision, length: int) -> str:
    """Time, label, probability and entropy; what closes a window says so."""
    where = f"sample {decision.window:<6}" if decision.t_us is None else f"{decision.t_us / 1e6:>13.6f} s"
    if decision.units is not None:
        return f"{where}  {decision.text}{_mark(decision, length)}"
    width = max(len(name) for name in decision.classes)
    line = f"{where}  {decision.label:<{width}}  {100 * decision.confidence:>5.1f} %  entropy {decision.entropy:.3f}"
    if decision.mutual_information is not None:
        line += f"  mutual information {decision.mutual_information:.3f}"
    if decision.answer is None:
        line += f"  unsure: {', '.join(decision.possible)}"
    return line + _mark(decision, length)


def _mark(decision: Decision, length: int) -> str:
    if not decision.final or (decision.t_us is None and not decision.partial):
        return ""
    early = f", early, after {decision.steps} of {length} bins" if decision.early else ""
    partial = f", partly filled: the events end after {decision.ended_after} of {length} bins"
    silent = f", of {decision.windows:,} silent windows" if decision.windows > 1 else ""
    return f"  final{early}{silent}{partial if decision.partial else ''}"


def _summary_lines(facts: Mapping[str, Any]) -> str:
    """Return the same facts for people."""
    lines = []
    if "events" in facts:
        lines.append(f"events     {facts['events']:,} read, {facts['binned']:,} binned{_events(facts)}")
        skipped = f", {facts['bins_skipped']:,} of them skipped" if facts["bins_skipped"] else ""
        lines.append(f"bins       {facts['bins']:,}{skipped}")
    else:
        lines.append(f"samples    {facts['samples']:,}")
    if "clock_resets" in facts:
        lines.append(f"clock      went back {facts['clock_resets']:,} times; each time a new epoch began")
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


def serve(options: Options) -> int:
    """``axonnx serve``."""
    from axonnx.runtime.serve.app import LOOPBACK
    from axonnx.runtime.serve.server import TOKEN, split_host

    host, _ = split_host(options.host)
    if host not in LOOPBACK and options.token_file is None and not os.environ.get(TOKEN):
        print(
            f"axonnx serve: {host} can be reached by others and no token is asked for (--token-file)",
            file=sys.stderr,
        )
    model = load(options.path, options.engine)

    def ready(address: str) -> None:
        engine = f"engine {model.engine.name}, {options.threads or os.cpu_count() or 1} threads"
        print(f"{model.program.name} is served at {address} ({engine}); Ctrl-C stops it", flush=True)

    print(model.serve(**options.of(), threads=options.threads, ready=ready))
    return FINE


def compile_(options: Options) -> int:
    """``axonnx compile``."""
    found = load(options.path).compile(**options.of())
    for name, size in found.files.items():
        print(f"{size:>12,}  {found.folder / name}")
    print(f"wrote {found.folder}: begin with {found.folder / 'README.md'}")
    return FINE
