"""``axonnx verify``: exit 0 when the file is what was trained, 1 when it is not, 2 for wrong use."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from axonnx.base.errors import AxonnxError
from axonnx.cli.options import (
    TORCH_THREADS,
    add_job_options,
    add_result_options,
    add_threads,
    call,
    pool_or_none,
    print_results,
    set_torch_threads,
    tell_of,
)
from axonnx.cli.show.job_progress import watching
from axonnx.export.verify.shards import verify_in_shards
from axonnx.export.verify.stages import verify_file
from axonnx.runtime.format.contract import AccuracyContract
from axonnx.runtime.measure.result_files import read_result
from axonnx.runtime.measure.verify_result import Accuracy, VerifyResult
from axonnx.runtime.measure.ways import way_text

EQUAL, DIFFERENT = 0, 1
SHARDS = 8  # on a cluster


def main(arguments: Sequence[str]) -> int:
    """``axonnx verify``."""
    options = make_parser().parse_args(arguments)
    if options.merge:
        result = VerifyResult.merged([read_result(VerifyResult, path) for path in options.merge])
    elif options.model is None or options.run is None:
        raise AxonnxError("which file and which run? axonnx verify model.onnx --run RUN (or --merge a.json b.json …)")
    else:
        set_torch_threads(options.threads)
        result = _verified(options)
    print_results(options, [result], lambda: table(result))
    return EQUAL if result.verdict == "equal" else DIFFERENT


def _verified(options: argparse.Namespace) -> VerifyResult:
    pool = pool_or_none(options)
    if pool is None:
        return call(verify_file, options, shard=_shard(options.shard), tell=tell_of(options))
    if options.shard:
        raise AxonnxError("--shard is one share of the work, --jobs and --cluster do all of them: give one of the two")
    watch = None if options.quiet else watching("axonnx verify")
    shards = options.jobs if options.cluster is None else SHARDS
    settings = {name: getattr(options, name) for name in ("part", "samples", "limit", "recordings", "seed")}
    return verify_in_shards(options.model, options.run, shards, pool, watch, **settings)


def make_parser() -> argparse.ArgumentParser:
    """The options of the verb."""
    parser = argparse.ArgumentParser(
        "axonnx verify",
        description="Prove that a file is what its run was trained to be: from the training network, through the file, "
        "to the decision on a recording.",
        epilog="Without the run and without torch: axonnx verify model.onnx --engines compares all engines on one "
        "file (axonnx verify --engines --help).",
    )
    parser.add_argument("model", nargs="?", help="an exported file")
    parser.add_argument("--run", help="the run folder it was exported from")
    parser.add_argument("--part", default="test", help="which part of the data set (default: %(default)s)")
    parser.add_argument("--samples", type=int, default=64, help="samples that every implementation runs (default: 64)")
    parser.add_argument("--limit", type=int, help="samples whose decisions are compared (default: the whole part)")
    parser.add_argument(
        "--recordings", type=int, default=16, help="recordings that go from file to decision (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the noise of stochastic files")
    add_threads(parser, TORCH_THREADS)
    parser.add_argument("--shard", metavar="I/N", help="only every N-th sample, beginning with I (from 0)")
    parser.add_argument("--merge", nargs="+", metavar="JSON", help="put the results of all shards together")
    add_job_options(parser.add_argument_group("parallel execution"))
    add_result_options(parser)
    parser.add_argument("--quiet", action="store_true", help="no progress, only the result")
    return parser


def _shard(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    try:
        first, count = (int(number) for number in text.split("/"))
    except ValueError:
        raise AxonnxError(f"--shard {text!r}; expected I/N, e.g. 0/4") from None
    return first, count


def table(result: VerifyResult) -> str:
    """The result for people."""
    lines = []
    for stage in result.stages:
        lines.append(f"{'ok    ' if stage.ok else 'FAILED'} {stage.name}")
        lines += [f"         {line}" for line in stage.lines]
    if result.implementations:
        lines += ["", f"{'implementation':<36}{'samples':>8}{'spikes':>12}{'membranes':>12}{'logits':>9}  max |Δlogit|"]
        for entry in result.implementations:
            cells = [
                f"{getattr(entry, f'{key}_differing')}/{getattr(entry, key):,}"
                for key in ("spikes", "membranes", "logits")
            ]
            lines.append(
                f"{entry.name:<36}{entry.samples:>8}{cells[0]:>12}{cells[1]:>12}{cells[2]:>9}"
                f"  {entry.max_logit_difference:g}"
            )
    scores = [_score(_whose(entry), entry) for entry in result.accuracy]
    scores += [_score(f"measured again: {way_text(entry)}", entry) for entry in result.stated]
    return "\n".join([*lines, *(["", *scores] if scores else []), "", _verdict(result)])


def _whose(entry: Accuracy) -> str:
    return "training network" if entry.of == "training" else f"the file ({entry.engine})"


def _score(text: str, entry: Accuracy | AccuracyContract) -> str:
    low, high = entry.interval
    interval = f"{100 * low:.1f} – {100 * high:.1f} %"
    return f"{text:<44}{100 * entry.accuracy:>7.2f} %  ({interval}, {entry.samples} samples)"


def _verdict(result: VerifyResult) -> str:
    if result.verdict == "equal":
        compared = ", ".join(f"{count:,} {what}" for what, count in result.compared)
        return f"verified: 0 mismatches in {compared}"
    failed = [stage.name for stage in result.stages if not stage.ok]
    first = result.first_divergence
    where = "" if first is None else f"; first: layer {first.layer!r}, step {first.step}, neuron {list(first.neuron)}"
    return f"NOT VERIFIED ({', '.join(failed)}): {result.mismatches} mismatches between implementations{where}"
