"""The verbs that prove and measure: verify, eval, profile, inspect, report."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from axonnx.base.errors import AxonnxError
from axonnx.base.files import write_text
from axonnx.base.palette import groups_of_series, save_figure
from axonnx.cli.guard import FAILED, FINE
from axonnx.cli.options import Options, set_torch_threads
from axonnx.model import load, verify_file
from axonnx.runtime.format.contract import AccuracyContract, Contract, LayerContract, describe_results
from axonnx.runtime.format.network_input import describe_device, describe_input
from axonnx.runtime.measure.comparison import agreement_of
from axonnx.runtime.measure.engine_result import CompiledResult, EngineResult
from axonnx.runtime.measure.evaluation import Evaluation, ValueEvaluation
from axonnx.runtime.measure.inspection import Certificate, Inspection, inspect_file, way_text
from axonnx.runtime.measure.metrics import error_lines
from axonnx.runtime.measure.profile_result import DenseEnergy, Energy, ProfileResult
from axonnx.runtime.measure.uncertainty import Uncertainty
from axonnx.runtime.measure.verify_result import Accuracy, VerifyResult
from axonnx.runtime.report.pictures import agreement_picture
from axonnx.trained_run import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NOT_COMPARED = "the training network was not part of this: axonnx verify FILE --run RUN compares the file with it"
MEANING = {
    "training": "The run folder does not give what its training process saw and stated: do not rely on it, train again",
    "structure": "The file is not what the run exports: do not use it, export again",
    "engines": "The same network gives other results elsewhere: do not deploy this file on this machine, and report it",
    "recordings": "A device would get other decisions than training saw: do not deploy this file, and report it",
    "runtime": "A device would get other decisions than training saw: do not deploy this file, and report it",
    "accuracies": "The file states figures that it does not reach: do not rely on them, export again",
}
SHOWN_COVERAGES = (1.0, 0.9, 0.8)  # of a risk–coverage curve
FIGURES = (("accuracy", "accuracy", 100, " %"), ("NLL", "nll", 1, ""), ("Brier", "brier", 1, ""), ("ECE", "ece", 1, ""))


def verify(options: Options) -> int:
    """``axonnx verify``: exit 0 if the file is what was trained, 1 if it is not."""
    if options.against is not None:
        set_torch_threads(options.threads)
    found = verify_file(options.path, **options.of(), progress=options.progress)
    options.show([found], lambda: _table_of(found))
    return FINE if found.verified else FAILED


def _table_of(found: VerifyResult | EngineResult | CompiledResult) -> str:
    if isinstance(found, CompiledResult):
        return compiled_table(found)
    return verify_table(found) if isinstance(found, VerifyResult) else engines_table(found)


def verify_table(result: VerifyResult) -> str:
    """Return the result for people."""
    lines = [] if result.verified else [_verdict(result), ""]
    for stage in sorted(result.stages, key=lambda stage: stage.ok):  # what failed comes first
        lines.append(f"{'ok    ' if stage.ok else 'FAILED'} {stage.name}")
        if result.verified or not stage.ok:
            lines += [f"         {line}" for line in stage.lines]
    if result.implementations:
        lines += ["", *_implementations(result)]
    scores = [_score(_whose(entry), entry) for entry in result.accuracy]
    scores += [_score(f"measured again: {way_text(entry)}", entry) for entry in result.stated]
    if (paired := result.paired) is not None and (apart := paired.only_file + paired.only_training):
        scores.append(
            f"the file and the training network are measured on the same {paired.samples:,} samples; they differ on "
            f"{apart}, of which the file gets {paired.only_file} right"
        )
    return "\n".join([*lines, *(["", *scores] if scores else []), *(["", _verdict(result)] if result.verified else [])])


def _implementations(result: VerifyResult) -> list[str]:
    """Return a table whose columns are as wide as their numbers."""
    kinds = ("spikes", "membranes", "logits")
    rows = [
        [f"{getattr(entry, f'{kind}_differing'):,}/{getattr(entry, kind):,}" for kind in kinds]
        for entry in result.implementations
    ]
    widths = [max(least, *(2 + len(row[at]) for row in rows)) for at, least in enumerate((12, 12, 9))]
    head = "".join(f"{kind:>{width}}" for kind, width in zip(kinds, widths, strict=True))
    lines = [f"{'implementation':<36}{'samples':>8}{head}  max |Δlogit|"]
    for entry, row in zip(result.implementations, rows, strict=True):
        cells = "".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True))
        lines.append(f"{entry.name:<36}{entry.samples:>8}{cells}  {entry.max_logit_difference:g}")
    return lines


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
    lines = [line for stage in result.stages if not stage.ok for line in stage.lines]
    told = [
        f"NOT VERIFIED ({', '.join(failed)}): {lines[0] if lines else 'no reason was kept'}",
        MEANING.get(failed[0], MEANING["structure"]),
    ]
    if result.mismatches:
        told.append(f"{result.mismatches:,} numbers differ between implementations of the same network")
    return "\n".join(told)


def engines_table(found: EngineResult) -> str:
    """Return what was compared, and the verdict."""
    lines = [f"{found.model}  sha256 {found.file_sha256[:16]}…"]
    if found.refusal is not None:
        return "\n".join([*lines, f"FAILED structure: {found.refusal}", NOT_COMPARED])
    data = "" if found.data_sha256 is None else f"  sha256 {found.data_sha256[:16]}…"
    lines += [f"input: {found.source}{data}", *(f"ok     {line}" for line in found.structure)]
    lines.append(f"       {found.ties:,} membranes were put exactly on their thresholds, where ≥ fires")
    lines += ["", f"{'against the numpy engine':<36}{'samples':>8}{'numbers':>14}{'differing':>11}"]
    for entry in found.implementations:
        lines.append(f"{entry.name:<36}{entry.samples:>8}{entry.numbers:>14,}{entry.differing:>11,}")
    total = sum(entry.numbers for entry in found.implementations)
    verdict = f"engines are equal: 0 differences in {total:,} numbers"
    if found.engines == "different":
        verdict = f"ENGINES DIFFER: {found.first_difference}"
    return "\n".join([*lines, "", verdict, NOT_COMPARED])


def compiled_table(found: CompiledResult) -> str:
    """Return what was compared, and the verdict."""
    data = "" if found.data_sha256 is None else f"  sha256 {found.data_sha256[:16]}…"
    fired = ", ".join(f"{name} {count:,}" for name, count in found.fired.items())
    lines = [f"{found.folder}: code for {found.target!r}, against {found.model}  sha256 {found.file_sha256[:16]}…"]
    lines += [f"input: {found.source}{data}", f"       expected spikes: {fired}"]
    lines.append(f"       {found.ties:,} expected membranes are exactly on their thresholds, where ≥ fires")
    lines += ["", f"{'against the numpy engine':<44}{'windows':>8}{'spikes':>12}{'logits':>9}{'differing':>11}"]
    for entry in found.implementations:
        lines.append(f"{entry.name:<44}{entry.samples:>8,}{entry.spikes:>12,}{entry.logits:>9,}{entry.differing:>11,}")
    lines += [f"not run: {line}" for line in found.left_out]
    total = sum(entry.numbers + entry.decisions for entry in found.implementations)
    wrong = [*([str(found.first_difference)] if found.first_difference else []), *found.failures]
    if found.verified:
        return "\n".join([*lines, "", f"compiled code is equal: 0 differences in {total:,} numbers and decisions"])
    return "\n".join([*lines, "", *(f"FAILED {line}" for line in wrong), "COMPILED CODE DIFFERS from its file"])


def evaluate(options: Options) -> int:
    """``axonnx eval``: of a run folder, or of files on labelled data."""
    target = options.path[0]
    if (Path(target) / "config.toml").is_file() or (options.data is None and not Path(target).is_file()):
        return _evaluate_run(target, options)
    if options.data is None:
        raise AxonnxError(
            f"which data? axonnx eval {target} --data DATA takes a folder of class folders, an npz of frames and "
            f"labels, the name of a data set, or a run folder"
        )
    results = [options.load(path).evaluate(**options.of(1), progress=options.progress) for path in options.path]
    options.show(results, lambda: side_by_side(results) if results[1:] else evaluation_table(results[0]))
    if options.output:
        write_text(options.output, agreement_picture(agreement_of(results)))
    return FINE


def _evaluate_run(target: str, options: Options) -> int:
    from axonnx.cli.build import metrics_table

    if options.uncertainty is not None:
        raise AxonnxError(f"{target}: uncertainty is measured of a file; export the run, and evaluate the file")
    if options.data is not None:
        raise AxonnxError(
            f"{target}: a run is evaluated on its own data; export it, and evaluate the file on other data"
        )
    set_torch_threads(options.threads)
    run = Run(target)
    found = run.evaluate(part=options.part, passes=options.passes)
    if options.json not in (None, "-"):
        write_text(options.json, json.dumps(found, indent=1))
    print(json.dumps(found) if options.json == "-" else metrics_table(found, run.classes))
    return FINE


def evaluation_table(result: Evaluation | ValueEvaluation) -> str:
    """Return the figures as text."""
    if isinstance(result, ValueEvaluation):
        return "\n".join([*_value_lines(result), *(f"note: {note}" for note in result.notes)])
    lines = [f"{result.model} on {result.data}: {result.samples} samples, engine {result.engine}", ""]
    for name, key, factor, unit in FIGURES:
        low, high = (factor * value for value in getattr(result.intervals, key))
        digits = 1 if unit else 3
        interval = f"{low:.{digits}f} – {high:.{digits}f}{unit}"
        lines.append(f"{name:<12}{factor * getattr(result, key):>8.{digits}f}{unit:<3} ({interval})")
    lines += ["(95 % intervals: Wilson for the accuracy, bootstrap for the others)", "", *_confusion(result)]
    if result.uncertainty is not None:
        lines += ["", *_uncertainty_lines(result.uncertainty, result.nll)]
    if result.left_out:
        shares = ", ".join(f"{count:,} {reason}" for reason, count in result.left_out.items())
        lines += ["", f"of {result.events:,} events are in no frame: {shares}"]
    return "\n".join([*lines, *(f"note: {note}" for note in result.notes)])


def _uncertainty_lines(found: Uncertainty, nll: float) -> list[str]:
    """Return what the certainty is worth: a row for each signal, the temperature, and the sets of classes."""
    shown = [number for number, share in enumerate(found.coverages) if share in SHOWN_COVERAGES][::-1]
    kinds = list(found.unknown_samples)
    head = "".join(f"{f'risk {100 * found.coverages[at]:.0f} %':>12}" for at in shown)
    rows = [f"{'how sure it is':<22}{'area':>8}{head}{'errors':>9}{''.join(f'{kind[-10:]:>11}' for kind in kinds)}"]
    for name, signal in found.signals.items():
        risk = "".join(f"{100 * signal.risk[at]:>10.2f} %" for at in shown)
        unknown = "".join(f"{_share(signal.unknown[kind]):>11}" for kind in kinds)
        rows.append(f"{name:<22}{signal.aurc:>8.4f}{risk}{_share(signal.errors):>9}{unknown}")
    passes = f"; {found.passes} passes" if found.passes > 1 else ""
    rows.append(f"(risk: wrong answers if this share is answered; area: below risk over coverage; else AUROC{passes})")
    if found.temperature is not None and found.untempered_nll is not None:
        rows.append(f"temperature {found.temperature:.3g}: NLL {nll:.3f}; without it {found.untempered_nll:.3f}")
    if (sets := found.sets) is not None:
        low, high = sets.interval
        right = "none" if sets.right[-1] is None else f"{100 * sets.right[-1]:.1f} %"
        rows += [
            f"sets of {100 * sets.coverage:g} %: hold the true class of {100 * sets.held[-1]:.1f} % "
            f"({100 * low:.1f} – {100 * high:.1f} %), {sets.size[-1]:.2f} classes on average; "
            f"{100 * sets.answered[-1]:.1f} % are answered, {right} of these right",
            f"at the end of each time step they hold {100 * min(sets.held):.1f} to {100 * max(sets.held):.1f} %",
        ]
    return rows


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def side_by_side(given: Sequence[Evaluation | ValueEvaluation]) -> str:
    """Several files: their figures, and on how many samples they decide alike."""
    found, results = agreement_of(given), [each for each in given if isinstance(each, Evaluation)]
    width = 2 + max(len(name) for name in (*found.files, "the truth"))
    lines = [f"{len(results)} files on {found.data}: {len(found.truth)} samples", ""]
    lines.append(f"{'file':<{width}}{'accuracy':>10}{'NLL':>8}{'Brier':>8}{'ECE':>8}")
    for name, result in zip(found.files, results, strict=True):
        figures = "".join(f"{value:>8.3f}" for value in (result.nll, result.brier, result.ece))
        lines.append(f"{name:<{width}}{100 * result.accuracy:>8.1f} %{figures}")
    names = (*found.files, "the truth")
    lines += ["", f"{'decide alike':<{width}}" + "".join(f"{name:>{width}}" for name in names)]
    for name, row in zip(found.files, found.alike, strict=False):
        lines.append(f"{name:<{width}}" + "".join(f"{count:>{width}}" for count in row))
    alike = len(found.truth) - len(found.disputed)
    return "\n".join([*lines, "", f"all decide alike on {alike}, and {found.wrong_alike} of these are wrong"])


def _value_lines(result: ValueEvaluation) -> list[str]:
    lines = [f"{result.model} on {result.data}: {result.samples} samples, engine {result.engine}", ""]
    return [*lines, *error_lines([*zip(result.values, result.units, strict=True)], vars(result))]


def _confusion(result: Evaluation) -> list[str]:
    classes, width = result.classes, max(len(name) for name in result.classes)
    cell = max(5, 1 + max(len(str(count)) for row in result.confusion for count in row))
    head = "".join(f"{number:>{cell}}" for number in range(len(classes)))
    lines = ["confusion: true classes down, decisions across", f"{'':<{width + 5}}{head}"]
    for number, (name, row) in enumerate(zip(classes, result.confusion, strict=True)):
        lines.append(f"{number:>3}  {name:<{width}}" + "".join(f"{count or '·':>{cell}}" for count in row))
    return lines


def profile(options: Options) -> int:
    """``axonnx profile``."""
    if options.data is None:
        raise AxonnxError("which data? --data RUN takes a run's test data, --data PATH or NAME your own")
    results = [options.load(path).profile(**options.of(), progress=options.progress) for path in options.path]
    beside = [_costs_side_by_side(results)] if results[1:] else []
    options.show(results, lambda: "\n\n".join([*map(_profile_table, results), *beside]))
    if options.output:
        save_figure(options.output, lambda: _trade_off(results), format="png", dpi=110)
    return FINE


def _profile_table(result: ProfileResult) -> str:
    totals, energy = result.totals, result.energy
    lines = [f"{result.model} ({result.collapse}), {result.samples} samples, engine {result.engine}", ""]
    lines.append(f"{'layer':<34}{'neurons':>9}{'rate':>9}{'spikes/inference':>18}")
    for layer in result.layers:
        lines.append(f"{layer.name:<34}{layer.neurons:>9}{layer.rate:>9.4f}{layer.spikes_per_inference:>18.1f}")
    lines += ["", f"{'synapse':<34}{'weights':>9}{'zeros':>8}{'ACs':>13}{'MACs':>13}{'dense':>14}{'done':>8}"]
    for entry in result.synapses:
        lines.append(
            f"{entry.name:<34}{entry.weights:>9}{100 * entry.connection_sparsity:>7.1f}%"
            f"{entry.accumulates:>13,.0f}{entry.multiply_accumulates:>13,.0f}"
            f"{entry.dense_operations:>14,}{100 * entry.operations / entry.dense_operations:>7.1f}%"
        )
    sparsity = 100 * totals.activation_sparsity
    lines += [
        "",
        f"input events        {totals.events_in:>14,.1f}   in {totals.active_inputs:,.1f} cells",
        f"membrane updates    {totals.membrane_updates:>14,}   activation sparsity {sparsity:.2f} %",
        f"footprint           {totals.footprint_bytes:>14,}   bytes; state {totals.state_bytes:,} bytes",
        f"latency             {result.latency_ms_per_step:>11.3f} ms   for each step and sample, in this process",
        f"energy              {energy.total_nj:>11.1f} nJ   operations {energy.parts.operations:,.1f} nJ, memory "
        f"{energy.parts.memory:,.1f} nJ; {energy.hardware.name}, {energy.memory_pj_per_byte:g} pJ a byte",
        *(_dense(energy, network) for network in energy.dense),
        *_quality(result),
    ]
    if result.early_exit:
        exits = ", ".join(
            f"{e.stop_at:g}: {100 * e.accuracy:.1f} % after {e.mean_steps:.1f} steps" for e in result.early_exit
        )
        lines.append(f"early exit          {exits}")
    return "\n".join(lines)


def _quality(result: ProfileResult) -> list[str]:
    """How good the decisions were that cost this."""
    if result.errors is not None:
        return error_lines([*zip(result.values, result.units, strict=True)], vars(result.errors))
    low, high = (100 * bound for bound in result.accuracy_interval)
    return [f"accuracy            {100 * result.accuracy:>12.1f} %   {low:.1f} – {high:.1f} %; ECE {result.ece:.3f}"]


def _dense(energy: Energy, network: DenseEnergy) -> str:
    passes = "1 pass" if network.passes == 1 else f"{network.passes} passes"
    return (
        f"dense, {passes:<13}{network.parts.total:>11.1f} nJ   {network.activation_bits}-bit activations; "
        f"fewer joules than it: {energy.verdict(network)}"
    )


def _costs_side_by_side(results: Sequence[ProfileResult]) -> str:
    lines = [f"{'file':<34}{'accuracy':>10}{'ECE':>8}{'spikes':>10}{'energy nJ':>12}{'bytes':>12}"]
    for result in results:
        lines.append(
            f"{result.model[-33:]:<34}{_short_quality(result)}"
            f"{result.spikes_per_inference:>10,.0f}{result.energy.total_nj:>12,.1f}"
            f"{result.totals.footprint_bytes:>12,}"
        )
    return "\n".join(lines)


def _short_quality(result: ProfileResult) -> str:
    if result.errors is None:
        return f"{100 * result.accuracy:>8.1f} %{result.ece:>8.3f}"
    return f"{'RMSE':>8} {max(result.errors.rmse):<9.4g}"


def _trade_off(results: Sequence[ProfileResult]) -> Figure:
    """Draw accuracy against energy of every file, and decision time against accuracy."""
    from matplotlib.figure import Figure

    groups = groups_of_series(results)
    figure = Figure(figsize=(9, 0.6 + 3.0 * len(groups)), layout="constrained")
    rows = figure.subplots(len(groups), 2, sharex="col", sharey="col", squeeze=False)
    for (cost, when), group in zip(rows, groups, strict=True):
        for result in group:
            label = f"{result.collapse} ({result.model.rpartition('/')[2]})"
            real = result.errors is not None
            good = max(result.errors.rmse) if result.errors is not None else 100 * result.accuracy
            cost.plot(result.energy.total_nj, good, "o", label=label)
            exits = result.early_exit
            when.plot([e.mean_steps for e in exits], [100 * e.accuracy for e in exits], ".-", label=label)
        cost.set(xlabel="energy of an inference (nJ)", ylabel="RMSE" if real else "accuracy (%)", xscale="log")
        when.set(xlabel="mean time steps to the decision", ylabel="accuracy (%)")
        when.legend()
    return figure


def report(options: Options) -> int:
    """``axonnx report``."""
    page = load(options.path).report(**options.of(), progress=options.progress)
    print(f"wrote {page}: {page.stat().st_size:,} bytes; open it in a browser")
    return FINE


def inspect(options: Options) -> int:
    """``axonnx inspect``."""
    found = inspect_file(options.path)
    options.show([found], lambda: describe(found))
    return FINE


def describe(found: Inspection) -> str:
    """Return the same for people."""
    contract, sizes = found.contract, found.sizes
    zeros = 1 - sizes.weights_not_zero / max(1, sizes.weights)
    lines = [
        f"{found.file}: {contract.kind} network, {contract.form} form, {found.bytes:,} bytes",
        "",
        *_promises(contract),
        f"{'sizes':<12}{sizes.weights:,} weights, {100 * zeros:.1f} % of them zero; {sizes.neurons:,} neurons; "
        f"{sizes.state_bytes_per_sample:,} bytes of state",
        *_layers(contract.layers),
        *_certificates(found.certificates),
        *_accuracy(contract),
        *_provenance(contract),
        "",
        *found.program,
    ]
    return "\n".join(lines)


def _promises(contract: Contract) -> list[str]:
    entering, collapse = contract.input, contract.collapse
    value = "value" if entering.centre == 0 else f"value − {entering.centre}"
    scaled = f"; x = ({value}) · 2^-{entering.shift}" if entering.shift or entering.centre else ""
    seed = "" if collapse.seed is None else f", seed {collapse.seed}"
    members = f" of {collapse.members} members" if collapse.members > 1 else ""
    reset = f"; reset at the {contract.reset_timing}" if contract.kind == "spiking" else ""
    pruned = "" if collapse.prune is None else f", pruned below {collapse.prune:g}"
    return [
        f"{'input':<12}{entering.name}: {describe_input(entering)}, |{value}| up to {entering.largest}{scaled}",
        f"{'device':<12}{describe_device(entering)}",
        f"{'classes' if contract.units is None else 'values':<12}{describe_results(contract)}",
        f"{'collapse':<12}{collapse.mode}{members}{seed}{', calibrated' if collapse.calibrated else ''}{pruned}, "
        f"weights stored as {collapse.weights}",
        f"{'firing':<12}where membrane {contract.tie} threshold{reset}",
        f"{'logits':<12}{contract.logits}",
    ]


def _layers(layers: Sequence[LayerContract]) -> list[str]:
    lines = ["", f"{'layer':<34}{'operator':<20}{'shape':>12}{'threshold':>16}{'decay':>16}  reset"]
    for layer in layers:
        shape = "×".join(str(side) for side in layer.shape)
        threshold, decay = _range(layer.threshold), _range(layer.decay)
        lines.append(
            f"{layer.name:<34}{layer.op:<20}{shape:>12}{threshold:>16}{decay:>16}  {layer.reset or ''}".rstrip()
        )
    return lines


def _range(constant: float | tuple[float, float] | None) -> str:
    """Return a layer's threshold or decay, or the range of its neurons' values."""
    if constant is None:
        return ""
    if isinstance(constant, tuple):
        return f"{constant[0]:.3g} … {constant[1]:.3g}"
    return f"{constant:.4g}"


def _certificates(certificates: Sequence[Certificate]) -> list[str]:
    lines = ["", f"{'synapse':<34}{'weights':>10}{'zeros':>8}{'grid':>8}{'input':>10}{'largest sum':>13}  stored as"]
    for each in certificates:
        zeros = 100 * each.zeros / max(1, each.weights)
        lines.append(
            f"{each.name:<34}{each.weights:>10,}{zeros:>7.1f}%{f'2^-{each.grid}':>8}{each.input_max:>10g}"
            f"{each.largest_sum:>13.3g}  {each.stored_as}"
        )
    return [*lines, "(largest sum: of 2^24 grid steps; below 1 every order of additions gives the same bits. Checked.)"]


def _accuracy(contract: Contract) -> list[str]:
    if not contract.accuracy:
        return []
    lines = ["", f"{'accuracy at export':<44}{'':>8}  {'95 % interval':<18}{'NLL':>8}{'samples':>9}"]
    for entry in contract.accuracy:
        low, high = entry.interval
        interval = f"{100 * low:.1f} – {100 * high:.1f} %"
        lines.append(
            f"{way_text(entry, contract.collapse):<44}{100 * entry.accuracy:>6.1f} %  {interval:<18}{entry.nll:>8.3f}"
            f"{entry.samples:>9,}"
        )
    return lines


def _provenance(contract: Contract) -> list[str]:
    made = contract.provenance
    facts = {
        "data": made.data,
        "data digest": made.data_digest,
        "weights": made.checkpoint,
        "versions": ", ".join(f"{name} {version}" for name, version in made.versions.items()),
    }
    known = [f"{name:<12}{value}" for name, value in facts.items() if value]
    return ["", *known] if known else []
