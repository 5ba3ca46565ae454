"""``Model``: an exported file, and everything that can be done with it. Torch is imported by ``verify(run)`` alone."""

from __future__ import annotations

import os
import shutil
import weakref
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.base.files import sha256_of
from axonnx.base.progress import Progress
from axonnx.runtime import model as runtime
from axonnx.runtime.engines.choose import MEASURING, EngineName
from axonnx.runtime.engines.interface import Engine
from axonnx.runtime.format.contract import describe_results
from axonnx.runtime.format.model_file import read_model_file
from axonnx.runtime.format.network_input import describe_input
from axonnx.runtime.frame_pipeline import FramePipeline, open_frames
from axonnx.runtime.program.instructions import Program
from axonnx.runtime.readers import Recording
from axonnx.runtime.streams.adapt import Fit
from axonnx.runtime.streams.decision import Decision
from axonnx.runtime.streams.frame_files import as_steps
from axonnx.runtime.streams.opening import open_stream
from axonnx.runtime.streams.pipeline import EventPipeline
from axonnx.runtime.streams.sources import open_source

if TYPE_CHECKING:
    from torch import nn

    from axonnx.compiling import Compiled
    from axonnx.runtime.measure.energy import Hardware
    from axonnx.runtime.measure.engine_result import CompiledResult, EngineResult
    from axonnx.runtime.measure.evaluation import Evaluation, ValueEvaluation
    from axonnx.runtime.measure.inspection import Inspection
    from axonnx.runtime.measure.profile_result import ProfileResult
    from axonnx.runtime.measure.verify_result import VerifyResult
    from axonnx.trained_run import Run

PathLike = str | os.PathLike[str]
Natural = Annotated[int, 0]  # the number is the least that is allowed
Positive = Annotated[int, 1]
Shift = Literal["first"]
Target = Literal["c", "js", "cortex-m", "verilog", "up5k"]
Disorder = Literal["refuse", "drop", "sort"]
SHARDS = 8  # of a verification on a cluster


class Model(runtime.Model):
    """An exported file, ready to run. ``axonnx.load`` opens one; running changes nothing in it.

    Examples:
        >>> axonnx.load("digits.onnx")
        Model('digits.onnx': spiking, mfa, [30, 2, 16, 16] → 10 classes, engine native)
    """

    def __init__(self, program: Program, engine: Engine, path: PathLike, asked: tuple[EngineName, int]) -> None:
        super().__init__(program, engine)
        self.path, self.asked = Path(path), asked
        self._facts: dict[str, float] = {}  # of the last profile, for the card

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the file's path and sha256 and the engine; another process loads the same file, or refuses another."""
        return _loaded_again, (str(self.path), sha256_of(self.path), *self.asked)

    def __repr__(self) -> str:
        contract = self.contract
        shape = [*(() if contract.input.steps is None else (contract.input.steps,)), *contract.input.shape]
        members = f" of {contract.collapse.members}" if contract.collapse.members > 1 else ""
        return (
            f"{type(self).__name__}({str(self.path)!r}: {contract.kind}, {contract.collapse.mode}{members}, {shape} → "
            f"{len(contract.classes)} {'classes' if contract.units is None else 'values'}, engine {self.engine.name})"
        )

    def _repr_html_(self) -> str:
        from axonnx.runtime.measure.inspection import way_text

        contract = self.contract
        rows = {
            "input": describe_input(contract.input),
            "classes" if contract.units is None else "values": describe_results(contract).partition(": ")[2],
            "collapse": f"{contract.collapse.mode}, weights stored as {contract.collapse.weights}",
            "engine": self.engine.name,
        }
        if contract.accuracy:
            last = contract.accuracy[-1]
            low, high = (100 * bound for bound in last.interval)
            rows[f"accuracy, {way_text(last, contract.collapse)}"] = (
                f"{100 * last.accuracy:.1f} % ({low:.1f} – {high:.1f} %), {last.samples:,} samples"
            )
        weights = [self.program.constants[each.weight] for each in contract.synapses]
        total = sum(weight.size for weight in weights)
        zeros = total - sum(np.count_nonzero(weight) for weight in weights)
        rows["weights"] = f"{total:,}, {100 * zeros / max(1, total):.1f} % of them zero"
        if self._facts:
            rows["activation sparsity"] = f"{100 * self._facts['sparsity']:.1f} %"
            rows["energy"] = f"{self._facts['energy']:,.1f} nJ for one inference"
        return card(str(self.path), rows)

    @classmethod
    def from_module(
        cls, net: nn.Module, x: Any, *, engine: EngineName = "auto", threads: Positive = 1, **settings: Any
    ) -> Model:
        """Make a model of a torch module: what ``axonnx.bayesian`` gave, or any module that it takes.

        Args:
            net: The module; it stays as it is.
            x: What it is called with: an example batch, (x, y), a Dataset or a DataLoader. The model admits inputs of
                this shape and number of time steps, and values up to the largest of these.
            engine: Inference engine; auto takes the fastest that works here.
            threads: Processor threads of the engine.
            **settings: ``classes``, ``collapse``, ``members``, ``seed``, ``prune``, ``weights``, ``form``, ``trace`` as
                in ``Run.export``; ``largest``, the largest count to admit; ``shape`` of one time step, if the layers
                do not tell it.

        Returns:
            A ``Model``, whose file exists until it is no longer used; ``save`` keeps it.

        Raises:
            AxonnxError: If a layer has no exact form, or values of ``x`` are no multiples of a power of two.

        Examples:
            >>> import snntorch, torch
            >>> from torch import nn
            >>> module = nn.Sequential(nn.Linear(16, 8), snntorch.Leaky(beta=0.9, init_hidden=True), nn.Linear(8, 3))
            >>> net, x = axonnx.bayesian(module, classes=3), torch.ones(5, 2, 16)
            >>> model = axonnx.Model.from_module(net, x, classes=["a", "b", "c"], weights="int8")
            >>> model.contract.classes, model.verify(net, x).verified
            (('a', 'b', 'c'), True)
        """
        from axonnx.export.convert.module_files import export_module

        folder = Path(mkdtemp(prefix="axonnx-"))
        try:
            loaded = runtime.load(export_module(net, x, folder / "model.onnx", **settings).path, engine, threads)
        except BaseException:
            shutil.rmtree(folder)
            raise
        model = cls(loaded.program, loaded.engine, folder / "model.onnx", (engine, threads))
        weakref.finalize(model, shutil.rmtree, folder, ignore_errors=True)
        return model

    def predict(  # type: ignore[override]
        self,
        data: Any,
        *,
        seed: Natural = 0,
        index: int | None = None,
        fit: Fit | str | Sequence[str] | None = None,
    ) -> Decision | list[Decision]:
        """Decide for one sample, or for each sample of a batch.

        A recording is one sample, as in training: its first window counts, from the contract's origin on. Events beyond
        it are left out and counted in ``decision.outside``.

        Args:
            data: A file, an array of events, a ``Recording``, frames [T, …] or an image as integers, a batch of these
                [N, …], or a list of files or recordings.
            seed: Seed of a stochastic file's noise.
            index: Which recording or sample of a file with many.
            fit: How recordings of another sensor are brought onto the network's.

        Returns:
            A ``Decision``; for a batch, a list, or a file of many frames, a list of them.

        Raises:
            AxonnxError: If the data is not what the network takes.

        Examples:
            >>> model = axonnx.load("digits.onnx")
            >>> decision = model.predict("recording.npz")
            >>> decision.label in decision.classes, decision.outside.total
            (True, 0)
            >>> len(model.predict(np.zeros((3, 30, 2, 16, 16), np.uint8)))
            3
        """
        if isinstance(data, list):
            return [found for each in data for found in _listed(self.predict(each, seed=seed, fit=fit))]
        entering = self.contract.input
        if isinstance(data, str | os.PathLike) and entering.binning is None:
            found = list(open_frames(self.engine, os.fspath(data), index=index, seed=seed).decisions())
            return found[0] if len(found) == 1 else found
        names = getattr(getattr(data, "dtype", None), "names", None)
        if isinstance(data, str | os.PathLike | Recording) or names:
            return super().predict(data, seed=seed, index=index, fit=Fit.of(fit))
        values = np.asarray(data)
        sample = len(entering.shape) + (entering.steps is not None)
        batch = as_steps(values, entering, "this array")
        found = list(FramePipeline(self.engine, batch, seed=seed).decisions())
        return found if values.ndim > sample else found[0]

    def stream(
        self,
        source: PathLike,
        *,
        format: str | None = None,  # noqa: A002
        index: Natural | None = None,
        fit: Fit | str | Sequence[str] | None = None,
        reorder: Natural = 0,
        on_disorder: Disorder | None = None,
        seconds: float | None = None,
        windows: bool = False,
        every_bin: bool = False,
        continuous: bool = False,
        stop_at: float | None = None,
        origin: int | Shift | None = None,
        limit: Positive | None = None,
        live: bool = False,
        seed: Natural = 0,
    ) -> Stream:
        """Decide while events or samples come.

        Args:
            source: A recording, ``-`` for standard input, ``udp:[HOST:]PORT``, or an npz or npy file of frames.
            format: File format, if it cannot be detected (required for stdin: csv or records).
            index: Which recording of a file with many.
            fit: Fit another sensor to the network's: resize, centre or X,Y (crop), merge (one polarity), swap (0 and
                1), WxH (sensor size, if the file does not state it). May be repeated; --resize, --crop, --sensor and
                --merge-polarities are short for these.
            reorder: Put events that arrive up to this many microseconds late back in order.
            on_disorder: Events later than that: an error (default), dropped and counted (default of udp), or the whole
                recording sorted.
            seconds: How long to listen to udp.
            windows: Decide for each window of a recording, as of a stream (else once, for its first window).
            every_bin: Decide at the end of every bin.
            continuous: Carry the state over from one window to the next.
            stop_at: Decide as soon as a class has this probability.
            origin: Where the first window begins: first (event), or microseconds (default: as the file says).
            limit: End after this many decisions.
            live: Draw the events and the decision as it forms (in a terminal; from Python, keep what is drawn).
            seed: Seed of a stochastic file's noise.

        Returns:
            A ``Stream``: go through it to get the decisions; ``summary()`` counts what came.

        Raises:
            AxonnxError: If the source is not what the network takes.

        Examples:
            >>> stream = axonnx.load("digits.onnx").stream("recording.npz", every_bin=True)
            >>> [decision.final for decision in stream].count(True), stream.summary()["bins"]
            (1, 30)
        """
        if self.contract.input.binning is None:
            given = {
                "format": format, "fit": fit, "reorder": reorder, "on_disorder": on_disorder, "seconds": seconds,
                "windows": windows, "every_bin": every_bin, "live": live, "continuous": continuous, "stop_at": stop_at,
                "origin": origin,
            }  # fmt: skip
            wrong = [name for name, value in given.items() if value not in (None, False, 0)]
            if wrong:
                raise AxonnxError(
                    f"{self.program.name}: --{wrong[0].replace('_', '-')} is for events; this network takes "
                    f"{describe_input(self.contract.input)} from an npz or npy file"
                )
            return Stream(open_frames(self.engine, os.fspath(source), index=index, seed=seed), limit)
        how = Fit.of(fit)
        opened = open_source(os.fspath(source), format_name=format, index=index, seconds=seconds)
        pipeline = open_stream(
            self.engine,
            opened,
            fit=how,
            tolerance_us=reorder,
            on_disorder=on_disorder,
            windows=windows,
            continuous=continuous,
            every_bin=every_bin or live,
            seen=live,
            stop_at=stop_at,
            origin=origin,
            seed=seed,
        )
        return Stream(pipeline, limit)

    def evaluate(
        self,
        data: Any,
        *,
        part: str | None = None,
        fit: Fit | str | Sequence[str] | None = None,
        seed: Natural = 0,
        jobs: int | str = 1,
        uncertainty: Sequence[str] | None = None,
        passes: Positive | None = None,
        progress: Progress | None = None,
    ) -> Evaluation | ValueEvaluation:
        """Measure accuracy, NLL, Brier score and calibration on labelled data, with 95 % intervals.

        Args:
            data: A folder of recordings with a folder for each class, an npz of frames and labels, the name of a data
                set, or a run folder.
            part: train, validation or test, of data that has parts (default: test).
            fit: Fit another sensor to the network's: resize, centre or X,Y (crop), merge, swap, WxH; may be repeated.
            seed: Seed of a stochastic file's noise and of the bootstrap.
            jobs: Processes on this machine, or a Dask cluster: tcp://host:8786, or slurm:profile.yaml to start one.
            uncertainty: Also measure what the network's certainty is worth, against input that it does not know: noise,
                shuffled (in time) and turned (by 180°), which are made of the data, or other data; separated by commas.
            passes: Noisy passes whose probabilities are averaged, of a stochastic file or of a run.
            progress: Hears how far the work is.

        Returns:
            The figures, the confusion matrix, and every decision.

        Raises:
            AxonnxError: If the data is not labelled, or not what the network takes.

        Examples:
            >>> found = axonnx.load("digits.onnx").evaluate("digits-saccade")
            >>> found.samples, len(found.confusion)
            (360, 10)
        """
        from axonnx.evaluating import evaluate_model
        from axonnx.runtime.jobs.running import pool_for

        watch = (progress or Progress()).watch("evaluate")
        pool = pool_for(jobs)
        return evaluate_model(self, self.path, data, part, Fit.of(fit), seed, pool, watch, uncertainty, passes)

    def profile(
        self,
        data: Any,
        *,
        part: str | None = None,
        limit: int | Literal["all"] = 256,
        hardware: Hardware | str | None = None,
        seed: Natural = 0,
        jobs: int | str = 1,
        progress: Progress | None = None,
    ) -> ProfileResult:
        """Measure spikes, operations, memory, time and energy of one inference.

        Args:
            data: A folder of recordings with a folder for each class, an npz of frames and labels, the name of a data
                set, or a run folder.
            part: train, validation or test, of data that has parts (default: test).
            limit: Samples to run, of all classes; all for every one.
            hardware: TOML file with the energies of your hardware (default: 45 nm).
            seed: Seed of a stochastic file's noise.
            jobs: Processes on this machine, or a Dask cluster: tcp://host:8786, or slurm:profile.yaml to start one.
            progress: Hears how far the work is.

        Returns:
            Counts for each layer and synapse, totals, energy, accuracy and early exit.

        Raises:
            AxonnxError: If the data is not labelled, or not what the network takes.

        Examples:
            >>> profile = axonnx.load("digits.onnx").profile("digits", limit=20)
            >>> profile.samples, [layer.name for layer in profile.layers]
            (20, ['hidden.0.neuron', 'hidden.1.neuron'])
        """
        from axonnx.evaluating import profile_model
        from axonnx.runtime.jobs.running import pool_for

        found = profile_model(
            self.path,
            data,
            part,
            limit=None if limit == "all" else limit,
            engine=self._measuring(),
            hardware=hardware,
            seed=seed,
            pool=pool_for(jobs),
            watch=(progress or Progress()).watch("profile"),
        )
        self._facts = {"sparsity": found.totals.activation_sparsity, "energy": found.energy.total_nj}
        return found

    def verify(
        self,
        against: Run | nn.Module | PathLike | None = None,
        data: Any = None,
        *,
        part: str | None = None,
        limit: Positive | None = None,
        fit: Fit | str | Sequence[str] | None = None,
        compiled: PathLike | None = None,
        seed: Natural = 0,
        jobs: int | str = 1,
        progress: Progress | None = None,
    ) -> VerifyResult | EngineResult | CompiledResult:
        """Prove that the file is what was trained, bit for bit; without a run, that all engines agree on it.

        Args:
            against: Run folder that the file was exported from, or (from Python) the torch module that it was made
                of. Without it the engines are compared on this file, which needs no torch.
            data: Data to compare on, if not the run's own: a path, the name of a data set, an array file. Without a
                run also recordings or frames without labels (default: generated input).
            part: train, validation or test, of data that has parts (default: test).
            limit: At most this many samples (default: all for decisions, 64 for traces, 16 recordings from file to
                decision).
            fit: Fit another sensor to the network's: resize, centre or X,Y (crop), merge, swap, WxH; may be repeated.
            compiled: Folder that axonnx compile wrote: build it as it is, run it here or in an emulator, and compare
                every spike, logit and decision with the file. Its code is executed.
            seed: Seed of a stochastic file's noise, and of generated input.
            jobs: Processes on this machine, or a Dask cluster: tcp://host:8786, or slurm:profile.yaml to start one.
            progress: Hears how far the work is.

        Returns:
            The result; ``verified`` says whether every bit is equal.

        Raises:
            AxonnxError: If the run or the data cannot be compared with this file.

        Examples:
            >>> model = axonnx.load("digits.onnx")
            >>> model.verify("digits", limit=2).verified, model.verify().verified
            (True, True)
        """
        return verify_file(
            self.path,
            against,
            data,
            part=part,
            limit=limit,
            fit=fit,
            compiled=compiled,
            seed=seed,
            jobs=jobs,
            progress=progress,
        )

    def compile(self, output: PathLike, *, target: Target = "c") -> Compiled:
        """Write the network as source code that runs with the same bits and needs neither Python nor axonnx.

        Args:
            output: Folder to write. An earlier folder of this method is replaced, any other refused.
            target: c for any compiler, js for browsers and node, cortex-m as firmware that qemu runs.

        Returns:
            The folder and the sizes of its files.

        Raises:
            AxonnxError: If the folder holds something else.

        Examples:
            >>> axonnx.load("digits.onnx").compile("desktop").folder.name
            'desktop'
        """
        from axonnx.compiling import compile_to

        return compile_to(self.path, output, target)

    def report(
        self,
        output: PathLike = "report.html",
        *,
        run: Run | PathLike | None = None,
        data: Any = None,
        verify: VerifyResult | PathLike | None = None,
        profile: ProfileResult | PathLike | None = None,
        limit: Positive = 1024,
        shown: Natural = 6,
        seed: Natural = 0,
        progress: Progress | None = None,
    ) -> Path:
        """Write one HTML page with all that is known of the file; what is not given is left out.

        Args:
            output: Page to write.
            run: Run folder that the file was exported from: its training curves, and its test samples.
            data: Samples to run instead: a path, the name of a data set, an array file.
            verify: Result of verify, or the JSON file that axonnx verify --json FILE wrote.
            profile: Result of profile, or the JSON file that axonnx profile --json FILE wrote.
            limit: Samples to run for confusion and calibration.
            shown: Samples to show in detail.
            seed: Seed of a stochastic file's noise.
            progress: Hears how far the work is.

        Returns:
            The path of the page.

        Raises:
            AxonnxError: If a result belongs to another file, or the page cannot be written.

        Examples:
            >>> axonnx.load("digits.onnx").report("report.html", run="digits", limit=20).name
            'report.html'
        """
        from axonnx.reporting import write_report

        engine = self._measuring()
        return write_report(self.path, output, run, data, None, verify, profile, shown, limit, engine, seed, progress)

    def inspect(self) -> Inspection:
        """Read and check the file again, and describe its contract, certificates, program and sizes.

        Returns:
            Everything that the file says of itself.

        Examples:
            >>> axonnx.load("digits.onnx").inspect().sizes.instructions > 0
            True
        """
        from axonnx.runtime.measure.inspection import inspect_file

        return inspect_file(self.path)

    def save(self, output: PathLike, *, dt: float = 1e-4) -> Path:
        """Write the file elsewhere; a name that ends in .nir gets a NIR graph, for its users and chips.

        Args:
            output: File to write.
            dt: Time step of a NIR graph in seconds.

        Returns:
            The path of the new file.

        Raises:
            AxonnxError: If NIR cannot express the network.

        Examples:
            >>> axonnx.load("digits.onnx").save("copy.onnx").name
            'copy.onnx'
        """
        if Path(output).suffix == ".nir":
            from axonnx.export.convert.nir_out import write_nir

            write_nir(self.path, Path(output), dt)
        elif Path(output).resolve() != self.path.resolve():
            from axonnx.base.files import replacing

            with replacing(output) as temporary:
                shutil.copyfile(self.path, temporary)
        return Path(output)

    def serve(
        self,
        *,
        host: str = "127.0.0.1",
        port: Natural = 8080,
        token_file: str | None = None,
        certificate: str | None = None,
        sessions: str | None = None,
        clients: Positive = 1024,
        memory_mib: Positive = 2048,
        message_kib: Positive = 256,
        fit: Fit | str | Sequence[str] | None = None,
        continuous: bool = False,
        stop_at: float | None = None,
        origin: int | Shift | None = None,
        seed: Natural = 0,
        grace: float = 10.0,
        threads: int | None = None,
        ready: Callable[[str], None] = lambda _address: None,
    ) -> str:
        """Run many live streams: events come and decisions go over WebSocket, until SIGINT or SIGTERM.

        Args:
            host: Address to listen on (the default is this machine only), and after commas names that clients may use.
            port: Port to listen on; 0 takes any free one.
            token_file: Clients must send what is in the first line of this file (or of the variable AXONNX_TOKEN).
            certificate: PEM file with a certificate and its private key, for TLS (https and wss).
            sessions: Folder in which streams are saved, and from which they are resumed.
            clients: Most streams at once.
            memory_mib: No new stream begins if the process holds more memory than this, in MiB.
            message_kib: Largest message in KiB.
            fit: Fit another sensor to the network's: resize, centre or X,Y (crop), merge, swap, WxH; may be repeated.
            continuous: Carry the state over from one window to the next.
            stop_at: Decide as soon as a class has this probability.
            origin: Where the first window begins: first (event), or microseconds (default: as the file says).
            seed: Seed of a stochastic file's noise.
            grace: Seconds for streams to finish their message when the server stops.
            threads: Worker threads (default: one for each processor).
            ready: Gets the address once the server listens.

        Returns:
            One line about what was served.

        Raises:
            AxonnxError: If the network takes no events, or the port is in use.
        """
        from axonnx.runtime.serve.limits import Limits
        from axonnx.runtime.serve.server import Access, read_token, serve, split_host
        from axonnx.runtime.serve.service import Rules, Service

        address, names = split_host(host)
        limits = Limits(clients, message_kib * 2**10, memory_mib * 2**20, grace_s=grace)
        rules = Rules(seed, continuous, stop_at, origin, Fit.of(fit))
        service = Service(self, rules, limits, None if sessions is None else Path(sessions), threads)
        token = read_token(None if token_file is None else Path(token_file))
        serve(service, address, port, Access(token, certificate, names), ready=ready)
        counts = service.metrics
        return (
            f"stopped after {counts.streams:,} streams, {counts.events:,} events, {counts.decisions:,} decisions; "
            f"{service.saved.count():,} sessions can be resumed"
        )

    def _measuring(self) -> str:
        """Return the engine that was asked for if it counts what it does, else auto."""
        return self.asked[0] if self.asked[0] in MEASURING else "auto"


class Stream:
    """Decisions as they come, and counters of what came."""

    def __init__(self, pipeline: EventPipeline | FramePipeline, limit: int | None = None) -> None:
        self.pipeline, self.limit = pipeline, limit
        self.notes = pipeline.source.notes if isinstance(pipeline, EventPipeline) else []

    def __iter__(self) -> Iterator[Decision]:
        for number, decision in enumerate(self.pipeline.decisions(), 1):
            yield decision
            if number == self.limit:
                return

    def summary(self) -> dict[str, Any]:
        """Return the counters: events read, left out and binned; decisions; spikes."""
        return self.pipeline.summary()


def load(path: PathLike, engine: EngineName = "auto", threads: Positive = 1) -> Model:
    """Load an exported file. Everything that is wrong with it is reported now.

    Args:
        path: An exported file.
        engine: Inference engine; auto takes the fastest that works here.
        threads: Processor threads of the engine.

    Returns:
        A ``Model``.

    Raises:
        AxonnxError: If the file is not one of ours, is damaged, or the engine is not available.

    Examples:
        >>> model = axonnx.load("digits.onnx")
        >>> model.contract.classes[:3], model.contract.input.steps
        (('0', '1', '2'), 30)
    """
    loaded = runtime.load(path, engine, threads)
    return Model(loaded.program, loaded.engine, path, (engine, threads))


def _loaded_again(path: str, sha256: str, engine: EngineName, threads: int) -> Model:
    """Load the file of a pickled model."""
    from axonnx.runtime.jobs.work import check_submitted

    check_submitted(path, sha256)
    return load(path, engine, threads)


def verify_file(
    path: PathLike,
    against: Run | nn.Module | PathLike | None = None,
    data: Any = None,
    *,
    part: str | None = None,
    limit: int | None = None,
    fit: Fit | str | Sequence[str] | None = None,
    compiled: PathLike | None = None,
    seed: int = 0,
    jobs: int | str = 1,
    progress: Progress | None = None,
) -> VerifyResult | EngineResult | CompiledResult:
    """Verify a file that may be too damaged to be loaded, which is a result too; see ``Model.verify``."""
    from axonnx.loading import samples_for
    from axonnx.runtime.jobs.running import pool_for

    shown = progress or Progress()
    if compiled is not None:
        from axonnx.runtime.measure.compiled_check import check_compiled

        if against is not None:
            raise AxonnxError("a file is compared with its run or with compiled code: leave one out, and verify twice")

        def opened(contract: Any) -> Any:
            return samples_for(data, contract, part, Fit.of(fit), labelled=False)

        return check_compiled(Path(path), Path(compiled), None if data is None else opened, limit, seed, shown.note)
    if against is None:
        from axonnx.runtime.measure.engine_check import check_engines
        from axonnx.runtime.measure.engine_inputs import input_of

        def given(contract: Any) -> Any:
            return input_of(samples_for(data, contract, part, Fit.of(fit), labelled=False), contract, limit or 64)

        return check_engines(Path(path), None if data is None else given, seed)
    if hasattr(against, "named_modules"):  # torch is not imported to find out
        from axonnx.export.convert.module_files import verify_module

        if isinstance(data, str | os.PathLike):
            data = samples_for(data, read_model_file(path).contract, part, Fit.of(fit))
        net: Any = against
        return verify_module(path, net, data, samples=min(64, limit or 64), limit=limit, seed=seed, tell=shown.note)
    if not isinstance(against, str | os.PathLike):
        raise AxonnxError(
            f"cannot verify against {type(against).__name__}; expected a Run, its path, or a torch module"
        )
    from axonnx.export.verify import stages
    from axonnx.export.verify.shards import verify_in_shards

    few = {"samples": min(64, limit or 64), "recordings": min(16, limit or 16), "limit": limit}
    settings: dict[str, Any] = {**few, "part": part or "test", "seed": seed}
    if data is not None:
        settings["data"] = samples_for(data, read_model_file(path).contract, part, Fit.of(fit))
    pool = pool_for(jobs)
    if pool is None:
        return stages.verify_file(Path(path), Path(against), **settings, tell=shown.note)
    if data is not None:
        raise AxonnxError("verify on data of your own takes one process: leave jobs out")
    shards = jobs if isinstance(jobs, int) else SHARDS
    return verify_in_shards(Path(path), Path(against), shards, pool, shown.watch("verify"), **settings)


def card(title: str, rows: dict[str, str]) -> str:
    """Return a small table in HTML, for notebooks."""
    from html import escape

    cells = "".join(
        f'<tr><td style="text-align:left">{escape(name)}</td><td style="text-align:left">{escape(text)}</td></tr>'
        for name, text in rows.items()
    )
    return f"<table><caption><b>{escape(title)}</b></caption>{cells}</table>"


def _listed(found: Decision | list[Decision]) -> Sequence[Decision]:
    return found if isinstance(found, list) else [found]


def write_events(path: PathLike, events: NDArray[np.void] | Recording, sensor: Any = None) -> Path:
    """Write events as an npz file, which ``read_events`` and every verb read.

    Args:
        path: File to write.
        events: An array of events, or a ``Recording``.
        sensor: Width and height, or a ``Sensor``; that of the recording unless given.

    Returns:
        The path.

    Raises:
        AxonnxError: If the array is not one of events.

    Examples:
        >>> recording = axonnx.read_events("recording.npz")
        >>> axonnx.write_events("again.npz", recording.events, recording.sensor).name
        'again.npz'
    """
    from axonnx.runtime.events.arrays import Sensor
    from axonnx.runtime.readers import write_npz

    given = sensor if sensor is not None or not isinstance(events, Recording) else events.sensor
    size = Sensor(width=given[0], height=given[1]) if isinstance(given, tuple) else given
    write_npz(Path(path), events.events if isinstance(events, Recording) else events, size)
    return Path(path)
