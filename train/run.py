"""A whole run: from a configuration to a folder that tells everything, and back from the folder to the network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.base.progress import Progress
from axonnx.models import Network
from axonnx.runtime.format.contract import InputContract
from axonnx.train.build import Prepared, input_contract, make_network, prepare
from axonnx.train.callbacks import Callback, Callbacks
from axonnx.train.checkpoint import INDEX, Position, add_witness, load_checkpoint, load_start, save_checkpoint
from axonnx.train.config.own import OwnSource, kept_source, own_source
from axonnx.train.config.read import as_tree, check_config, fields, flat, merged, parse_config, read_config, to_toml
from axonnx.train.config.settings import Config, ModelConfig
from axonnx.train.data.left_out import classes_left_out, left_out
from axonnx.train.data.objects import options_of, write_objects
from axonnx.train.distributed import World, world
from axonnx.train.evaluate import Predictions
from axonnx.train.health import NonFiniteError, new_warnings
from axonnx.train.loop import Training, final_predictions, fit, new_training
from axonnx.train.objective import numbers
from axonnx.train.output_files import draw_curves
from axonnx.train.own import reference
from axonnx.train.run_folder import RunFolder
from axonnx.train.training_witness import circumstances, take_witness, written


@dataclass(frozen=True)
class Finished:
    """A run that came to its end: where it is, and its final figures (empty in processes that do not lead)."""

    folder: Path
    training: Training
    classes: tuple[str, ...]
    metrics: Mapping[str, Any]
    arriving: InputContract

    @property
    def network(self) -> Network:
        """The trained network; ``export_network(run.network, run.arriving, run.classes, "model.onnx")`` exports it."""
        return self.training.network


def train_run(
    configuration: str | Path | Config | type[Network] | None = None,
    out: str | Path | None = None,
    *,
    data: Any = None,
    settings: Mapping[str, Any] | None = None,
    resume: bool = False,
    overwrite: bool = False,
    callbacks: Sequence[Callback] = (),
    progress: Progress | None = None,
    here: World | None = None,
) -> Finished:
    """Train, and leave everything in the folder ``out``; the arguments are those of ``axonnx.Run.train``.

    Your own network is its class, or "FILE.py:Class"; its arguments are ``model.arguments`` in ``settings``.
    """
    with nullcontext(here) if here is not None else world() as present:
        folder = RunFolder(_out(configuration, out))
        resume = resume and folder.holds_run(configuration is not None)
        if not isinstance(data, str | Path | None):
            data, settings = _kept_data(folder, data, settings, resume, overwrite, present)
        config = _config(folder, configuration, _with_data(settings, data), resume)
        source = _source(folder, configuration, config, resume)
        config = config if source is None else source.kept_in(config)
        if not resume and not overwrite:
            folder.check_free()
        present.wait()  # no process looks once the first one writes
        return _train(
            folder, config, source, resume, overwrite, present, progress or Progress(), Callbacks(tuple(callbacks))
        )


Configuration = str | Path | Config | type[Network] | None


def _kept_data(
    folder: RunFolder, data: Any, settings: Mapping[str, Any] | None, resume: bool, overwrite: bool, here: World
) -> tuple[Path | None, Mapping[str, Any]]:
    """Where the run keeps the samples of an object, and the settings with the names of its classes."""
    if not resume and not overwrite:
        folder.check_free()
    if here.leads and not resume:
        write_objects(data, folder.path / "data")
    here.wait()
    return folder.path / "data", {**options_of(data), **(settings or {})}


def _with_data(settings: Mapping[str, Any] | None, data: str | Path | None) -> Mapping[str, Any] | None:
    return settings if data is None else {"data.name": str(data), **(settings or {})}


def _out(configuration: Configuration, out: str | Path | None) -> Path:
    if out is not None:
        return Path(out)
    if isinstance(configuration, type):
        return Path("runs") / configuration.__name__
    if configuration is None or isinstance(configuration, Config):
        raise AxonnxError("which folder is the run's? Give out; it follows from a configuration's name alone")
    return Path("runs") / Path(configuration).stem


def _config(
    folder: RunFolder, configuration: Configuration, settings: Mapping[str, Any] | None, resume: bool
) -> Config:
    if resume:
        return _started(folder, configuration, settings)
    if isinstance(configuration, Config):
        if settings:
            raise AxonnxError("settings replace those of a name or a file; put them into the Config itself")
        return configuration
    if (own := _own_network(configuration)) is not None:
        return check_config(as_tree({"model.network": own, **(settings or {})}), own.rpartition(":")[2])
    given: object = configuration
    if isinstance(given, Network):
        kind = type(given).__name__
        raise AxonnxError(
            f"train_run got a network, which a run folder could not make again; give its class, {kind}, and its "
            f"arguments as settings={{'model.arguments': {{…}}}}"
        )
    if configuration is None:
        raise AxonnxError("which configuration? Give a shipped name, a .toml file, a Config, or your network's class")
    return read_config(str(configuration), settings)


NAMING = ("data.name", "model.network", "variant.name")  # settings by which a configuration is another one


def _started(folder: RunFolder, configuration: Configuration, settings: Mapping[str, Any] | None) -> Config:
    """Return the settings of the run that was started; a command that asks for others is refused."""
    kept = folder.config()
    over = as_tree(settings or {})
    asked = list(flat(over))
    if isinstance(configuration, str | Path) and _own_network(configuration) is None:
        wanted = read_config(str(configuration), settings)
        asked += NAMING
    elif isinstance(configuration, Config):
        wanted, asked = configuration, [key for key, _ in fields()]
    else:
        wanted = check_config(merged(kept.model_dump(exclude_none=True), over), str(folder.path))
    for key in asked:
        before, now = (_value(config, key) for config in (kept, wanted))
        if now != before and not (key == "model.network" and kept.model.network_sha256):
            raise AxonnxError(
                f"{folder.path}: the run was started with {key} = {before!r} and this command says {now!r}. Leave it "
                f"out to go on, or name another folder",
                options=("overwrite",),
            )
    return kept


def _value(config: Config, key: str) -> Any:
    """Return a setting by its dotted name, also inside a table."""
    value: Any = config.model_dump()
    for part in key.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _own_network(configuration: Configuration) -> str | None:
    """FILE.py:Class of a class, or of a text that names one."""
    if isinstance(configuration, type):
        return reference(configuration)
    return configuration if isinstance(configuration, str) and ".py:" in configuration else None


def _source(folder: RunFolder, configuration: Configuration, config: Config, resume: bool) -> OwnSource | None:
    """Find the source of one's own network: a run's own copy, or what the configuration names."""
    if resume:
        if config.model.network_sha256 is not None and configuration is not None:
            _named_again(configuration)
        return kept_source(config.model, folder.path)
    return own_source(config.model, Path(configuration).parent if isinstance(configuration, str | Path) else Path())


def _named_again(configuration: Configuration) -> None:
    """Find the code that a command names which resumes a run: if it is the run's, the run's copy is trusted."""
    if (own := _own_network(configuration)) is not None:
        model, base = ModelConfig(network=own), Path()
    elif isinstance(configuration, Config):
        model, base = configuration.model, Path()
    else:
        model, base = read_config(str(configuration)).model, Path(str(configuration)).parent
    with suppress(AxonnxError):
        own_source(model, base)


def _train(
    folder: RunFolder,
    config: Config,
    source: OwnSource | None,
    resume: bool,
    overwrite: bool,
    here: World,
    progress: Progress,
    callbacks: Callbacks,
) -> Finished:
    prepared = prepare(config.data)
    network = make_network(config, prepared, source)
    if config.model.begin is not None and not resume:
        load_start(RunFolder(Path(config.model.begin)).checkpoint, network)
    training = new_training(network, config, here.device(config.device))
    with folder.locked() if here.leads else nullcontext():
        changed = _restore(folder, training, prepared, config) if resume else ""
        if here.leads:
            if not resume:
                folder.create(config, overwrite, source)
            folder.log(f"{'resumed' if resume else 'started'} after epoch {training.epochs_done}{changed}")
            _tell_data(folder, prepared, progress)
        try:
            if here.leads:
                callbacks.on_start(folder.path, config.model_dump(mode="json"), training.epochs_done)
            _go_on(folder, training, prepared, config, here, progress, callbacks)
            predictions = _final(training.network, prepared, config, here)
            metrics = figures_of(predictions)
            if here.leads:
                _close(folder, training, metrics)
                _witness(folder, training, prepared, config, predictions)
                callbacks.on_end(metrics)
        finally:
            callbacks.close()
    figures = metrics if here.leads else {}
    return Finished(folder.path, training, prepared.outputs, figures, input_contract(config, prepared))


def _go_on(
    folder: RunFolder,
    training: Training,
    prepared: Prepared,
    config: Config,
    here: World,
    progress: Progress,
    callbacks: Callbacks,
) -> None:
    """Train to the end, with a checkpoint after each epoch."""
    total = config.optimiser.epochs + config.finetune.epochs

    def keep(current: Training) -> None:
        folder.write_results(current.rows)
        random_state = {"seed": config.seed, "epoch": current.epochs_done}
        position = Position(
            current.epochs_done, random_state, to_toml(config), prepared.splits.digest, numbers(current.multipliers)
        )
        save_checkpoint(folder.checkpoint, current.network, current.optimiser, position)
        for text in new_warnings(current.rows):
            line = f"warning: epoch {current.epochs_done}: {text}"
            folder.log(line)
            progress.note(line)
        if current.epochs_done == total and config.noise.temper:
            line = f"noise.temper: every σ times {current.rows[-1]['noise_scale']:.3g}"
            folder.log(line)
            progress.note(line)
        callbacks.on_epoch(current.epochs_done, current.rows[-1])

    shown = progress if here.leads else Progress()
    try:
        fit(training.network, prepared, config, training=training, world=here, progress=shown, after_epoch=keep)
    except NonFiniteError as fault:
        raise NonFiniteError(_stopped(folder, training, fault, here)) from None
    except KeyboardInterrupt as ended:
        kept = f"{folder.path} keeps {training.epochs_done} of {total} epochs"
        ended.add_note(f"{kept}; resume to continue" if training.epochs_done else "no epoch was finished")
        raise


def _tell_data(folder: RunFolder, prepared: Prepared, progress: Progress) -> None:
    """Say and keep how many samples there are, and what of them training does not see."""
    splits, binning = prepared.splits, prepared.binning
    found = {} if binning is None else left_out(splits, binning)
    folder.write_data(
        {
            part: {"samples": np.bincount(data.labels, minlength=len(splits.classes)).tolist()}
            | (found[part].as_dict() if part in found else {})
            for part, data in splits.parts.items()
        }
    )
    lines = [*splits.notes, *classes_left_out(splits)]
    if binning is not None:
        lines += [line for part, each in found.items() for line in each.lines(part, binning)]
    for line in lines:
        folder.log(line)
        progress.note(line)


def _stopped(folder: RunFolder, training: Training, fault: NonFiniteError, here: World) -> str:
    """Say, also in the log, what to do after a stop."""
    kept = f"The checkpoint after epoch {training.epochs_done} is intact"
    begin = f"{kept}: change {folder.path}/config.toml and resume"
    text = f"{fault}. " + (begin if training.epochs_done else "No epoch was finished: begin again and overwrite")
    if here.leads:
        folder.log(f"stopped: {text}")
    return text


def write_run(
    path: str | Path,
    config: Config,
    prepared: Prepared,
    network: Network,
    overwrite: bool = False,
    looked_at: Mapping[str, NDArray[np.int64]] | None = None,
) -> Path:
    """Write a run folder of a network whose weights were made elsewhere, as training does before its first epoch.

    ``looked_at`` has the fingerprints of samples that something of the network was fitted on, by what was fitted.
    """
    folder = RunFolder(Path(path))
    training = new_training(network, config, torch.device("cpu"))
    training.looked_at.update(looked_at or {})
    folder.create(config, overwrite)
    with folder.locked():
        folder.log("written with weights that were made elsewhere")
        _tell_data(folder, prepared, Progress())
        position = Position(0, {"seed": config.seed, "epoch": 0}, to_toml(config), prepared.splits.digest)
        folder.write_results([])
        save_checkpoint(folder.checkpoint, network, training.optimiser, position)
        predictions = _final(network, prepared, config)
        folder.write_metrics(figures_of(predictions))
        _witness(folder, training, prepared, config, predictions)
    return folder.path


def restore_run(path: str | Path, device: str | None = None) -> tuple[Config, Prepared, Network]:
    """Restore a finished (or interrupted) run: its configuration, its data and its network with the last weights."""
    folder = RunFolder(Path(path))
    config = folder.config()
    prepared = prepare(config.data)
    network = make_network(config, prepared, kept_source(config.model, folder.path))
    _refuse_other_data(folder, load_checkpoint(folder.checkpoint, network), prepared, config)
    return config, prepared, network.to(World().device(device or config.device))


def final_metrics(network: Network, prepared: Prepared, config: Config, here: World | None = None) -> dict[str, Any]:
    """Measure the figures of every part, as in metrics.json; noisy passes only in the process that leads."""
    return figures_of(_final(network, prepared, config, here))


@torch.no_grad()
def _final(network: Network, prepared: Prepared, config: Config, here: World | None = None) -> dict[str, Predictions]:
    return final_predictions(network, prepared, config, next(network.parameters()).device, here)


def figures_of(predictions: Mapping[str, Predictions]) -> dict[str, Any]:
    """Return the figures that metrics.json states of these predictions."""
    return {name: {**found.metrics().as_dict(), "rates": found.rates} for name, found in predictions.items()}


def _witness(
    folder: RunFolder,
    training: Training,
    prepared: Prepared,
    config: Config,
    predictions: Mapping[str, Predictions],
) -> None:
    """Write beside the checkpoint what the network in memory does."""
    device = next(training.network.parameters()).device.type
    taken = take_witness(training, prepared, config, predictions) | written(folder.path)
    add_witness(folder.checkpoint, taken, circumstances(device))


def _restore(folder: RunFolder, training: Training, prepared: Prepared, config: Config) -> str:
    """Go back to the checkpoint; what it returns says which settings were changed by hand since."""
    if not folder.checkpoint.joinpath(INDEX).exists():
        return ""  # no checkpoint yet: start from epoch 0
    position = load_checkpoint(folder.checkpoint, training.network, training.optimiser)
    _refuse_other_data(folder, position, prepared, config)
    training.epochs_done, training.multipliers = position.epochs_done, {**position.multipliers}
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


def _close(folder: RunFolder, training: Training, metrics: dict[str, Any]) -> None:
    """Write the final figures and the picture."""
    folder.write_metrics(metrics)
    draw_curves(folder.path / "curves.png", training.rows, folder.path.name)
    # Rows that an earlier version wrote say nothing of it.
    shares = [row["waiting"] for row in training.rows if isinstance(row.get("waiting"), float)]
    waited = f"; {100 * np.mean(shares):.1f} % of training was waiting for data" if shares else ""
    folder.log(f"finished after {training.epochs_done} epochs{waited}")
