"""The contract that travels in a file: all that its holder needs to know to run it on events.

It is one JSON text under ``axonnx`` in the file's metadata. Whoever writes or reads it does so through these
models; a version that is not known, or a key that is not, is refused.
"""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
    model_validator,
)

from axonnx.base.errors import AxonnxError
from axonnx.runtime.binning.settings import MOST_BINS, Binning
from axonnx.runtime.events.sensor import Sensor
from axonnx.runtime.format.values import UNITS

METADATA_KEY = "axonnx"
FORMAT: Literal[1] = 1
FINEST = 126  # 2^−126 is the smallest normal float32: sums of multiples of less would lose bits in some runtimes

Size = Annotated[int, Field(ge=1, le=2**24)]
Way = Literal["bayesian", "mean_field", "sampled", "stochastic", "unreduced", "file"]  # to run a trained network
Shape = Annotated[tuple[Size, ...], Field(max_length=8)]


class Part(BaseModel):
    """A frozen part of a contract, in which every number is finite."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class MergingContract(Part):
    """How recorded frames become time steps: sums of ``frames`` in a row, the last of what is left; min(sum, clip)."""

    recorded: int = Field(ge=1, le=MOST_BINS, description="frames of a sample as it was recorded")
    frames: int = Field(ge=2, le=MOST_BINS, description="recorded frames in one time step")
    clip: int = Field(ge=1, lt=UNITS, description="the largest sum")


class FitContract(Part):
    """How training brought a sensor onto the network's: a region of it, resized where it is not as large."""

    sensor: Sensor = Field(description="the sensor that training's recordings are of")
    left: int = Field(0, ge=0, le=65535, description="first column of the region")
    top: int = Field(0, ge=0, le=65535, description="first row of the region")
    width: int = Field(ge=1, le=65536, description="columns of the region")
    height: int = Field(ge=1, le=65536, description="rows of the region")

    @model_validator(mode="after")
    def _inside(self) -> Self:
        if self.left + self.width > self.sensor.width or self.top + self.height > self.sensor.height:
            raise ValueError(
                f"{self.width}×{self.height} pixels from {self.left},{self.top} on do not lie on a sensor of "
                f"{self.sensor.width}×{self.sensor.height}"
            )
        return self


def unit_of(shift: int) -> float:
    """2^−shift: what one count or grey level is in the network's input."""
    return 2.0**-shift


class InputContract(Part):
    """What the network expects: x = (value − centre) · 2^−shift, of events binned as ``binning`` says."""

    name: str = Field(description="the graph's input")
    shape: Shape = Field(description="of one time step, or of one image: [C, H, W] or [features]")
    steps: int | None = Field(ge=1, le=MOST_BINS, description="T, the window in time steps; None for binary networks")
    binning: Binning | None = Field(None, description="how events become frames; None for images and frames")
    fit: FitContract | None = Field(
        None, description="how recordings of a larger sensor come onto the binning's; None: as they are"
    )
    merging: MergingContract | None = Field(
        None, description="how recorded frames become time steps; None: as they are"
    )
    repeated: bool = Field(
        False, description="whether a sample is one image, shown in every time step; not written where it is not"
    )
    centre: int = Field(0, ge=-UNITS, le=UNITS, description="subtracted from every value")
    shift: int = Field(0, ge=0, le=16, description="then divided by 2^shift, which is exact")
    largest: int = Field(255, ge=1, lt=UNITS, description="largest |value − centre|: the bound of the exact sums")

    @model_serializer(mode="wrap")
    def _as_before(self, made: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Files of events and frames keep the bytes that they had before images could be repeated."""
        found: dict[str, Any] = made(self)
        if not self.repeated:
            found.pop("repeated", None)
        return found

    @property
    def unit(self) -> float:
        """What a difference of one becomes."""
        return unit_of(self.shift)

    @property
    def scale(self) -> int:
        """1 / unit, a whole number: an input times this is a count again."""
        return 1 << self.shift

    @property
    def x_max(self) -> float:
        """The largest |x|."""
        return self.largest * self.unit


class SynapseContract(Part):
    """The certificate of one weight tensor: (Σ|w|·x_max + |b|)·2^(grid + input_bits) < 2²⁴, so sums are exact."""

    name: str = Field(description="the synapse in the training network")
    weight: str = Field(description="the graph's initialiser")
    grid: int = Field(ge=-64, le=FINEST, description="s: weights and biases are multiples of 2^−s")
    input_max: float = Field(ge=0, lt=UNITS, description="largest |x| that can arrive")
    input_bits: int = Field(ge=0, le=FINEST, description="x is a multiple of 2^−bits")
    bound: float = Field(ge=0, lt=UNITS, description="largest |partial sum| in units of the grid; less than 2²⁴")
    stored_as: Literal["float32", "int16", "int8"] = Field("float32", description="the initialiser's type")

    @model_validator(mode="after")
    def _normal(self) -> Self:
        if self.grid + self.input_bits > FINEST:
            raise ValueError(
                f"sums on a grid of 2^-{self.grid + self.input_bits}; 2^-{FINEST} is the finest in float32"
            )
        return self


class LayerContract(Part):
    """One layer of neurons, or the read-out."""

    name: str = Field(description="the layer in the training network")
    op: str = Field(description="the spike operator")
    shape: Shape = Field(description="of its state, without the batch")
    threshold: float | tuple[float, float] | None = Field(None, description="θ, or its range over the neurons")
    decay: float | tuple[float, float] | None = Field(None, description="β, or its range over the neurons")
    reset: Literal["subtract", "zero"] | None = Field(None, description="what a spike does to its membrane")
    states: tuple[str, ...] = Field((), description="the graph's states of this layer")
    noise: str | None = Field(None, description="the graph's input for this layer's noise")


class CollapseContract(Part):
    """How the posterior became this network."""

    mode: Literal["mfa", "sampled", "stochastic"] = Field(
        description="posterior means, drawn weights, or neurons that keep their noise"
    )
    members: int = Field(1, ge=1, le=2**16, description="networks whose probabilities are averaged")
    seed: int | None = Field(
        None, ge=-(2**63), lt=2**64, description="of sampled weights, or of the noise that thresholds were matched to"
    )
    calibrated: bool = Field(False, description="whether thresholds were matched to noisy firing rates")
    prune: float | None = Field(None, description="weights with |mean|/std below this were removed")
    weights: Literal["float32", "int16", "int8"] = Field("float32", description="how weights are stored")


class Provenance(Part):
    """Where the network comes from."""

    checkpoint: str | None = Field(None, description="sha256 of the weights it was made of")
    config: str | None = Field(None, description="the run's configuration, TOML")
    data: str | None = Field(None, description="the data set's name")
    data_digest: str | None = Field(None, description="sha256 of the data it was trained on")
    versions: dict[str, str] = Field(default_factory=dict, description="of the packages that made the file")


class MeasuredOn(Part):
    """What the stated accuracies were measured on."""

    part: str = Field("test", description="of the data set")
    samples: int = Field(ge=1, le=2**40, description="of that part: all, or a stratified choice of so many")
    passes: int = Field(ge=1, le=2**20, description="noisy passes of the Bayesian predictive")
    seed: int = Field(0, ge=-(2**63), lt=2**64, description="of all noise that was drawn")


class AccuracyContract(Part):
    """How often one way to run the network is right, on the samples that ``measured`` names."""

    way: Way = Field(description="which one")
    draws: int = Field(1, ge=1, le=2**20, description="noisy passes, or weight sets that were drawn")
    right: int = Field(ge=0, le=2**40, description="samples decided rightly")
    samples: int = Field(ge=1, le=2**40, description="samples decided")
    accuracy: float = Field(ge=0, le=1, description="right / samples")
    interval: tuple[float, float] = Field(description="95 %, Wilson's")
    nll: float = Field(ge=0, description="mean negative log-likelihood")


class Contract(Part):
    """The file's complete contract."""

    format: Literal[1] = Field(FORMAT, description="version of this contract")
    kind: Literal["spiking", "binary"] = Field(description="whether the network has time steps")
    form: Literal["sequence", "step"] = Field(description="whether the graph runs a whole window, or one time step")
    classes: tuple[str, ...] = Field(description="names, in the order of the logits")
    input: InputContract = Field(description="what the network expects")
    collapse: CollapseContract = Field(description="how the posterior became this network")
    layers: tuple[LayerContract, ...] = Field(description="in the order in which they compute")
    synapses: tuple[SynapseContract, ...] = Field(description="one certificate for each weight tensor")
    tie: Literal[">="] = Field(">=", description="a membrane on its threshold fires")
    reset_timing: Literal["next step"] = Field("next step", description="when a spike acts on its own membrane")
    logits: Literal["total / steps", "direct"] = Field(description="how logits come from the read-out")
    accuracy: tuple[AccuracyContract, ...] = Field((), description="measured at export, for each way to run")
    measured: MeasuredOn | None = Field(None, description="what the accuracies were measured on")
    provenance: Provenance = Field(Provenance(), description="where the network comes from")

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        """One name, one thing: activity is counted by layer, certificates are found by weight."""
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

    def to_json(self) -> str:
        """For the file's metadata."""
        return self.model_dump_json()


def read_contract(text: str, where: str) -> Contract:
    """The contract in a file's metadata; anything that is not one is refused with the reason."""
    try:
        return Contract.model_validate_json(text)
    except ValidationError as fault:
        first = fault.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the text itself"
        raise AxonnxError(
            f"{where}: its contract is not one this version reads: {place}: {first['msg']} "
            f"(format {FORMAT} is known). Export the network again, or upgrade axonnx"
        ) from None
