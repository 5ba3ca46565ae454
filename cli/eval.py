"""``axonnx eval``: accuracy and calibration of an exported file on labelled data, or of a run on its own."""

from __future__ import annotations

import argparse
import json
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.base.files import write_text
from axonnx.base.fingerprints import sha256_of
from axonnx.cli.fit_options import add_fit_options, fit_of
from axonnx.cli.threads import add_threads
from axonnx.runtime.engines.choose import ENGINES
from axonnx.runtime.format.contract import Contract
from axonnx.runtime.format.network_input import describe_input
from axonnx.runtime.measure.evaluation import evaluate
from axonnx.runtime.measure.labelled_data import FirstWindows, LabelledData, batched, open_labelled
from axonnx.runtime.model import load
from axonnx.runtime.readers import Recording
from axonnx.runtime.streams.frame_files import as_steps

if TYPE_CHECKING:
    from axonnx.train.data.splits import Data


def main(arguments: Sequence[str]) -> int:
    """``axonnx eval``."""
    parser = make_parser()
    options, _ = parser.parse_known_args(arguments)
    if Path(options.target).is_dir() or (options.data is None and not Path(options.target).exists()):
        from axonnx.cli.train import main_eval

        return main_eval(arguments)
    options = parser.parse_args(arguments)
    if options.data is None:
        raise AxonnxError(
            f"which data? axonnx eval {options.target} --data PATH|NAME takes a folder of class folders, an npz of "
            f"frames and labels, or a data set by its name"
        )
    result = eval_file(options)
    if options.output:
        write_text(options.output, json.dumps(result, indent=1))
    print(json.dumps(result) if options.json else table(result))
    return 0


def eval_file(options: argparse.Namespace) -> dict[str, Any]:
    """Evaluate one file on the data that the options name."""
    sha256 = sha256_of(options.target)
    model = load(options.target, options.engine, options.threads or 1)
    found = evaluate(model, _data(options, model.contract), options.seed)
    return {
        "format": 1,
        "model": options.target,
        "file_sha256": sha256,
        "engine": model.engine.name,
        "seed": options.seed,
        **found.as_dict(),
    }


def make_parser() -> argparse.ArgumentParser:
    """The options of the verb."""
    parser = argparse.ArgumentParser(
        "axonnx eval",
        description="Accuracy, NLL, Brier score and calibration with 95 % intervals, and the confusion of classes: of "
        "an exported file on labelled data (all of it), or of a run folder on its own data.",
        epilog="A run folder takes --samples (noisy passes), --device, --threads and --json only.",
        allow_abbrev=False,
    )
    parser.add_argument("target", metavar="model.onnx|RUN", help="an exported file, or a run folder")
    parser.add_argument(
        "--data",
        metavar="PATH|NAME",
        help="<folder>/<class>/<recording>, an npz of frames and labels, or a data set by name (needs axonnx[train])",
    )
    parser.add_argument("--part", help="of data that has parts (default: test)")
    parser.add_argument("--data-root", help="where a data set's files are (default: as AXONNX_DATA says)")
    parser.add_argument("--engine", choices=ENGINES, default="auto", help="what computes (default: %(default)s)")
    add_threads(parser, "1 for a file, half of the processors for a run")
    parser.add_argument("--seed", type=int, default=0, help="of a stochastic file's noise and of the bootstrap")
    add_fit_options(parser.add_argument_group("recordings of another sensor"))
    parser.add_argument("--json", action="store_true", help="everything as one JSON object")
    parser.add_argument("-o", "--output", help="also write the JSON to this file")
    return parser


def _data(options: argparse.Namespace, contract: Contract) -> LabelledData:
    if not Path(options.data).exists():
        return data_set(options.data, contract, options.part or "test", options.data_root)
    found = open_labelled(Path(options.data), contract, options.part, fit_of(options))
    trained = _training_data(contract).get("name")
    if options.part in (None, "train") and trained and Path(trained).resolve() == Path(found.source).resolve():
        return replace(found, notes=(*found.notes, "the network was trained on most of this data"))
    return found


def _training_data(contract: Contract) -> dict[str, Any]:
    """The data section of the configuration that the network was trained with, as far as the file tells."""
    data: dict[str, Any] = tomllib.loads(contract.provenance.config or "").get("data", {})
    return data


def data_set(name: str, contract: Contract, part: str, root: str | None) -> LabelledData:
    """A part of a data set by name, loaded as in the file's own training where that was on it."""
    from axonnx.train.data.sets.registry import load_data_set

    trained = _training_data(contract)
    own = trained if trained.get("name") == name else {}
    splits = load_data_set(name, root=root or own.get("root"), **own.get("options", {}))
    if part not in splits.parts:
        raise AxonnxError(f"{name}: has no part {part!r}; it has {', '.join(splits.parts)}")
    strangers = [each for each in contract.classes if each not in splits.classes]
    if strangers:
        raise AxonnxError(
            f"{name}: has no class {strangers[0]!r}, which is one of the network's; its classes are "
            f"{', '.join(splits.classes)}"
        )
    data = splits.with_classes([splits.classes.index(each) for each in contract.classes]).parts[part]
    others = len(splits.parts[part]) - len(data)
    notes = (f"{others} samples of classes that the network does not have are left out",) if others else ()
    windows = None if contract.input.binning is None else FirstWindows(contract)
    samples = batched(_samples(name, data, contract, windows))
    return LabelledData(f"{name}, {part} part", data.digest, samples, windows, notes)


def _samples(
    name: str, data: Data, contract: Contract, windows: FirstWindows | None
) -> Iterator[tuple[NDArray[np.integer], int]]:
    """Every sample as the network takes it [T, …], with its label."""
    from axonnx.train.data.frames import Frames

    for number, label in enumerate(data.labels.tolist()):
        if isinstance(data, Frames) and windows is None:
            yield as_steps(data.frames[number : number + 1], contract.input, name)[0], label
        elif not isinstance(data, Frames) and windows is not None:
            yield windows.frames(Recording(data[number], name, data.sensor), name), label
        else:
            takes = describe_input(contract.input) if windows is None else "events"
            holds = "frames or images" if isinstance(data, Frames) else "events"
            raise AxonnxError(f"{name}: holds {holds}; the network takes {takes}")


def table(result: dict[str, Any]) -> str:
    """The figures as text."""
    lines = [f"{result['model']} on {result['data']}: {result['samples']} samples, engine {result['engine']}", ""]
    for name, key, factor, unit in FIGURES:
        low, high = (factor * value for value in result["intervals"][key])
        digits = 1 if unit else 3
        interval = f"{low:.{digits}f} – {high:.{digits}f}{unit}"
        lines.append(f"{name:<12}{factor * result[key]:>8.{digits}f}{unit:<3} ({interval})")
    lines += ["(95 % intervals: Wilson for the accuracy, bootstrap for the others)", "", *_confusion(result)]
    if result["left_out"]:
        shares = ", ".join(f"{count:,} {reason}" for reason, count in result["left_out"].items())
        lines += ["", f"of {result['events']:,} events are in no frame: {shares}"]
    return "\n".join([*lines, *(f"note: {note}" for note in result["notes"])])


FIGURES = (("accuracy", "accuracy", 100, " %"), ("NLL", "nll", 1, ""), ("Brier", "brier", 1, ""), ("ECE", "ece", 1, ""))


def _confusion(result: dict[str, Any]) -> list[str]:
    classes, width = result["classes"], max(len(name) for name in result["classes"])
    cell = max(5, 1 + max(len(str(count)) for row in result["confusion"] for count in row))
    head = "".join(f"{number:>{cell}}" for number in range(len(classes)))
    lines = ["confusion: true classes down, decisions across", f"{'':<{width + 5}}{head}"]
    for number, (name, row) in enumerate(zip(classes, result["confusion"], strict=True)):
        lines.append(f"{number:>3}  {name:<{width}}" + "".join(f"{count or '·':>{cell}}" for count in row))
    return lines
