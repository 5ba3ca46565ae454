"""``Run``: a trained folder, and everything that can be done with it. Torch is imported when it is used."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from axonnx.base.errors import AxonnxError
from axonnx.base.progress import Progress
from axonnx.model import Model, Natural, PathLike, Positive, card, load

if TYPE_CHECKING:
    from axonnx.export.convert.importing import Imported
    from axonnx.runtime.measure.verify_result import VerifyResult
    from axonnx.train.callbacks import Callback
    from axonnx.train.sweeping import SweepResult
    from axonnx.train.trained import Trained

Mode = Literal["mfa", "sampled", "stochastic"]
Stored = Literal["float32", "int16", "int8", "integer8", "integer4", "integer2"]
MEMBERS = 8  # of an export with collapse="sampled"


class Run:
    """A run folder: a trained network with its configuration, its data and its figures.

    Args:
        folder: The run folder.
        trust_code: Whether the code of an own network that the folder holds, ``network.py``, may be executed.

    Examples:
        >>> axonnx.Run("digits")
        Run('digits': digits-saccade, spiking-mlp sbnn, 1 of 1 epochs)
    """

    def __init__(self, folder: PathLike, *, trust_code: bool = False) -> None:
        self.folder = Path(folder)
        if trust_code:
            from axonnx.train.config import own

            own.trust_code(self.folder)
        self.leads = True  # False in those processes of a distributed training that write nothing
        if not (self.folder / "config.toml").is_file():
            raise AxonnxError(f"{self.folder}: no run here (config.toml is missing). Start one: axonnx train")

    def __fspath__(self) -> str:
        """Return the path of the folder: a run is one, wherever a path is expected."""
        return str(self.folder)

    @classmethod
    def train(
        cls,
        configuration: Any = None,
        output: PathLike | None = None,
        *,
        data: Any = None,
        settings: Mapping[str, Any] | None = None,
        resume: bool = False,
        overwrite: bool = False,
        callbacks: Sequence[Callback] = (),
        progress: Progress | None = None,
    ) -> Run:
        """Train a network and leave a run folder that has everything.

        Args:
            configuration: A shipped configuration, a TOML file, FILE.py:Class of your own network, or (from Python) a
                ``Config`` or the class.
            output: Run folder to write (default: runs/NAME).
            data: Data to train on instead of the configuration's: the name of a data set, or a path. From Python also
                a data set of torch, torchvision or tonic, a DataLoader, (samples, labels), or a pair for training and
                test; the run keeps a copy of their samples.
            settings: Settings that replace those of the configuration, e.g. ``{"optimiser.epochs": 10}``. Short names
                such as epochs, batch_size and lr are accepted.
            resume: Start the run, or go on with it if it was started, to the same bits; for commands that a queue
                restarts.
            overwrite: Discard the run that the folder holds.
            callbacks: Hear of every epoch and its figures; see ``axonnx.Callback``.
            progress: Hears how far the work is.

        Returns:
            The finished run.

        Raises:
            AxonnxError: If a setting is wrong, or the folder holds another run.

        Examples:
            >>> short = {"epochs": 1, "hidden": [8], "eval_samples": 1}
            >>> axonnx.Run.train("digits-saccade", "small", settings=short).classes[:3]
            ('0', '1', '2')
        """
        from axonnx.train.run import train_run

        if resume and overwrite:
            raise AxonnxError("resume goes on with a run and overwrite discards it: give one of them")
        done = train_run(
            configuration,
            None if output is None else Path(output),
            data=os.fspath(data) if isinstance(data, os.PathLike) else data,
            settings=settings,
            resume=resume,
            overwrite=overwrite,
            callbacks=callbacks,
            progress=progress,
        )
        run = cls(done.folder)
        run.leads = bool(done.metrics)
        return run

    @cached_property
    def trained(self) -> Trained:
        """The run with its network and its data in memory; needs torch."""
        from axonnx.train.trained import open_run

        return open_run(self.folder)

    @property
    def metrics(self) -> dict[str, Any]:
        """The figures of every part of the data, as training ended; empty before that."""
        path = self.folder / "metrics.json"
        found: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.is_file() else {}
        return found

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes."""
        found: tuple[str, ...] = self.trained.classes
        return found

    def __repr__(self) -> str:
        facts = self._facts()
        return f"{type(self).__name__}({str(self.folder)!r}: {facts['data']}, {facts['network']}, {facts['epochs']})"

    def _repr_html_(self) -> str:
        return card(str(self.folder), self._facts() | self._figures())

    def _facts(self) -> dict[str, str]:
        import tomllib

        config = tomllib.loads((self.folder / "config.toml").read_text("utf-8"))
        results = self.folder / "results.csv"
        done = max(0, len(results.read_text("utf-8").splitlines()) - 1) if results.is_file() else 0
        total = config.get("optimiser", {}).get("epochs", 30) + config.get("finetune", {}).get("epochs", 0)
        variant = config.get("variant", {}).get("name", "sbnn")
        return {
            "data": config["data"]["name"],
            "network": f"{config['model']['network']} {variant}",
            "epochs": f"{done} of {total} epochs",
        }

    def _figures(self) -> dict[str, str]:
        return {
            f"accuracy, {part}": f"{100 * found['accuracy']:.1f} %, {found['samples']:,} samples"
            for part, found in self.metrics.items()
        }

    def resume(self, *, progress: Progress | None = None) -> Run:
        """Go on with an interrupted training, to the same bits as without the interruption.

        Args:
            progress: Hears how far the work is.

        Returns:
            The finished run.

        Examples:
            >>> axonnx.Run("digits").resume().folder.name
            'digits'
        """
        return type(self).train(None, self.folder, resume=True, progress=progress)

    def export(
        self,
        output: PathLike = "model.onnx",
        *,
        collapse: Mode = "mfa",
        members: Positive | None = None,
        seed: Natural = 0,
        calibrate: bool = False,
        prune: float | None = None,
        weights: Stored = "int16",
        form: Literal["sequence", "step"] = "sequence",
        trace: bool = False,
        passes: Positive = 8,
        limit: Positive | None = None,
        coverage: float | None = None,
        dt: float = 1e-4,
        progress: Progress | None = None,
    ) -> Model:
        """Collapse the trained posterior and write it as one ONNX file with the same bits in every engine.

        Args:
            output: File to write; a name that ends in .nir gets a NIR graph beside the ONNX file.
            collapse: mfa (means, no noise), sampled (an ensemble of weight sets), or stochastic (neurons keep their
                noise).
            members: Weight sets of collapse sampled (default: 8).
            seed: Seed of sampled weights and of measured noise.
            calibrate: Move thresholds so that firing rates survive the collapse.
            prune: Remove weights whose |mean|/std is below this.
            weights: Width of the stored weights; float32 keeps the finest grid. With integer8, integer4 and integer2
                (-1, 0, 1) the neurons compute in integers too.
            form: Whole windows, or one step.
            trace: Make spikes and membranes of every layer outputs of the file.
            passes: Noisy passes of the Bayesian predictive.
            limit: Test samples to measure on, of all classes (default: all).
            coverage: Fit a temperature and sets of possible classes that hold the true one with this probability, e.g.
                0.9, on the validation part of the run.
            dt: Time step of a NIR graph in seconds.
            progress: Hears how far the work is.

        Returns:
            The exported file, loaded. ``model.contract.accuracy`` has the accuracy of each way to run the network.

        Raises:
            AxonnxError: If the network cannot be written exactly, or the file cannot be written.

        Examples:
            >>> model = axonnx.Run("digits").export("two.onnx", collapse="sampled", members=2, passes=1, limit=20)
            >>> model.contract.collapse.members
            2
        """
        from axonnx.export.exporting import check_output, export_run

        place = Path(output)
        check_output(place)
        file = place.with_suffix(".onnx")
        # A network that NIR cannot express leaves no file behind: both are written once the graph is known to exist.
        with tempfile.TemporaryDirectory() as folder:
            done = export_run(
                self.folder,
                Path(folder, file.name) if place.suffix == ".nir" else place,
                mode=collapse,
                members=members,
                seed=seed,
                prune=prune,
                weights=weights,
                calibrate=calibrate,
                form=form,
                trace=trace,
                passes=passes,
                limit=limit,
                coverage=coverage,
                tell=(progress or Progress()).note,
            )
            if place.suffix != ".nir":
                return load(done.path)
            model = load(done.path)
            model.save(place, dt=dt)
            return load(model.save(file))

    def verify(self, model: Model | PathLike, **options: Any) -> VerifyResult:
        """Prove that a file is what this run was trained to be; the options are those of ``Model.verify``.

        Args:
            model: The exported file.
            **options: See ``Model.verify``.

        Returns:
            The result; ``verified`` says whether every bit is equal.

        Examples:
            >>> axonnx.Run("digits").verify("digits.onnx", limit=2).verified
            True
        """
        from axonnx.runtime.measure.verify_result import VerifyResult

        found = (model if isinstance(model, Model) else load(model)).verify(self, **options)
        assert isinstance(found, VerifyResult)
        return found

    def evaluate(
        self, *, part: str | None = None, passes: Positive | None = None, device: str | None = None
    ) -> dict[str, Any]:
        """Measure accuracy and calibration of the trained network, before any collapse.

        Args:
            part: train, validation or test (default: the figures of every part that training ends with).
            passes: Noisy passes of the Bayesian predictive (default: as in the run).
            device: auto, cpu, cuda, … (default: as in the run).

        Returns:
            Figures by part, as in metrics.json.

        Raises:
            AxonnxError: If the data has no such part.

        Examples:
            >>> list(axonnx.Run("digits").evaluate(part="test", passes=1))
            ['test', 'test_bayesian']
        """
        from axonnx.train.run import final_metrics, restore_run

        config, prepared, network = restore_run(self.folder, device)
        if passes is not None:
            config = config.model_copy(update={"eval_samples": passes})
        found = final_metrics(network, prepared, config)
        if part is None:
            return found
        if part not in prepared.splits.parts:
            known = ", ".join(prepared.splits.parts)
            raise AxonnxError(f"{self.folder}: the data has no part {part!r}; it has {known}")
        return {name: figures for name, figures in found.items() if name.startswith(part)}

    def report(
        self, output: PathLike = "report.html", *, model: Model | PathLike | None = None, **options: Any
    ) -> Path:
        """Write one HTML page about this run and a file of it; the options are those of ``Model.report``.

        Args:
            output: Page to write.
            model: An exported file of this run (default: model.onnx in the run folder, exported if it is not there).
            **options: See ``Model.report``.

        Returns:
            The path of the page.

        Examples:
            >>> axonnx.Run("digits").report("report.html", model="digits.onnx", limit=20).name
            'report.html'
        """
        if model is None:
            place = self.folder / "model.onnx"
            model = load(place) if place.is_file() else self.export(place)
        return (model if isinstance(model, Model) else load(model)).report(output, run=self.folder, **options)

    @classmethod
    def sweep(
        cls,
        configuration: str,
        output: PathLike | None = None,
        *,
        settings: Mapping[str, Sequence[Any]] | None = None,
        seeds: Positive = 3,
        jobs: int | str = 1,
        progress: Progress | None = None,
    ) -> SweepResult:
        """Train with every combination of some settings and several seeds. Interrupted, the same call goes on.

        The best is chosen on the validation part, never on test data. A second call on the same folder, started beside
        it, shares the work.

        Args:
            configuration: A shipped configuration, or a TOML file.
            output: Folder of runs and results (default: runs/sweep-NAME).
            settings: Settings and their values, as in ``{"optimiser.weight_rate": [1e-3, 3e-3]}``.
            seeds: Seeds of every combination.
            jobs: Processes on this machine, or a Dask cluster: tcp://host:8786, or slurm:profile.yaml to start one.
            progress: Hears how far the work is.

        Returns:
            All points, and the best one with its run.

        Raises:
            AxonnxError: If a setting is wrong, or every run was stopped.
        """
        from axonnx.runtime.jobs.running import pool_for
        from axonnx.train.sweeping import sweep_runs

        folder = Path("runs") / f"sweep-{Path(configuration).stem}" if output is None else Path(output)
        tell = (progress or Progress()).note
        return sweep_runs(configuration, settings or {}, folder, seeds=seeds, pool=pool_for(jobs), tell=tell)


def import_network(
    source: Any,
    output: PathLike = "model.onnx",
    *,
    run: PathLike | None = None,
    data: PathLike | None = None,
    settings: Mapping[str, Any] | None = None,
    shape: Sequence[int] | None = None,
    steps: Positive = 50,
    largest: Positive = 1,
    dt: float | None = None,
    reset: Literal["value", "zero", "subtract", "late-zero", "late-subtract"] = "value",
    tie: Literal["silent", "fires"] = "silent",
    witness: Any = None,
    value: Natural = 0,
    decision: Literal["count", "sum", "mean", "last", "maximum"] | None = None,
    classes: Sequence[str] | None = None,
    limit: Positive = 64,
    weights: Stored = "float32",
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Imported:
    """Bring in a trained network of snnTorch, SpikingJelly, Norse or NIR: a run folder, one ONNX file, and a proof.

    Without data, random events take its place, labelled with the source's own decisions. The proof compares the file
    with its source, spike by spike.

    Args:
        source: A NIR file, FILE.py:FUNCTION that returns the trained torch module, or (from Python) the module.
        output: File to write; the run folder has its name without .onnx.
        run: Run folder to write instead.
        data: Data the network is fed: the name of a data set, or a path.
        settings: Settings of the data, e.g. ``{"data.bins": 20, "data.duration_ms": 300}``.
        shape: Channels, height and width of one time step, e.g. 2x34x34, if no data tells them.
        steps: Time steps of random input.
        largest: Largest count of random input.
        dt: Time step of a NIR file in seconds; its neurons have time constants.
        reset: What a spike does to its membrane in a NIR file, which does not state it; late: one step later.
        tie: Whether a membrane equal to its threshold fires in a NIR file.
        witness: FILE.py:FUNCTION of the module that a NIR file was made of, or its recorded spikes (npz, NIR data).
        value: Which of the values that the module returns has the classes.
        decision: How the network decides over time, if what it returns does not show it.
        classes: Names of the classes, with commas between them (random input).
        limit: Samples to compare.
        weights: Integer width of the stored weights; float32 keeps the finest grid.
        overwrite: Replace the run that is there.
        progress: Hears how far the work is.

    Returns:
        The run folder, the file, and the proof.

    Raises:
        AxonnxError: If the network has a part that is not known.

    Examples:
        >>> import snntorch
        >>> from torch import nn
        >>> network = nn.Sequential(nn.Flatten(), nn.Linear(16, 3), snntorch.Leaky(beta=0.9, init_hidden=True))
        >>> imported = axonnx.import_network(network, "theirs.onnx", shape=(1, 4, 4), steps=5, limit=8)
        >>> imported.source, imported.exported.path.name
        ('Sequential (snnTorch)', 'theirs.onnx')
    """
    from axonnx.export.convert import importing

    return importing.import_network(
        source,
        Path(output),
        run=None if run is None else Path(run),
        data=None if data is None else os.fspath(data),
        settings=settings,
        shape=shape,
        steps=steps,
        largest=largest,
        dt=dt,
        reset=reset,
        tie=tie,
        witness=witness,
        value=value,
        decision=decision,
        classes=classes,
        samples=limit,
        weights=weights,
        overwrite=overwrite,
        tell=(progress or Progress()).note,
    )
