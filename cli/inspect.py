"""``axonnx inspect``: what an exported file promises, what it does, and how large it is."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from axonnx.runtime.binning.settings import Binning
from axonnx.runtime.format.contract import Contract, LayerContract, SynapseContract
from axonnx.runtime.format.network_input import describe_input
from axonnx.runtime.format.values import UNITS
from axonnx.runtime.measure.ways import way_text
from axonnx.runtime.program.compilation import compile_file
from axonnx.runtime.program.instructions import Program


def main(arguments: Sequence[str]) -> int:
    """``axonnx inspect``."""
    options = make_parser().parse_args(arguments)
    program = compile_file(options.model)
    size = Path(options.model).stat().st_size
    print(json.dumps(as_dict(program, size)) if options.json else describe(program, size))
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


def as_dict(program: Program, size: int) -> dict[str, Any]:
    """Everything, in plain values."""
    synapses = [
        {**stated.model_dump(), "largest_sum": stated.bound / UNITS, **_weights(program, stated)}
        for stated in program.contract.synapses
    ]
    return {
        "file": program.name,
        "bytes": size,
        "contract": program.contract.model_dump(mode="json"),
        "certificates": synapses,
        "sizes": sizes(program),
        "program": program.describe().splitlines()[1:],
    }


def sizes(program: Program) -> dict[str, int]:
    """How much there is of what."""
    weights = [_weights(program, stated) for stated in program.contract.synapses]
    return {
        "weights": sum(each["weights"] for each in weights),
        "weights_not_zero": sum(each["weights"] - each["zeros"] for each in weights),
        "neurons": sum(layer.size for layer in program.layers),
        "constant_bytes": sum(array.nbytes for array in program.constants.values()),
        "state_bytes_per_sample": 4 * sum(program.buffers[name].size for name in program.states),
        "instructions": len(program.instructions),
    }


def describe(program: Program, size: int) -> str:
    """The same for people."""
    contract, found = program.contract, sizes(program)
    zeros = 1 - found["weights_not_zero"] / max(1, found["weights"])
    lines = [
        f"{program.name}: {contract.kind} network, {contract.form} form, {size:,} bytes",
        "",
        *_promises(contract),
        f"{'sizes':<12}{found['weights']:,} weights, {100 * zeros:.1f} % of them zero; {found['neurons']:,} neurons; "
        f"{found['state_bytes_per_sample']:,} bytes of state",
        *_layers(contract.layers),
        *_certificates(program),
        *_accuracy(contract),
        *_provenance(contract),
        "",
        program.describe(),
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


def _certificates(program: Program) -> list[str]:
    lines = ["", f"{'synapse':<34}{'weights':>10}{'zeros':>8}{'grid':>8}{'input':>10}{'largest sum':>13}  stored as"]
    for stated in program.contract.synapses:
        found = _weights(program, stated)
        zeros = 100 * found["zeros"] / max(1, found["weights"])
        lines.append(
            f"{stated.name:<34}{found['weights']:>10,}{zeros:>7.1f}%{f'2^-{stated.grid}':>8}{stated.input_max:>10g}"
            f"{stated.bound / UNITS:>13.3g}  {stated.stored_as}"
        )
    return [*lines, "(largest sum: of 2^24 grid steps; below 1 every order of additions gives the same bits. Checked.)"]


def _weights(program: Program, stated: SynapseContract) -> dict[str, int]:
    weight = program.constants[stated.weight]
    return {"weights": int(weight.size), "zeros": int(weight.size - np.count_nonzero(weight))}


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
