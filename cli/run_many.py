"""``axonnx run`` on folders, globs and lists of recordings: one answer each, and what they come to."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any, TextIO

from axonnx.base.errors import AxonnxError
from axonnx.base.files import replacing
from axonnx.base.fingerprints import sha256_of
from axonnx.cli.guard import FAILED, FINE
from axonnx.cli.options import call, fit_of, pool_of
from axonnx.cli.show.job_progress import Counting
from axonnx.jobs.answers import Question, Row, Summary, jobs_for, loaded
from axonnx.jobs.journal import Journal
from axonnx.jobs.recording_paths import find_recordings
from axonnx.jobs.running import in_order, run_jobs
from axonnx.jobs.work import Outcome, named_fault

WIDTH = 44  # of a recording's name
ONE_AT_A_TIME = ("live", "windows", "continuous", "every_bin", "limit", "index", "seconds")


def run_many(options: argparse.Namespace, sources: Sequence[str]) -> int:
    """The verb on many files: exit code 1 where one of them failed, 0 otherwise."""
    for name in ONE_AT_A_TIME:
        if getattr(options, name) not in (None, False):
            raise AxonnxError(f"--{name.replace('_', '-')} is for one recording; many have one answer each")
    files = find_recordings(sources)
    question = question_of(options)
    place = str(Path(question.folder, question.model))
    engine = loaded(place, question.sha256, question.engine, question.threads).engine  # told before the work
    jobs, pool = jobs_for(question, files), pool_of(options)
    summary = Summary()
    with _journal(options, question) as journal:
        before = 0 if journal is None else len(journal.done)
        coming = Counting("axonnx run", len(jobs), before).through(run_jobs(jobs, pool, journal))
        rows = _rows(in_order(jobs, coming), summary)
        facts = {"model": question.model, "engine": engine.name}
        if options.output:
            with replacing(options.output) as temporary, temporary.open("w", encoding="utf-8") as file:
                _print(_written(rows, file), options.json)
                print(json.dumps({"summary": True, **facts, **summary.as_dict()}), file=file)
        else:
            _print(rows, options.json)
        if journal is not None:
            journal.remove()
    whole = {"summary": True, **facts, **summary.as_dict()}
    print(json.dumps(whole) if options.json else summary_text(whole), flush=True)
    return FAILED if summary.failed else FINE


def question_of(options: argparse.Namespace) -> Question:
    """What the options say."""
    return call(
        Question,
        options,
        sha256=sha256_of(options.model),
        folder=str(Path.cwd()),
        threads=options.threads or 1,
        fit=fit_of(options),
        tolerance_us=options.tolerance_us or 0,
    )


def _journal(options: argparse.Namespace, question: Question) -> Journal | nullcontext[None]:
    """Beside the output, where results are kept while they come; without an output nothing is kept."""
    if not options.output:
        return nullcontext()
    about = {**asdict(question), "fit": repr(question.fit), "model": Path(question.model).name}
    del about["threads"]
    return Journal(f"{options.output}.journal", about)


def _rows(outcomes: Iterable[Outcome], summary: Summary) -> Iterator[Row]:
    for outcome in outcomes:
        if outcome.fault is not None:
            summary.failed[outcome.name] = outcome.fault
            yield {"recording": outcome.name, "error": outcome.fault}
            continue
        for row in outcome.value:
            summary.add(row)
            yield row


def _written(rows: Iterable[Row], file: TextIO) -> Iterator[Row]:
    for row in rows:
        print(json.dumps(row), file=file)
        yield row


def _print(rows: Iterable[Row], as_json: bool) -> None:
    for row in rows:
        print(json.dumps(row) if as_json else row_line(row), flush=True)


def row_line(row: Mapping[str, Any]) -> str:
    """Recording, label, probability, entropy; the true class where it is known and another."""
    number = f"[{row['index']}]" if "index" in row else ""
    name = _cut(f"{row['recording']}{number}")
    if "error" in row:
        return f"{name:<{WIDTH}}  FAILED"
    line = f"{name:<{WIDTH}}  {row['label']:<16}{100 * row['probability']:>6.1f} %  entropy {row['entropy']:.3f}"
    wrong = row["true"] is not None and row["true"] != row["label"]
    return f"{line}  is {row['true']}" if wrong else line


def summary_text(facts: Mapping[str, Any]) -> str:
    """The counts for people."""
    counts = ", ".join(f"{label} {count:,}" for label, count in facts["labels"].items())
    lines = ["", f"recordings  {facts['recordings']:,}, by the engine {facts['engine']}"]
    if facts["events"]:
        left = "".join(
            f", {count:,} left out ({reason.replace('_', ' ')})" for reason, count in facts["left_out"].items()
        )
        lines.append(f"events      {facts['events']:,}{left}")
    lines.append(f"answers     {counts or 'none'}")
    if facts["accuracy"] is not None:
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
