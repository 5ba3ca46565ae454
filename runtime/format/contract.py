"""The contract in a file: everything that is needed to run it on events.

The contract is one JSON text under ``axonnx`` in the file's metadata. These models read and write it. An unknown
version or an unknown key is refused.
"""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
    model_validator,
)

from axonnx.base.errors import AxonnxError
from axonnx.base.plain_text import LONGEST_NAME, check_plain, check_plain_lines
from axonnx.runtime.binning.settings import MOST_BINS, Binning
from axonnx.runtime.events.arrays import Sensor
from axonnx.runtime.format.opset import READOUTS
from axonnx.runtime.format.values import UNITS

METADATA_KEY = "axonnx"
FORMAT: Literal[1] = 1
MOST_SCALED = 255  # the largest scaled count
FINEST = 126  # 2^−126 is the smallest normal float32: some runtimes lose bits in sums of smaller multiples

Floats = NDArray[np.float32]
Plain = Annotated[str, AfterValidator(check_plain)]  # one line; docs/file-format.md has the rule
Name = Annotated[Plain, Field(max_length=LONGEST_NAME)]
Lines = Annotated[str, AfterValidator(check_plain_lines)]
Size = Annotated[int, Field(ge=1, le=2**24)]
Way = Literal["bayesian", "mean_field", "sampled", "stochastic", "unreduced", "file"]  # ways to run a trained network
Shape = Annotated[tuple[Size, ...], Field(max_length=8)]


class Part(BaseModel):
    """A frozen part of a contract. All its numbers are finite."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


def _without(found: dict[str, Any], *optional: str) -> dict[str, Any]:
    """Return ``found`` without those of these keys that have no value."""
    return {name: value for name, value in found.items() if name not in optional or value is not None}


class MergingContract(Part):
    """How recorded frames become time steps: min(sum of ``frames`` consecutive ones, clip).

    The last time step sums the remaining frames.
    """

    recorded: int = Field(ge=1, le=MOST_BINS, description="number of frames in a recorded sample")
    frames: int = Field(ge=2, le=MOST_BINS, description="recorded frames in one time step")
    clip: int = Field(ge=1, lt=UNITS, description="largest sum")


class FitContract(Part):
    """How training mapped a sensor to the network's: a region of it, resized if its size differs."""

    sensor: Sensor = Field(description="sensor of the training recordings")
    left: int = Field(0, ge=0, le=65535, description="first column of the region")
    top: int = Field(0, ge=0, le=65535, description="first row of the region")
    width: int = Field(ge=1, le=65536, description="columns of the region")
    height: int = Field(ge=1, le=65536, description="rows of the region")

    @model_validator(mode="after")
    def _inside(self) -> Self:
        if self.left + self.width > self.sensor.width or self.top + self.height > self.sensor.height:
            raise ValueError(
                f"the region of {self.width}×{self.height} pixels at {self.left},{self.top} is not inside the sensor "
                f"of {self.sensor.width}×{self.sensor.height}"
            )
        return self


def unit_of(shift: int) -> float:
    """Return 2^−shift, the value of one count or grey level in the network's input."""
    return 2.0**-shift


class InputContract(Part):
    """The input of a network: x = (value − centre) · 2^−shift, of events binned as ``binning`` states."""

    name: Name = Field(description="name of the graph's input")
    shape: Shape = Field(description="shape of one time step or one image: [C, H, W] or [features]")
    steps: int | None = Field(ge=1, le=MOST_BINS, description="T, the window in time steps; None for binary networks")
    binning: Binning | None = Field(None, description="how events become frames; None for images and frames")
    fit: FitContract | None = Field(
        None, description="how recordings of a larger sensor are mapped to the binning's sensor; None: unchanged"
    )
    merging: MergingContract | None = Field(None, description="how recorded frames become time steps; None: unchanged")
    repeated: bool = Field(
        False, description="whether a sample is one image, shown in every time step; only written if true"
    )
    scaled_to: int | None = Field(
        None,
        ge=1,
        le=2**24,
        description="the counts of a time step are scaled so that their sum is about this: of a count c and the sum n, "
        "min(255, (2·c·scaled_to + n) // (2·n)); only written if it is set",
    )
    centre: int = Field(0, ge=-UNITS, le=UNITS, description="subtracted from every value")
    shift: int = Field(0, ge=0, le=16, description="the difference is divided by 2^shift, which is exact")
    largest: int = Field(255, ge=1, lt=UNITS, description="largest |value − centre|, the bound for exact sums")

    @model_serializer(mode="wrap")
    def _as_before(self, made: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out what only some files state, so that all others have the same bytes as before it was added."""
        found: dict[str, Any] = made(self)
        absent = {"repeated": not self.repeated, "scaled_to": self.scaled_to is None}
        return {name: value for name, value in found.items() if not absent.get(name)}

    @model_validator(mode="after")
    def _counts(self) -> Self:
        if self.scaled_to is not None and (self.centre or self.largest > MOST_SCALED):
            raise ValueError(f"scaled counts begin at 0 and end at {MOST_SCALED}; centre and largest must agree")
        return self

    @property
    def unit(self) -> float:
        """Value of one count or grey level in the network's input."""
        return unit_of(self.shift)

    @property
    def scale(self) -> int:
        """1 / unit, a whole number: an input times this is a count again."""
        return 1 << self.shift

    @property
    def x_max(self) -> float:
        """Largest |x|."""
        return self.largest * self.unit


class SynapseContract(Part):
    """The certificate of one weight tensor: (Σ|w|·x_max + |b|)·2^(grid + input_bits) < 2²⁴, so sums are exact."""

    name: Name = Field(description="name of the synapse in the training network")
    weight: Name = Field(description="name of the graph's initialiser")
    grid: int = Field(ge=-64, le=FINEST, description="s: weights and biases are multiples of 2^−s")
    input_max: float = Field(ge=0, lt=UNITS, description="largest |x| that can arrive")
    input_bits: int = Field(ge=0, le=FINEST, description="x is a multiple of 2^−bits")
    bound: float = Field(ge=0, lt=UNITS, description="largest |partial sum| in units of the grid; less than 2²⁴")
    stored_as: Literal["float32", "int16", "int8", "int4", "int2"] = Field(
        "float32", description="type of the weights; the initialiser of 4 and 2 bits is int8, and its range is checked"
    )
    lift: int | None = Field(
        None, ge=0, le=24, description="weights are stored integers times 2^lift; only written for integer dynamics"
    )

    @model_serializer(mode="wrap")
    def _as_before(self, made: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave ``lift`` out if there is none, so that files have the same bytes as before the field was added."""
        return _without(made(self), "lift")

    @model_validator(mode="after")
    def _normal(self) -> Self:
        if self.grid + self.input_bits > FINEST:
            raise ValueError(
                f"sums are on a grid of 2^-{self.grid + self.input_bits}; the finest grid in float32 is 2^-{FINEST}"
            )
        return self


class LayerContract(Part):
    """One layer of neurons, or the read-out."""

    name: Name = Field(description="name of the layer in the training network")
    op: Name = Field(description="name of the spike operator")
    shape: Shape = Field(description="shape of its state, without the batch")
    threshold: float | tuple[float, float] | None = Field(None, description="θ, or its range over the neurons")
    decay: float | tuple[float, float] | None = Field(None, description="β, or its range over the neurons")
    reset: Literal["subtract", "zero"] | None = Field(None, description="how a spike resets its membrane")
    states: tuple[Name, ...] = Field((), description="names of this layer's states in the graph")
    noise: Name | None = Field(None, description="name of the graph's input for this layer's noise")
    width: int | None = Field(
        None, ge=1, le=25, description="bits of a membrane with its sign, certified; only written for integer dynamics"
    )
    unit: float | None = Field(
        None, gt=0, description="what 1 in its membranes was in the trained network; only written for integer dynamics"
    )

    @model_serializer(mode="wrap")
    def _as_before(self, made: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out what only integer dynamics has, so that other files have the same bytes as before it was added."""
        return _without(made(self), "width", "unit")


class CollapseContract(Part):
    """How the posterior became this network."""

    mode: Literal["mfa", "sampled", "stochastic"] = Field(
        description="posterior means, sampled weights, or neurons that keep their noise"
    )
    members: int = Field(1, ge=1, le=2**16, description="number of networks whose probabilities are averaged")
    seed: int | None = Field(
        None, ge=-(2**63), lt=2**64, description="seed of sampled weights, or of the noise used to match thresholds"
    )
    calibrated: bool = Field(False, description="whether thresholds were matched to noisy firing rates")
    prune: float | None = Field(None, description="weights with |mean|/std below this value were removed")
    weights: Literal["float32", "int16", "int8", "int4", "int2"] = Field(
        "float32", description="how weights are stored"
    )


class DecisionContract(Part):
    """How the source of an imported network decides, and what makes probabilities of its outputs."""

    rule: Literal["spike count", "sum", "mean", "last", "maximum"] = Field(
        description="what the source decides by, over time; the first three have their largest value where the mean "
        "has it, the others have a read-out of their own"
    )
    scale: float = Field(
        1.0, gt=0, lt=UNITS, description="1 / temperature: logits are the source's outputs times this, averaged"
    )
    fitted: int = Field(0, ge=0, le=2**40, description="samples on which the temperature was fitted; 0: it was not")


class CertaintyContract(Part):
    """How sure the network may be called, fitted on samples that neither training nor test has."""

    scale: float = Field(
        1.0,
        gt=0,
        lt=UNITS,
        description="1 / temperature: probabilities are softmax(scale · logits); of an ensemble, "
        "of the logarithm of its mean probabilities",
    )
    coverage: float = Field(gt=0, lt=1, description="share of samples whose true class is among the possible ones")
    margins: tuple[Annotated[float, Field(ge=0)], ...] = Field(
        min_length=1,
        max_length=MOST_BINS,
        description="for each time step, how far below the largest logit those of possible classes may be; logits of "
        "an ensemble are summed over its members",
    )
    part: Name = Field("validation", description="part of the data set that this was fitted on")
    samples: int = Field(ge=1, le=2**40, description="number of its samples")
    digest: Name = Field(description="sha256 of their fingerprints in ascending order, each as 8 bytes, little-endian")

    def margin(self, steps: int) -> float:
        """Return the margin after so many time steps of a window."""
        return self.margins[min(steps, len(self.margins)) - 1]


class Provenance(Part):
    """The origin of the network."""

    checkpoint: Name | None = Field(None, description="sha256 of the trained weights")
    config: Lines | None = Field(None, description="configuration of the run, as TOML")
    data: Plain | None = Field(None, description="name of the data set")
    data_digest: Name | None = Field(None, description="sha256 of the training data")
    versions: dict[Name, Plain] = Field(default_factory=dict, description="versions of the packages that made the file")


class MeasuredOn(Part):
    """The data on which the stated accuracies were measured."""

    part: Name = Field("test", description="part of the data set")
    samples: int = Field(ge=1, le=2**40, description="number of samples: the whole part, or a stratified choice")
    passes: int = Field(ge=1, le=2**20, description="noisy passes of the Bayesian predictive")
    seed: int = Field(0, ge=-(2**63), lt=2**64, description="seed of all noise")


class AccuracyContract(Part):
    """The accuracy of one way to run the network, on the samples that ``measured`` states."""

    way: Way = Field(description="way to run the network")
    draws: int = Field(1, ge=1, le=2**20, description="number of noisy passes or sampled weight sets")
    right: int = Field(ge=0, le=2**40, description="number of correct decisions")
    samples: int = Field(ge=1, le=2**40, description="number of decisions")
    accuracy: float = Field(ge=0, le=1, description="right / samples")
    interval: tuple[float, float] = Field(description="95 % Wilson interval")
    nll: float = Field(ge=0, description="mean negative log-likelihood")


class Contract(Part):
    """The complete contract of a file.

    Examples:
        >>> contract = axonnx.load("digits.onnx").contract
        >>> contract.kind, contract.input.shape, len(contract.classes)
        ('spiking', (2, 16, 16), 10)
    """

    format: Literal[1] = Field(FORMAT, description="version of this contract")
    kind: Literal["spiking", "binary"] = Field(description="whether the network has time steps")
    form: Literal["sequence", "step"] = Field(description="whether the graph runs a whole window, or one time step")
    dynamics: Literal["float", "integer"] = Field(
        "float", description="arithmetic of the neurons; only written for integer"
    )
    classes: tuple[Name, ...] = Field(description="names of the classes, in the order of the logits")
    units: tuple[str, ...] | None = Field(
        None, description="units of real values, which ``classes`` then names: a regression; only written for such"
    )
    input: InputContract = Field(description="input of the network")
    collapse: CollapseContract = Field(description="how the posterior became this network")
    layers: tuple[LayerContract, ...] = Field(description="layers in the order of computation")
    synapses: tuple[SynapseContract, ...] = Field(description="one certificate for each weight tensor")
    tie: Literal[">="] = Field(">=", description="a membrane equal to its threshold fires")
    reset_timing: Literal["next step"] = Field("next step", description="when a spike resets its own membrane")
    logits: Literal["total / steps", "total", "direct"] = Field(
        description="how logits are computed from the read-out: the mean over time steps, what it made of them itself "
        "(the last or the largest membrane), or directly, of a network without time steps"
    )
    decision: DecisionContract | None = Field(
        None, description="how the source of an imported network decides; only written for such networks"
    )
    certainty: CertaintyContract | None = Field(
        None, description="temperature and sets of possible classes; only written if they were fitted"
    )
    accuracy: tuple[AccuracyContract, ...] = Field((), description="accuracies measured at export, for each way to run")
    measured: MeasuredOn | None = Field(None, description="data on which the accuracies were measured")
    provenance: Provenance = Field(Provenance(), description="origin of the network")

    @model_serializer(mode="wrap")
    def _as_before(self, made: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out what only some files state, so that all others have the same bytes as before it was added."""
        found = _without(made(self), "decision", "units", "certainty")
        return {name: value for name, value in found.items() if name != "dynamics" or value != "float"}

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        """Refuse duplicate names: activity is counted by layer, and certificates are found by weight."""
        names: dict[str, list[str]] = {
            "layers": [layer.name for layer in self.layers],
            "states": [state for layer in self.layers for state in layer.states],
            "certificates for": [synapse.weight for synapse in self.synapses],
            "accuracies of": [entry.way for entry in self.accuracy],
        }
        for what, found in names.items():
            twice = [name for name, number in Counter(found).items() if number > 1]
            if twice:
                raise ValueError(f"two {what} {twice[0]!r}")
        return self

    @model_validator(mode="after")
    def _one_unit_each(self) -> Self:
        if self.units is None:
            return self
        if len(self.units) != len(self.classes) or self.collapse.members != 1:
            raise ValueError(
                f"{len(self.units)} units for {len(self.classes)} values of {self.collapse.members} members; expected "
                f"a unit for each value of one network"
            )
        return self

    @model_validator(mode="after")
    def _one_rule(self) -> Self:
        """Refuse logits, or a rule, that the read-out does not compute."""
        read = {READOUTS[layer.op] for layer in self.layers if layer.op in READOUTS}
        for over_time in read:
            expected = "total / steps" if over_time == "mean" else "total"
            if self.logits != expected:
                raise ValueError(f"logits are {self.logits!r}; a read-out by the {over_time} gives {expected!r}")
            rule = None if self.decision is None else self.decision.rule
            if rule is not None and (rule if rule in READOUTS.values() else "mean") != over_time:
                raise ValueError(f"decides by the {rule}, and reads out the {over_time}")
        return self

    def logits_of(self, readout: Floats, steps: int) -> Floats:
        """Return the logits of what a read-out holds after ``steps`` time steps.

        Args:
            readout: Totals of a spiking network, or logits of a binary one.
            steps: Number of time steps so far.
        """
        return readout / np.float32(steps) if self.logits == "total / steps" else readout.copy()

    @model_validator(mode="after")
    def _a_margin_for_each_step(self) -> Self:
        if self.certainty is None:
            return self
        steps = self.input.steps or 1
        if self.units is not None or len(self.certainty.margins) != steps:
            raise ValueError(
                f"{len(self.certainty.margins)} margins for {steps} time steps of a network that gives "
                f"{'classes' if self.units is None else 'real values'}; expected one for each step, and classes"
            )
        return self

    def needs_classes(self, where: str, what: str) -> None:
        """Refuse ``what`` for a network that gives real values.

        Raises:
            AxonnxError: If the network is a regression.
        """
        if self.units is not None:
            raise AxonnxError(
                f"{where}: gives the real values {', '.join(self.classes)}; {what} is for networks that decide among "
                f"classes. Leave it out, or give such a network"
            )


def describe_results(contract: Contract) -> str:
    """Return the number and names of the classes, or of the real values with their units."""
    units = contract.units or [""] * len(contract.classes)
    named = (f"{name} in {unit}" if unit else name for name, unit in zip(contract.classes, units, strict=True))
    return f"{len(contract.classes)}: {', '.join(named)}"


def results_of(contract: Contract) -> str:
    """Return what a network tells apart, or what values it gives, for a sentence."""
    if contract.units is None:
        return f"{len(contract.classes)} classes"
    return f"the real values {describe_results(contract).partition(': ')[2]}"


def read_contract(text: str, where: str) -> Contract:
    """Read the contract in a file's metadata.

    Raises:
        AxonnxError: If the text is not a contract of a known version.
    """
    try:
        return Contract.model_validate_json(text)
    except ValidationError as fault:
        first = fault.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the text itself"
        raise AxonnxError(
            f"{where}: cannot read its contract: {place}: {first['msg']} "
            f"(this version reads format {FORMAT}). Export the network again, or upgrade axonnx"
        ) from None
