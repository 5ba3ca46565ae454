"""``axonnx train`` and ``axonnx eval``."""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from axonnx.base.errors import AxonnxError
from axonnx.cli.options import TORCH_THREADS, add_threads, from_one, set_torch_threads
from axonnx.cli.overrides import parse_overrides
from axonnx.cli.show.training_progress import Warnings, for_terminal
from axonnx.train.config.read import settings, shipped
from axonnx.train.data.sets.registry import available
from axonnx.train.run import final_metrics, restore_run, train_run


def main(arguments: Sequence[str]) -> int:
    """``axonnx train``."""
    parser = make_parser()
    words, overrides = _split_overrides(parser, arguments)
    options, stray = parser.parse_known_args(words)
    overrides = [*stray, *overrides]
    if options.list:
        print(_listing())
        return 0
    if options.settings:
        print("\n".join(f"--{key:<34} {default:<22} {about}" for key, default, about in settings()))
        return 0
    if options.resume and options.overwrite:
        raise AxonnxError("--resume goes on with a run and --overwrite discards it: give one of them")
    if options.configuration is None and not (options.resume and options.out):
        raise AxonnxError("which configuration? Give a shipped name or a .toml file; axonnx train --list shows names")
    if options.data_root is not None:
        overrides = [*overrides, f"--data.root={json.dumps(options.data_root)}"]
    if options.resume and overrides:
        raise AxonnxError(f"--resume goes on with the settings in {options.out}/config.toml; drop {overrides[0]!r}")
    set_torch_threads(options.threads)
    done = train_run(
        options.configuration,
        options.out,
        settings=parse_overrides(overrides),
        resume=options.resume,
        overwrite=options.overwrite,
        progress=Warnings() if options.quiet else for_terminal(),
    )
    if done.metrics:
        print(metrics_table(done.metrics, done.classes))
        if not options.quiet:
            print(f"run folder: {done.folder}", file=sys.stderr)
    return 0


def main_eval(arguments: Sequence[str]) -> int:
    """``axonnx eval``."""
    parser = argparse.ArgumentParser("axonnx eval", description="Accuracy and calibration of a trained network.")
    parser.add_argument("run", help="a run folder")
    parser.add_argument("--samples", type=from_one, help="noisy passes of the Bayesian predictive (as in the run)")
    parser.add_argument("--device", help="auto, cpu, cuda, … (as in the run)")
    add_threads(parser, TORCH_THREADS)
    parser.add_argument("--json", action="store_true", help="everything as one JSON object")
    options = parser.parse_args(arguments)
    set_torch_threads(options.threads)
    config, prepared, network = restore_run(options.run, options.device)
    if options.samples is not None:
        config = config.model_copy(update={"eval_samples": options.samples})
    metrics = final_metrics(network, prepared, config)
    print(json.dumps(metrics) if options.json else metrics_table(metrics, prepared.splits.classes))
    return 0


def make_parser() -> argparse.ArgumentParser:
    """The options of the verb."""
    parser = argparse.ArgumentParser(
        "axonnx train",
        usage="axonnx train NAME|FILE.toml [--out DIR] [--section.key value …]",
        description="Train a network and leave a run folder that tells everything.",
        epilog="Every setting can be overridden, e.g. --optimiser.epochs 10 --data.values binary; "
        "axonnx train --settings lists them all with their defaults.",
        allow_abbrev=False,
    )
    parser.add_argument("configuration", nargs="?", metavar="NAME|FILE.toml", help="a shipped configuration, or a file")
    parser.add_argument("--out", help="the run folder (default: runs/NAME)")
    parser.add_argument("--data-root", help="where the data set's files are (short for --data.root)")
    parser.add_argument("--resume", action="store_true", help="go on with an interrupted run, to the same bits")
    parser.add_argument("--overwrite", action="store_true", help="discard the run that the folder holds")
    add_threads(parser, TORCH_THREADS)
    parser.add_argument("--quiet", action="store_true", help="no progress, only the result")
    parser.add_argument("--list", action="store_true", help="show shipped configurations and data sets")
    parser.add_argument("--settings", action="store_true", help="show every setting, its default and its meaning")
    return parser


def _split_overrides(parser: argparse.ArgumentParser, words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Words for the parser, and the ``--section.key value`` among them, wherever they stand."""
    known = parser._option_string_actions
    own: list[str] = []
    overrides: list[str] = []
    rest = iter(words)
    for word in rest:
        key, equals, _ = word.partition("=")
        if not word.startswith("--") or key in known:
            own.append(word)
            if key in known and known[key].nargs is None and not equals:
                own.extend(itertools.islice(rest, 1))
        else:
            overrides.extend([word] if equals else [word, *itertools.islice(rest, 1)])
    return own, overrides


def _listing() -> str:
    lines = ["configurations:"]
    lines += [f"  {name:<28}{entry['about']}" for name, entry in shipped().items()]
    lines += ["", "data sets:"]
    lines += [f"  {name:<28}{about}" for name, about in available().items()]
    return "\n".join(lines)


def metrics_table(metrics: Mapping[str, Any], classes: Sequence[str]) -> str:
    """A line for each part, and the confusion that happened most often."""
    lines = [f"{'part':<18}{'samples':>8}{'accuracy':>10}  {'95 % interval':<16}{'NLL':>8}{'ECE':>8}{'Brier':>8}"]
    for name, found in metrics.items():
        low, high = found["accuracy_interval"]
        interval = f"{100 * low:.1f} – {100 * high:.1f} %"
        lines.append(
            f"{name:<18}{found['samples']:>8}{100 * found['accuracy']:>8.1f} %  {interval:<16}"
            f"{found['nll']:>8.3f}{found['ece']:>8.3f}{found['brier']:>8.3f}"
        )
    worst = _worst_confusion(metrics.get("test", {}).get("confusion"), classes)
    return "\n".join([*lines, *([worst] if worst else [])])


def _worst_confusion(confusion: list[list[int]] | None, classes: Sequence[str]) -> str | None:
    if confusion is None:
        return None
    pairs = [
        (count, true, guess) for true, row in enumerate(confusion) for guess, count in enumerate(row) if true != guess
    ]
    count, true, guess = max(pairs, default=(0, 0, 0))
    return f"most frequent confusion: {classes[true]!r} taken for {classes[guess]!r}, {count} times" if count else None
