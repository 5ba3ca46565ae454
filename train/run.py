"""A whole run: from a configuration to a folder that tells everything, and back from the folder to the network."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch

from axonnx.base.errors import AxonnxError
from axonnx.models import Network
from axonnx.train.build import Prepared, make_network, prepare
from axonnx.train.config.read import parse_config, to_toml
from axonnx.train.config.settings import Config
from axonnx.train.data.left_out import classes_left_out, left_out
from axonnx.train.distributed import World
from axonnx.train.finite import NonFiniteError
from axonnx.train.health import new_warnings
from axonnx.train.loop import Training, final_predictions, fit, new_training
from axonnx.train.output.checkpoint import INDEX, Position, load_checkpoint, save_checkpoint
from axonnx.train.output.curves import draw_curves
from axonnx.train.output.progress import Silent, for_terminal
from axonnx.train.output.run_folder import RunFolder
from axonnx.train.output.table import metrics_table
from axonnx.train.output.tensorboard import open_board


def train_run(
    folder: RunFolder,
    config: Config,
    *,
    resume: bool = False,
    overwrite: bool = False,
    here: World | None = None,
    quiet: bool = False,
) -> Training:
    """Train as ``config`` says and leave everything in ``folder``, which is touched only when all is ready."""
    here = here or World()
    prepared = prepare(config.data)
    network = make_network(config, prepared)
    training = new_training(network, config, here.device(config.device))
    with folder.locked() if here.leads else nullcontext():
        changed = _restore(folder, training, prepared, config) if resume else ""
        if here.leads:
            if not resume:
                folder.create(config, overwrite)
            folder.log(f"{'resumed' if resume else 'started'} after epoch {training.epochs_done}{changed}")
            _tell_data(folder, prepared, quiet)
        _go_on(folder, training, prepared, config, here, quiet)
    return training


def _go_on(folder: RunFolder, training: Training, prepared: Prepared, config: Config, here: World, quiet: bool) -> None:
    """Train to the end, with a checkpoint after each epoch."""
    board = open_board(folder.tensorboard, training.epochs_done) if here.leads else None

    def keep(current: Training) -> None:
        folder.write_results(current.rows)
        random_state = {"seed": config.seed, "epoch": current.epochs_done}
        position = Position(
            current.epochs_done, random_state, to_toml(config), prepared.splits.digest, current.multipliers
        )
        save_checkpoint(folder.checkpoint, current.network, current.optimiser, position)
        for text in new_warnings(current.rows):
            _warn(folder, f"warning: epoch {current.epochs_done}: {text}")
        if board is not None:
            board.add(current.rows[-1])

    progress = for_terminal() if here.leads and not quiet else Silent()
    try:
        fit(training.network, prepared, config, training=training, world=here, progress=progress, after_epoch=keep)
    except NonFiniteError as fault:
        raise NonFiniteError(_stopped(folder, training, fault, here)) from None
    finally:
        progress.finish()
        if board is not None:
            board.close()
    if here.leads:
        _close(folder, training, prepared, config, quiet)


def _warn(folder: RunFolder, line: str) -> None:
    folder.log(line)
    print(f"axonnx train: {line}", file=sys.stderr)


def _tell_data(folder: RunFolder, prepared: Prepared, quiet: bool) -> None:
    """Say and keep how many samples there are, and what of them training does not see; warnings are never quiet."""
    splits, binning = prepared.splits, prepared.binning
    found = {} if binning is None else left_out(splits, binning)
    folder.write_data(
        {
            part: {"samples": np.bincount(data.labels, minlength=len(splits.classes)).tolist()}
            | (found[part].as_dict() if part in found else {})
            for part, data in splits.parts.items()
        }
    )
    lines = classes_left_out(splits)
    if binning is not None:
        lines += [line for part, each in found.items() for line in each.lines(part, binning)]
    for line in lines:
        folder.log(line)
        if not quiet or line.startswith("warning"):
            print(f"axonnx train: {line}", file=sys.stderr)


def _stopped(folder: RunFolder, training: Training, fault: NonFiniteError, here: World) -> str:
    """What to do after a stop; also in the log."""
    kept = f"The checkpoint after epoch {training.epochs_done} is intact"
    begin = f"{kept}: change {folder.path}/config.toml and go on with --resume"
    text = f"{fault}. " + (begin if training.epochs_done else "No epoch was finished: begin again with --overwrite")
    if here.leads:
        folder.log(f"stopped: {text}")
    return text


def load_run(path: str | Path, device: str | None = None) -> tuple[Config, Prepared, Network]:
    """A finished (or interrupted) run: its configuration, its data and its network with the last weights."""
    folder = RunFolder(Path(path))
    config = folder.config()
    prepared = prepare(config.data)
    network = make_network(config, prepared)
    _refuse_other_data(folder, load_checkpoint(folder.checkpoint, network), prepared, config)
    return config, prepared, network.to(World().device(device or config.device))


@torch.no_grad()
def final_metrics(network: Network, prepared: Prepared, config: Config) -> dict[str, Any]:
    """The figures of every part, as in metrics.json."""
    device = next(network.parameters()).device
    predictions = final_predictions(network, prepared, config, device)
    return {name: {**found.metrics().as_dict(), "rates": found.rates} for name, found in predictions.items()}


def _restore(folder: RunFolder, training: Training, prepared: Prepared, config: Config) -> str:
    """Go back to the checkpoint; what it returns says which settings were changed by hand since."""
    if not folder.checkpoint.joinpath(INDEX).exists():
        return ""  # killed before the first checkpoint: the beginning is where it goes on
    position = load_checkpoint(folder.checkpoint, training.network, training.optimiser)
    _refuse_other_data(folder, position, prepared, config)
    training.epochs_done, training.multipliers = position.epochs_done, position.multipliers
    training.rows = folder.read_results(position.epochs_done)
    before = to_toml(parse_config(position.config, f"{folder.checkpoint}")).splitlines()
    changed = [line for line in to_toml(config).splitlines() if line not in before]
    return f"; changed since: {', '.join(changed)}" if changed else ""


def _refuse_other_data(folder: RunFolder, position: Position, prepared: Prepared, config: Config) -> None:
    if position.data_digest != prepared.splits.digest:
        raise AxonnxError(
            f"{folder.path}: the data set {config.data.name!r} is not the one this run was trained on (sha256 "
            f"{prepared.splits.digest[:12]}…, then {position.data_digest[:12]}…); bring that one back, or train again"
        )


def _close(folder: RunFolder, training: Training, prepared: Prepared, config: Config, quiet: bool) -> None:
    """Final figures, the picture, and what to do next."""
    metrics = final_metrics(training.network, prepared, config)
    folder.write_metrics(metrics)
    draw_curves(folder.path / "curves.png", training.rows, folder.path.name)
    folder.log(f"finished after {training.epochs_done} epochs")
    print(metrics_table(metrics, prepared.splits.classes))
    if not quiet:
        print(f"run folder: {folder.path}", file=sys.stderr)
