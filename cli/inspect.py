"""``axonnx inspect``: what an exported file promises, what it does, and how large it is."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from axonnx.runtime.binning.settings import Binning
from axonnx.runtime.format.contract import Contract, LayerContract
from axonnx.runtime.format.network_input import describe_input
from axonnx.runtime.measure.inspection import Certificate, Inspection, inspect_file
from axonnx.runtime.measure.ways import way_text


def main(arguments: Sequence[str]) -> int:
    """``axonnx inspect``."""
    options = make_parser().parse_args(arguments)
    found = inspect_file(options.model)
    print(found.model_dump_json() if options.json else describe(found))
    return 0


def make_parser() -> argparse.ArgumentParser:
    """The options of the verb."""
    parser = argparse.ArgumentParser(
        "axonnx inspect",
        description="Show an exported file: its contract, its certificates (checked again), its program, its sizes.",
        allow_abbrev=False,
    )
    parser.add_argument("model", help="a file of axonnx export")
    parser.add_argument("--json", action="store_true", help="everything as one JSON object")
    return parser


def describe(found: Inspection) -> str:
    """The same for people."""
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
        f"{'binning':<12}{'none: frames or images' if entering.binning is None else _binning(entering.binning)}",
        f"{'classes':<12}{len(contract.classes)}: {', '.join(contract.classes)}",
        f"{'collapse':<12}{collapse.mode}{members}{seed}{', calibrated' if collapse.calibrated else ''}{pruned}, "
        f"weights stored as {collapse.weights}",
        f"{'firing':<12}where membrane {contract.tie} threshold{reset}",
        f"{'logits':<12}{contract.logits}",
    ]


def _binning(binning: Binning) -> str:
    sensor = binning.sensor
    pooled = f", summed over {binning.downsample} pixels a side" if binning.downsample > 1 else ""
    values = f"counts up to {binning.clip}" if binning.values == "count" else "1 where there was any event"
    merged = ", merged" if binning.polarity == "merge" and sensor.polarities == 2 else ""
    origin = "time zero" if binning.origin == "zero" else "the first event"
    return (
        f"{binning.bins} bins of {binning.bin_us:,} µs from {origin} on; sensor {sensor.width}×{sensor.height}, "
        f"{sensor.polarities} polarities{merged}{pooled}; {values}"
    )


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
    """A layer's threshold or decay, or between which its neurons' own lie."""
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
