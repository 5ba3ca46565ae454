"""The verbs that build: train, sweep, data, export, import."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.base.files import write_text
from axonnx.cli.guard import FAILED, FINE
from axonnx.cli.live_view import picture_rows
from axonnx.cli.options import Options, set_torch_threads
from axonnx.loading import describe_data
from axonnx.model import Model
from axonnx.runtime.format.network_input import describe_input
from axonnx.runtime.measure.inspection import way_text
from axonnx.trained_run import Run, import_network

if TYPE_CHECKING:
    from axonnx.export.convert.importing import Imported
    from axonnx.runtime.format.contract import AccuracyContract, Contract, Way
    from axonnx.train.looking import Look
    from axonnx.train.sweeping import SweepPoint, SweepResult

SHOWN = 4  # classes that are drawn in a terminal
NOTABLE, BAD = 0.01, 0.05  # of the test samples
NOISY = (
    "its weights were not trained to be drawn: export with --collapse mfa, let σ shrink after training "
    "(--noise.temper 0.01), or train with noise (--variant.fire sample) and every batch in turn without "
    "(--noise.mean_field 0.5)"
)
TRAINED = (
    "train with noise that falls to zero (--noise.anneal 0.5), or with a closing mean-field phase (--finetune.epochs 3)"
)


def train(options: Options) -> int:
    """``axonnx train``."""
    if options.list:
        print(_listing())
        return FINE
    if options.given.settings:
        from axonnx.train.config.read import settings

        print("\n".join(f"--{key:<34} {default:<22} {about}" for key, default, about in settings()))
        return FINE
    if options.configuration is None and not (options.resume and options.output):
        raise AxonnxError("which configuration? Give a shipped name or a .toml file; axonnx train --list shows names")
    set_torch_threads(options.threads)
    done = Run.train(**options.of(), settings=options.settings, progress=options.progress)
    if done.leads:
        print(metrics_table(done.metrics, done.classes))
        if not options.quiet:
            print(f"run folder: {done.folder}", file=sys.stderr)
    return FINE


def _listing() -> str:
    from axonnx.train.config.read import shipped
    from axonnx.train.data.registry import available

    lines = ["configurations:"]
    lines += [f"  {name:<28}{entry['about']}" for name, entry in shipped().items()]
    lines += ["", "data sets:"]
    lines += [f"  {name:<28}{about}" for name, about in available().items()]
    return "\n".join(lines)


def metrics_table(metrics: Mapping[str, Any], classes: Sequence[str]) -> str:
    """Return a line for each part, and the confusion that happened most often; or the errors of real values."""
    if any("rmse" in found for found in metrics.values()):
        return "\n".join(_value_rows(metrics, classes))
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


def _value_rows(metrics: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    lines = [f"{'part':<18}{'samples':>8}  {'value':<14}{'MAE':>10}{'RMSE':>10}  {'95 % interval':<20}{'R²':>8}"]
    for part, found in metrics.items():
        for number, name in enumerate(names):
            low, high = found["intervals"]["rmse"][number]
            mae, rmse, r2 = (found[figure][number] for figure in ("mae", "rmse", "r2"))
            interval = f"{low:.4g} – {high:.4g}"
            lines.append(
                f"{part:<18}{found['samples']:>8}  {name:<14}{mae:>10.4g}{rmse:>10.4g}  {interval:<20}{r2:>8.3f}"
            )
    return lines


def _worst_confusion(confusion: list[list[int]] | None, classes: Sequence[str]) -> str | None:
    if confusion is None:
        return None
    pairs = [
        (count, true, guess) for true, row in enumerate(confusion) for guess, count in enumerate(row) if true != guess
    ]
    count, true, guess = max(pairs, default=(0, 0, 0))
    return f"most frequent confusion: {classes[true]!r} taken for {classes[guess]!r}, {count} times" if count else None


def data(options: Options) -> int:
    """``axonnx data``."""
    look = describe_data(**options.of())
    if options.output:
        draw(look, options.output)
    if options.json:
        text = json.dumps(facts(look))
        print(text) if options.json == "-" else write_text(options.json, text)
    if options.json == "-":
        return FINE
    print("\n".join(_lines(look)))
    for label in [*look.pictures][:SHOWN] if sys.stdout.isatty() else []:
        rows = picture_rows(look.pictures[label][0])
        print(f"\n{label}: events from the middle of a recording (brighter, darker, both)", *rows, sep="\n")
    if options.output:
        print(f"\nwrote {options.output}: samples of {len(look.pictures)} classes; open it in a browser")
    print(f"\nit cannot be trained on: {look.fault}" if look.fault else f"\nto train on it:\n  {command(look)}")
    return FINE


def draw(look: Look, output: str) -> None:
    """Draw samples of each class into an SVG file."""
    from axonnx.runtime.report.pictures import contact_sheet

    if not output.endswith(".svg"):
        raise AxonnxError(
            f"{output}: samples are drawn as SVG; name the file {output.rpartition('.')[0] or output}.svg"
        )
    if not look.pictures:
        raise AxonnxError(f"{look.name}: has no sample to draw")
    write_text(output, contact_sheet(look.name, look.pictures))


def command(look: Look) -> str:
    """Return a command that trains on this data."""
    plain = {key: "unset" if v is None else f"{v:g}" if isinstance(v, float) else str(v)
             for key, v in look.settings().items()}  # fmt: skip
    words = [f"--{key} {shlex.quote(value)}" for key, value in plain.items()]
    return " ".join(["axonnx train", look.configuration, *words, "-o runs/mine"])


def facts(look: Look) -> dict[str, object]:
    """For other programs."""
    keys = ("name", "kind", "classes", "recordings", "read", "formats", "sensor", "reaches", "shape", "notes")
    found: dict[str, object] = {key: getattr(look, key) for key in keys}
    if look.kind == "events":
        found |= {"length_us": _quartiles(look.lengths), "events": _quartiles(look.events), "brighter": look.brighter}
    return {**found, "configuration": look.configuration, "settings": look.settings(), "fault": look.fault}


def _quartiles(values: NDArray[np.int64]) -> list[float]:
    """Least, median, largest."""
    return [float(np.quantile(values, q)) for q in (0.0, 0.5, 1.0)] if len(values) else []


def _lines(look: Look) -> list[str]:
    some = "" if look.read >= look.recordings else f", of which {look.read} were read"
    lines = [f"{look.name}: {look.kind}, {len(look.classes)} classes, {look.recordings:,} samples{some}"]
    if look.kind == "events":
        lines += _of_events(look)
    else:
        lines.append(f"  shape         {list(look.shape or ())}")
    most = max(len(name) for name in look.classes)
    lines += [f"  class {name:<{most}}  {count:>6}" for name, count in look.classes.items()]
    return [*lines, *(f"  note: {note}" for note in look.notes)]


def _of_events(look: Look) -> list[str]:
    width, height = look.size
    stated = "as the files state"
    if look.sensor is None:
        stated = f"not stated in all files; events reach {look.reaches[0]}×{look.reaches[1]}"
    lines = [
        f"  formats       {', '.join(f'{name} ({count})' for name, count in look.formats.items())}",
        f"  sensor        {width}×{height}, {stated}",
    ]
    if len(look.events) == 0:
        return lines
    low, middle, high = (value / 1000 for value in _quartiles(look.lengths))
    few, usual, many = _quartiles(look.events)
    rate = usual / max(middle, 1e-9) * 1000
    return [
        *lines,
        f"  length        {low:,.1f} … {high:,.1f} ms, median {middle:,.1f}",
        f"  events        {few:,.0f} … {many:,.0f} in a recording, median {usual:,.0f}; {rate:,.0f} a second, "
        f"{rate / (width * height):.3g} a second and pixel; {100 * look.brighter:.0f} % brighter",
    ]


def export(options: Options) -> int:
    """``axonnx export``."""
    set_torch_threads(options.threads)
    output = Path(options.output)
    if options.folder.endswith(".onnx"):
        if output.suffix != ".nir":
            raise AxonnxError(f"{options.folder}: is exported already; -o NAME.nir writes it as a NIR graph")
        print(_wrote_nir(options.load(options.folder).save(output, dt=options.dt), options.dt))
        return FINE
    model = Run(options.folder).export(**options.of(), progress=options.progress)
    print(_export_report(model, options.folder))
    if output.suffix == ".nir":
        print(_wrote_nir(output, options.dt))
    collapse, scores = model.contract.collapse, model.contract.accuracy
    if scores and (text := advice(scores, collapse.mode, collapse.calibrated)) is not None:
        print(f"\n{text}", file=sys.stderr)
    return FINE


def _export_report(model: Model, run: str) -> str:
    found, contract = model.inspect(), model.contract
    members = contract.collapse.members
    lines = [f"{'synapse':<34}{'weights':>9}{'zeros':>8}{'grid':>8}{'largest sum':>13}"]
    for each in found.certificates[: len(found.certificates) // members]:
        zeros = 100 * each.zeros / max(1, each.weights)
        lines.append(
            f"{each.name.rpartition('member0/')[2]:<34}{each.weights:>9}{zeros:>7.1f}%{f'2^-{each.grid}':>8}"
            f"{each.largest_sum:>12.3f}"
        )
    lines.append("(largest sum: in units of 2^24 grid steps; below 1, every order of additions gives the same bits)")
    if contract.accuracy:
        lines += ["", f"{'test accuracy':<44}{'':>8}  {'95 % interval':<18}{'NLL':>8}"]
    for entry in contract.accuracy:
        low, high = entry.interval
        interval, way = f"{100 * low:.1f} – {100 * high:.1f} %", way_text(entry, contract.collapse)
        lines.append(f"{way:<44}{100 * entry.accuracy:>6.1f} %  {interval:<18}{entry.nll:>8.3f}")
    if (fitted := contract.certainty) is not None:
        lines.append(
            f"temperature {1 / fitted.scale:.3g}, sets of classes with {100 * fitted.coverage:g} % coverage: fitted on "
            f"{fitted.samples:,} {fitted.part} samples"
        )
    several = f", {members} members" if members > 1 else ""
    lines += ["", f"wrote {model.path}: {found.bytes:,} bytes{several}", "next:"]
    lines += [f"  {text}" for text in _next(model.path, contract, run)]
    lines.append(f"  axonnx verify {model.path} --run {run}")
    lines.append(f"  axonnx profile {model.path} --data {run}")
    return "\n".join(lines)


def _wrote_nir(path: Path, dt: float) -> str:
    return f"wrote {path}: {path.stat().st_size:,} bytes, a NIR graph with time steps of {dt:g} s"


def _next(output: Path, contract: Contract, run: str) -> list[str]:
    """Return commands that this very file can be given to."""
    entering = contract.input
    source = "RECORDING"
    if entering.binning is None:
        kind = "IMAGES" if entering.steps is None else "FRAMES"
        source = f"{kind}.npz   ({describe_input(entering)})"
    return [
        f"axonnx run {output} {source}",
        f"axonnx eval {output} --data {shlex.quote(contract.provenance.data or run)}",
    ]


def import_(options: Options) -> int:
    """``axonnx import``: exit 1 if the file and its source are not equal."""
    set_torch_threads(options.threads)
    done = import_network(**options.of(), settings=options.settings, progress=options.progress)
    print(_import_report(done))
    return FINE if done.proof.equal else FAILED


def _import_report(done: Imported) -> str:
    lines = [f"{done.source}, layer by layer:"]
    lines += [f"  {name}" for name in done.layers]
    if done.notes:
        lines += ["", "assumed:", *(f"  {note}" for note in done.notes)]
    lines += ["", *done.proof.lines(), "", _verdict(done)]
    lines += [f"wrote {done.exported.path}: {done.exported.size:,} bytes; run folder: {done.folder}", "next:"]
    for verb, option in (("verify", "--run"), ("profile", "--data"), ("report", "--run")):
        lines.append(f"  axonnx {verb} {done.exported.path} {option} {done.folder}")
    return "\n".join(lines)


def _verdict(done: Imported) -> str:
    proof = done.proof
    if proof.verdict == "different":
        return "NOT EQUAL: the import does not do what its source does"
    if proof.verdict == "not proved":
        lacking = "; ".join(f"{layer.layer} {layer.lacking}" for layer in proof.reached if layer.lacking)
        return (
            f"NOT PROVED: {lacking or 'no neuron fired'} on any input that was searched. Equal silence proves nothing"
        )
    if "rounding" in proof.verdict:
        return f"{proof.verdict}: where spikes differ, the first was that close to its threshold"
    count = proof.same_weights
    return f"{proof.verdict}: {count.spikes:,} spikes and {count.samples} decisions in each comparison"


def sweep(options: Options) -> int:
    """``axonnx sweep``."""
    found = Run.sweep(**options.of(), settings=options.settings, progress=options.progress)
    options.show([found], lambda: table(found))
    return FINE


def table(result: SweepResult) -> str:
    """Return a row for each combination, the best marked, and what was chosen on what."""
    from axonnx.train.sweeping import FIGURE, written

    keys = list(result.axes)
    head = [*keys, "accuracy", "NLL", "seeds"]
    rows = [[*(written({key: point.settings[key]}).partition("=")[2] for key in keys), *_cells(point)] for point in
            result.points]  # fmt: skip
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
    lines = ["  " + "  ".join(name.rjust(width) for name, width in zip(head, widths, strict=True))]
    for point, row in zip(result.points, rows, strict=True):
        mark = "* " if point is result.best or point == result.best else "  "
        lines.append(mark + "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)))
    figure = Path(result.best_run).parents[2] / FIGURE
    return "\n".join(
        [
            *lines,
            "",
            f"best        {result.best_settings or 'as configured'}",
            f"best run    {result.best_run}",
            f"chosen on   {result.chosen_on} (mean-field, last epoch); no test data had a say",
            f"test        {100 * result.test_accuracy:.1f} % of the best run, looked at after the choice",
            f"figure      {figure}",
        ]
    )


def _cells(point: SweepPoint) -> list[str]:
    finished = sum(run.failed is None for run in point.runs)
    count = f"{finished}" if finished == len(point.runs) else f"{finished} ({len(point.runs) - finished} not finite)"
    if point.accuracy is None or point.nll is None:
        return ["–", "–", count]
    std = "" if point.std is None else f" ± {100 * point.std:.1f}"
    return [f"{100 * point.accuracy:.1f}{std} %", f"{point.nll:.3f}", count]


def advice(scores: Sequence[AccuracyContract], mode: str, calibrated: bool) -> str | None:
    """Say what the file, the last of ``scores``, loses against the best way to run the network, and the remedy."""
    shipped, best = scores[-1], max(scores, key=lambda way: way.accuracy)
    lost = (best.right - shipped.right) / shipped.samples
    if lost <= NOTABLE:
        return None
    found = f"this file has {100 * shipped.accuracy:.1f} %, {way_text(best)} {100 * best.accuracy:.1f} %"
    head = "warning: this collapse is a bad choice" if lost > BAD else "the collapse costs accuracy"
    remedy = _other_collapse(scores) if mode == "mfa" and best.way != "unreduced" else ""
    return f"{head}: {found} ({100 * lost:.1f} points less). {remedy}{_remedy(mode, calibrated, best.way)}"


def _other_collapse(scores: Sequence[AccuracyContract]) -> str:
    """Name the best collapse that keeps noise or members, if it is notably better than this file."""
    others = [way for way in scores if way.way in ("sampled", "stochastic")]
    other = max(others, key=lambda way: way.accuracy, default=scores[-1])
    if other.right - scores[-1].right <= NOTABLE * other.samples:
        return ""
    return f"--collapse {other.way} has {100 * other.accuracy:.1f} %. "


def _remedy(mode: str, calibrated: bool, best: Way) -> str:
    if best == "unreduced":
        return "Prune less, or store weights in more bits"
    if mode != "mfa":
        return f"For better, {NOISY}" if best == "mean_field" else f"Another --collapse is better, or {TRAINED}"
    return TRAINED[0].upper() + TRAINED[1:] if calibrated else f"Try --calibrate; for good, {TRAINED}"
