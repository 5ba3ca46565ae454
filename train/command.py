"""``axonnx train`` and ``axonnx eval``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from axonnx.models import Network
from axonnx.runtime.errors import AxonnxError
from axonnx.train.build import Prepared, make_network, prepare
from axonnx.train.checkpoint import Position, load_checkpoint, save_checkpoint
from axonnx.train.config import Config
from axonnx.train.configure import read_config, settings, shipped, to_toml
from axonnx.train.curves import draw_curves
from axonnx.train.data.registry import available
from axonnx.train.distributed import World, world
from axonnx.train.loop import NonFiniteError, Training, final_predictions, fit, new_training
from axonnx.train.progress import Silent, for_terminal
from axonnx.train.run_folder import RunFolder


def main(arguments: Sequence[str]) -> int:
    """``axonnx train``."""
    options, overrides = _parser().parse_known_args(arguments)
    if options.list:
        print(_listing())
        return 0
    if options.settings:
        print("\n".join(f"--{key:<34} {default:<22} {about}" for key, default, about in settings()))
        return 0
    if options.configuration is None and not (options.resume and options.out):
        raise AxonnxError("which configuration? Give a shipped name or a .toml file; axonnx train --list shows names")
    with world() as here:
        folder, config = _folder_and_config(options, overrides, here)
        train_run(folder, config, resume=options.resume, here=here, quiet=options.quiet)
    return 0


def train_run(
    folder: RunFolder, config: Config, *, resume: bool = False, here: World | None = None, quiet: bool = False
) -> Training:
    """Train as ``config`` says and leave everything in ``folder``."""
    here = here or World()
    prepared = prepare(config.data)
    network = make_network(config, prepared)
    training = new_training(network, config, here.device(config.device), here.rank)
    if resume:
        _restore(folder, training, prepared, config)
    if here.leads:
        folder.log(f"{'resumed' if resume else 'started'} at epoch {training.epochs_done}")

    def keep(current: Training) -> None:
        folder.write_results(current.rows)
        position = Position(current.epochs_done, current.noise.get_state(), to_toml(config), prepared.splits.digest)
        save_checkpoint(folder.checkpoint, current.network, current.optimiser, position)

    progress = for_terminal() if here.leads and not quiet else Silent()
    try:
        fit(network, prepared, config, training=training, world=here, progress=progress, after_epoch=keep)
    except NonFiniteError as fault:
        folder.log(f"stopped: {fault}")
        raise
    finally:
        progress.finish()
    if here.leads:
        _close(folder, training, prepared, config, quiet)
    return training


def load_run(path: str | Path, device: str | None = None) -> tuple[Config, Prepared, Network]:
    """A finished (or interrupted) run: its configuration, its data and its network with the last weights."""
    folder = RunFolder(Path(path))
    config = folder.config()
    prepared = prepare(config.data)
    network = make_network(config, prepared)
    load_checkpoint(folder.checkpoint, network)
    return config, prepared, network.to(World().device(device or config.device))


def main_eval(arguments: Sequence[str]) -> int:
    """``axonnx eval``."""
    parser = argparse.ArgumentParser("axonnx eval", description="Accuracy and calibration of a trained network.")
    parser.add_argument("run", help="a run folder")
    parser.add_argument("--samples", type=int, help="noisy passes of the Bayesian predictive (as in the run)")
    parser.add_argument("--device", help="auto, cpu, cuda, … (as in the run)")
    parser.add_argument("--json", action="store_true", help="everything as one JSON object")
    options = parser.parse_args(arguments)
    config, prepared, network = load_run(options.run, options.device)
    if options.samples is not None:
        config = config.model_copy(update={"eval_samples": options.samples})
    metrics = _metrics(network, prepared, config)
    print(json.dumps(metrics) if options.json else _table(metrics, prepared.splits.classes))
    return 0


def _parser() -> argparse.ArgumentParser:
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
    parser.add_argument("--quiet", action="store_true", help="no progress, only the result")
    parser.add_argument("--list", action="store_true", help="show shipped configurations and data sets")
    parser.add_argument("--settings", action="store_true", help="show every setting, its default and its meaning")
    return parser


def _folder_and_config(options: argparse.Namespace, overrides: list[str], here: World) -> tuple[RunFolder, Config]:
    out = options.out or f"runs/{Path(options.configuration).stem}"
    folder = RunFolder(Path(out))
    if options.resume:
        if overrides:
            raise AxonnxError(f"--resume goes on with the settings in {out}/config.toml; drop {overrides[0]!r}")
        return folder, folder.config()
    if options.data_root is not None:
        overrides = [*overrides, f"--data.root={json.dumps(options.data_root)}"]
    config = read_config(options.configuration, overrides)
    if here.leads:
        folder.create(config, options.overwrite)
    here.wait()
    return folder, config


def _restore(folder: RunFolder, training: Training, prepared: Prepared, config: Config) -> None:
    if not folder.checkpoint.joinpath("checkpoint.json").exists():
        return  # killed before the first checkpoint: the beginning is where it goes on
    position = load_checkpoint(folder.checkpoint, training.network, training.optimiser)
    if position.data_digest != prepared.splits.digest:
        raise AxonnxError(f"{folder.path}: the data set {config.data.name!r} is not the one this run began with")
    training.noise.set_state(position.noise_state)
    training.epochs_done = position.epochs_done
    training.rows = folder.read_results(position.epochs_done)


def _close(folder: RunFolder, training: Training, prepared: Prepared, config: Config, quiet: bool) -> None:
    """Final figures, the picture, and what to do next."""
    metrics = _metrics(training.network, prepared, config)
    folder.write_metrics(metrics)
    draw_curves(folder.path / "curves.png", training.rows, folder.path.name)
    folder.log(f"finished after {training.epochs_done} epochs")
    print(_table(metrics, prepared.splits.classes))
    if not quiet:
        print(f"run folder: {folder.path}", file=sys.stderr)


@torch.no_grad()
def _metrics(network: Network, prepared: Prepared, config: Config) -> dict[str, Any]:
    device = next(network.parameters()).device
    predictions = final_predictions(network, prepared, config, device)
    return {name: {**found.metrics().as_dict(), "rates": found.rates} for name, found in predictions.items()}


def _table(metrics: dict[str, Any], classes: Sequence[str]) -> str:
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
    count, true, guess = max(pairs)
    return f"most frequent confusion: {classes[true]!r} taken for {classes[guess]!r}, {count} times" if count else None


def _listing() -> str:
    lines = ["configurations:"]
    lines += [f"  {name:<28}{entry['about']}" for name, entry in shipped().items()]
    lines += ["", "data sets:"]
    lines += [f"  {name:<28}{about}" for name, about in available().items()]
    return "\n".join(lines)
