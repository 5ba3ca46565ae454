"""Callbacks of a training, and those that hand its figures to TensorBoard, Weights & Biases, MLflow and Lightning."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

Figures = Mapping[str, float]


class Callback:
    """Hears of a training; derive from it and override what you need.

    Examples:
        >>> class Best(axonnx.Callback):
        ...     accuracy = 0.0
        ...
        ...     def on_epoch(self, epoch, figures):
        ...         self.accuracy = max(self.accuracy, figures["test_accuracy"])
        >>> best, settings = Best(), {"optimiser.epochs": 2, "model.hidden": [8], "eval_samples": 1}
        >>> run = axonnx.Run.train("digits-saccade", "best", settings=settings, callbacks=[best])
        >>> 0.0 < best.accuracy <= 1.0
        True
    """

    def on_start(self, folder: Path, settings: Mapping[str, Any], epochs_done: int) -> None:
        """Take the run folder, all settings by their full names, and the epochs that an earlier process trained."""

    def on_epoch(self, epoch: int, figures: Figures) -> None:
        """Take the figures of an epoch, counted from 1; they are the columns of results.csv."""

    def on_end(self, figures: Figures) -> None:
        """Take the final figures of each part of the data, as ``test/accuracy``."""

    def close(self) -> None:
        """Release everything; also called after a failure."""


class TensorBoard(Callback):
    """Write each figure over its epoch to the run folder; every training does so if TensorBoard is installed."""

    def on_start(self, folder: Path, settings: Mapping[str, Any], epochs_done: int) -> None:
        """Open the event file; what a killed run wrote about later epochs is written again."""
        from torch.utils.tensorboard import SummaryWriter

        self.writer = SummaryWriter(log_dir=str(folder / "tensorboard"), purge_step=epochs_done + 1)

    def on_epoch(self, epoch: int, figures: Figures) -> None:
        """Write one more epoch."""
        for name, value in figures.items():
            self.writer.add_scalar(name, value, epoch)
        self.writer.flush()

    def close(self) -> None:
        """Close the event file."""
        if hasattr(self, "writer"):
            self.writer.close()


class WandB(Callback):
    """Log to Weights and Biases; the options are those of ``wandb.init``, as ``project`` and ``mode="offline"``."""

    def __init__(self, **options: Any) -> None:
        self.options = options
        self.run: Any = None

    def on_start(self, folder: Path, settings: Mapping[str, Any], epochs_done: int) -> None:
        """Begin a run with the settings as its configuration."""
        import wandb

        self.run = wandb.init(**{"name": folder.name, "dir": str(folder), "config": dict(settings), **self.options})

    def on_epoch(self, epoch: int, figures: Figures) -> None:
        """Log one more epoch."""
        self.run.log(dict(figures), step=epoch)

    def on_end(self, figures: Figures) -> None:
        """Keep the final figures in the summary."""
        self.run.summary.update(dict(figures))

    def close(self) -> None:
        """End the run."""
        if self.run is not None:
            self.run.finish()


class MLflow(Callback):
    """Log to MLflow, in the run that is active or in a new one; the options are those of ``mlflow.start_run``."""

    def __init__(self, **options: Any) -> None:
        self.options, self.own = options, False

    def on_start(self, folder: Path, settings: Mapping[str, Any], epochs_done: int) -> None:
        """Begin a run with the settings as its parameters."""
        import mlflow

        self.own = mlflow.active_run() is None
        if self.own:
            mlflow.start_run(**{"run_name": folder.name, **self.options})
        mlflow.log_params({name: str(value)[:500] for name, value in settings.items()})  # its limit

    def on_epoch(self, epoch: int, figures: Figures) -> None:
        """Log one more epoch."""
        import mlflow

        mlflow.log_metrics(dict(figures), step=epoch)

    def on_end(self, figures: Figures) -> None:
        """Log the final figures."""
        import mlflow

        mlflow.log_metrics(dict(figures))

    def close(self) -> None:
        """End the run that was begun here."""
        if self.own:
            import mlflow

            mlflow.end_run()


class LightningLogger(Callback):
    """Log to any logger of Lightning, such as CSVLogger, NeptuneLogger or CometLogger."""

    def __init__(self, logger: Any) -> None:
        self.logger = logger

    def on_start(self, folder: Path, settings: Mapping[str, Any], epochs_done: int) -> None:
        """Log the settings."""
        self.logger.log_hyperparams(dict(settings))

    def on_epoch(self, epoch: int, figures: Figures) -> None:
        """Log one more epoch."""
        self.logger.log_metrics(dict(figures), step=epoch)
        self.logger.save()

    def on_end(self, figures: Figures) -> None:
        """Log the final figures."""
        self.logger.log_metrics(dict(figures))

    def close(self) -> None:
        """Write what is left."""
        self.logger.finalize("finished")


class Callbacks(Callback):
    """Several callbacks, with TensorBoard's first if it is installed."""

    def __init__(self, given: tuple[Callback, ...] = ()) -> None:
        wanted = has_tensorboard() and not any(isinstance(each, TensorBoard) for each in given)
        self.all = (TensorBoard(), *given) if wanted else given

    def on_start(self, folder: Path, settings: Mapping[str, Any], epochs_done: int) -> None:
        """Tell all."""
        for each in self.all:
            each.on_start(folder, flat(settings), epochs_done)

    def on_epoch(self, epoch: int, figures: Mapping[str, Any]) -> None:
        """Tell all what is a number."""
        for each in self.all:
            each.on_epoch(epoch, {k: v for k, v in flat(figures).items() if _is_number(v) and k != "epoch"})

    def on_end(self, figures: Mapping[str, Any]) -> None:
        """Tell all what is a number."""
        for each in self.all:
            each.on_end({k: v for k, v in flat(figures, "/").items() if _is_number(v)})

    def close(self) -> None:
        """Tell all."""
        for each in self.all:
            each.close()


def has_tensorboard() -> bool:
    """Whether TensorBoard is installed."""
    try:
        import torch.utils.tensorboard  # noqa: F401
    except ImportError:
        return False
    return True


def flat(tree: Mapping[str, Any], between: str = ".") -> dict[str, Any]:
    """Return the leaves of nested tables by their full names."""
    found: dict[str, Any] = {}
    for name, value in tree.items():
        inner = flat(value, between) if isinstance(value, Mapping) else None
        found |= {name: value} if inner is None else {f"{name}{between}{key}": each for key, each in inner.items()}
    return found


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
