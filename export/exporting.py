"""From a run folder, or from a network, to one ONNX file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from axonnx.base.errors import AxonnxError
from axonnx.export.calibrate import SAMPLES, calibrated_thresholds
from axonnx.export.certainty import PART, fit_certainty, needs_validation
from axonnx.export.collapse.network import Mode
from axonnx.export.collapsed import Collapsed, CollapseSettings, collapse_network
from axonnx.export.contract import logits_of, make_contract
from axonnx.export.graph.assemble import Form
from axonnx.export.graph.grid import DEFAULT_WEIGHTS, Stored
from axonnx.export.ways import score_ways
from axonnx.export.write import build_model, write_model
from axonnx.models import Network, SpikingNetwork
from axonnx.runtime.format.contract import Contract, InputContract, MeasuredOn, Provenance
from axonnx.runtime.format.names import INPUT
from axonnx.train.trained import Trained, open_run

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Exported:
    """A file that was written, and what is in it: its contract has the accuracy of each way to run the network."""

    path: Path
    size: int
    collapsed: Collapsed
    contract: Contract


def export_run(
    run: str | Path,
    output: str | Path = "model.onnx",
    *,
    mode: Mode = "mfa",
    members: int | None = None,
    seed: int = 0,
    prune: float | None = None,
    weights: Stored = DEFAULT_WEIGHTS,
    calibrate: bool = False,
    form: Form = "sequence",
    trace: bool = False,
    passes: int = 8,
    limit: int | None = None,
    coverage: float | None = None,
    tell: Tell = lambda _line: None,
) -> Exported:
    """Collapse the network of a run folder and write it to ``output``, with its accuracy beside the trained one's.

    ``mode`` is "mfa" (posterior means), "sampled" (``members`` weight sets, 8 unless given, drawn with ``seed``) or
    "stochastic"; weights whose mean is within ``prune`` standard deviations of zero become zero. ``weights`` is the
    integer type that stores them, "int16" or "int8"; "float32" keeps the finest grid. ``calibrate`` moves thresholds so
    that firing rates survive (mode mfa); ``trace`` makes spikes and membranes of every layer outputs; the Bayesian
    predictive takes ``passes`` noisy passes; ``limit`` test samples are measured. With ``coverage`` a temperature and
    sets of possible classes are fitted on the validation part.
    """
    members = (8 if mode == "sampled" else 1) if members is None else members
    settings = CollapseSettings(mode, members, seed, prune, weights)
    _check(settings, calibrate, output, passes, limit)
    trained = open_run(str(run))
    if coverage is not None:
        needs_validation(trained, coverage)
    test = trained.data("test", limit)
    measured = MeasuredOn(samples=sum(len(labels) for _, labels in test), passes=passes, seed=settings.seed)
    thresholds = _calibrated(trained, settings, tell) if calibrate else None
    collapsed = collapse_network(trained.network, trained.arriving, settings, thresholds)
    if trained.units is not None:  # real values are neither right nor wrong
        contract = make_contract(collapsed, trained.classes, form, (), trained.provenance(), None, trained.units)
        return Exported(Path(output), _written(collapsed, contract, trace, output), collapsed, contract)
    tell(f"measuring the gap on {measured.samples} test samples")
    scores = score_ways(trained.network, collapsed, thresholds, test, measured, trained.bayesian, tell)
    contract = make_contract(collapsed, trained.classes, form, scores, trained.provenance(), measured)
    size = _written(collapsed, contract, trace, output)
    if coverage is not None:
        tell(f"fitting temperature and sets of classes on the {PART} part")
        contract = contract.model_copy(update={"certainty": fit_certainty(Path(output), trained, coverage)})
        size = _written(collapsed, contract, trace, output)
    return Exported(Path(output), size, collapsed, contract)


def export_network(
    network: Network,
    arriving: InputContract | Sequence[int],
    classes: Sequence[str] | None = None,
    output: str | Path = "model.onnx",
    *,
    steps: int | None = None,
    largest: int = 255,
    shift: int = 0,
    mode: Mode = "mfa",
    members: int = 1,
    seed: int = 0,
    prune: float | None = None,
    weights: Stored = DEFAULT_WEIGHTS,
    form: Form = "sequence",
    trace: bool = False,
    provenance: Provenance | None = None,
) -> Exported:
    """Collapse any network of our layers and write it to ``output``.

    Args:
        network: The network; it stays as it is, on its device.
        arriving: What it is fed: the shape of one time step or of one image, or all of it as a contract.
        classes: The names of the classes (default: their numbers).
        output: The file to write.
        steps: The number of time steps, if ``arriving`` is a shape and the network has time.
        largest: The largest value that arrives, in units of 2^−shift, if ``arriving`` is a shape. Give 1 for spikes:
            the smaller it is, the finer are the weights.
        shift: Values are multiples of 2^−shift, if ``arriving`` is a shape.
        mode: "mfa" (posterior means), "sampled" or "stochastic".
        members: The number of weight sets that "sampled" draws.
        seed: The seed of these draws.
        prune: Remove weights whose mean is within so many standard deviations of zero.
        weights: How weights are stored: "int16", "int8" or "float32".
        form: "sequence", or "step" for one time step with its states.
        trace: Make spikes and membranes of all layers outputs.
        provenance: Where the weights come from.
    """
    settings = CollapseSettings(mode, members, seed, prune, weights)
    _check(settings, False, output)
    if not isinstance(network, Network):
        raise AxonnxError(
            f"{type(network).__name__} is no network of axonnx.models; axonnx.Model.from_module(net, x) exports other "
            f"torch modules"
        )
    if not isinstance(arriving, InputContract):
        arriving = _fed(network, tuple(arriving), steps, largest, shift)
    collapsed = collapse_network(network, arriving, settings)
    names = map(str, range(logits_of(collapsed))) if classes is None else classes
    contract = make_contract(collapsed, tuple(names), form, provenance=provenance)
    return Exported(Path(output), _written(collapsed, contract, trace, output), collapsed, contract)


def _fed(network: Network, shape: tuple[int, ...], steps: int | None, largest: int, shift: int) -> InputContract:
    """Return the contract of an input of this shape."""
    spiking = isinstance(network, SpikingNetwork)
    if spiking == (steps is None):
        wanted = "give steps, their number" if spiking else "leave out steps"
        raise AxonnxError(f"{type(network).__name__} has {'' if spiking else 'no '}time steps; {wanted}")
    return InputContract(name=INPUT, shape=shape, steps=steps, largest=largest, shift=shift)


def _written(collapsed: Collapsed, contract: Contract, trace: bool, output: str | Path) -> int:
    return write_model(build_model(collapsed, contract, trace), output)


def _calibrated(trained: Trained, settings: CollapseSettings, tell: Tell) -> dict[str, Tensor]:
    if not trained.bayesian:
        raise AxonnxError("calibration needs a posterior; this network was trained without noise")
    inputs = [x for x, _ in trained.data("train", SAMPLES)]
    return calibrated_thresholds(trained.network, trained.arriving, settings, inputs, tell)


def _check(
    settings: CollapseSettings, calibrate: bool, output: str | Path, passes: int = 1, limit: int | None = None
) -> None:
    """Refuse what would fail only after minutes of measuring."""
    if calibrate and settings.mode != "mfa":
        raise AxonnxError("calibration makes a deterministic network fire as the noisy one did: only with mode mfa")
    for name, number in (("passes", passes), ("limit", limit)):
        if number is not None and number < 1:
            raise AxonnxError(f"{name} is {number}; expected 1 or more")
    check_output(output)


def check_output(output: str | Path) -> None:
    """Refuse a path at which no file can be written."""
    if Path(output).is_dir():
        raise AxonnxError(f"{output}: a folder; name the file to write, e.g. {output}/model.onnx")
    if not Path(output).resolve().parent.is_dir():
        raise AxonnxError(f"{output}: there is no such folder; make it first")
