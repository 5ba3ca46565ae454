"""What a training run is told: one pydantic model for each section of its TOML file. Unknown keys are refused."""

from __future__ import annotations

import re
from math import isfinite
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    field_validator,
)

from axonnx.runtime.binning.settings import MOST_BINS
from axonnx.train.data.augment import Augmentation
from axonnx.train.data.shaping import Windows


def _plain(value: Any, place: str = "") -> Any:
    """Texts, switches, finite numbers, and lists and tables of them: what is the same once written and read."""
    if isinstance(value, dict):
        for key, part in value.items():
            _plain(part, f"{place}.{key}" if place else str(key))
    elif isinstance(value, list | tuple):
        for number, part in enumerate(value):
            _plain(part, f"{place}[{number}]")
    elif not isinstance(value, str | bool | int) and not (isinstance(value, float) and isfinite(value)):
        raise ValueError(f"{place} is {value!r}; expected texts, switches, finite numbers, or lists and tables of them")
    return value


Table = Annotated[dict[str, Any], AfterValidator(_plain)]


def _numbers(value: Any) -> Any:
    """346x260, or 10,20,346,260, as numbers: what needs no brackets on a command line."""
    return re.split("[x×,]", value) if isinstance(value, str) else value


Pixels = Annotated[int, Field(ge=1, le=65536)]
Corner = Annotated[int, Field(ge=0, le=65535)]
Size = Annotated[int, Field(gt=0, le=2**24)]  # of a layer: torch counts no further than 2^63 in all


SHIPPED_NETWORKS = (
    "binary-mlp",
    "binary-resnet",
    "spiking-mlp",
    "recurrent-snn",
    "spiking-convnet",
    "spiking-resnet",
    "layers",
)
OWN_NETWORK = re.compile(r"[^\n\0]+:[A-Za-z_]\w*")  # a file or a module, and a class in it


class Section(BaseModel):
    """Settings that never change after they were read."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class ValidationConfig(Section):
    """A part of the training data that is set aside; none unless asked for."""

    share: float = Field(default=0.0, ge=0, lt=1, description="this share of the training recordings is set aside")
    groups: tuple[NonNegativeInt, ...] | None = Field(
        default=None, description="all recordings of these speakers or users are set aside"
    )
    by: Literal["recording", "group"] = Field(
        default="recording", description="what stays together: windows of a recording, or all of a speaker or user"
    )
    seed: NonNegativeInt = Field(default=0, description="another seed sets others aside")


class DataConfig(Section):
    """Which samples, and how they become the network's input."""

    name: str = Field(description="a data set's name, or the path of one's own data")
    root: str | None = Field(default=None, description="where its files are; else the environment variable AXONNX_DATA")
    options: Table = Field(default={}, description="options of that data set")
    classes: tuple[NonNegativeInt, ...] | None = Field(
        default=None, description="these classes alone, by number; all others are left out"
    )
    quantities: tuple[str, ...] | None = Field(
        default=None,
        min_length=1,
        description="real values that the network learns, with units, e.g. ['angle [deg]']; classes are then named by "
        "their values, as a folder 37.5",
    )
    held_out: tuple[NonNegativeInt, ...] | None = Field(
        default=None, description="test on these speakers or users of the training part, and not on the test part"
    )
    unseen: bool = Field(
        default=False, description="leave speakers or users who are in the training part out of the test part"
    )
    validation: ValidationConfig = Field(default_factory=ValidationConfig)
    crop: Annotated[tuple[Pixels, Pixels] | tuple[Corner, Corner, Pixels, Pixels] | None, BeforeValidator(_numbers)] = (
        Field(
            default=None,
            description="width and height of the sensor's middle that is cut out, or left, top, width, height (events)",
        )
    )
    resize: Annotated[tuple[Pixels, Pixels] | None, BeforeValidator(_numbers)] = Field(
        default=None, description="width and height that the sensor, or what is cut out of it, is resized to (events)"
    )
    windows: Windows = Field(default_factory=Windows)
    bins: PositiveInt | None = Field(default=None, description="number of time bins T (events)")
    duration_ms: PositiveFloat | None = Field(
        default=None, description="time that the T bins cover; of windows in ms it is theirs unless set (events)"
    )
    bin_events: PositiveInt | None = Field(
        default=None,
        le=2**31,
        description="a time bin ends with this many events, if its time does not end it before; without duration_ms "
        "their number alone ends it (events)",
    )
    scale_to: PositiveInt | None = Field(
        default=None,
        le=2**24,
        description="the counts of a time step are scaled so that their sum is about this, at most 255 each",
    )
    values: Literal["count", "binary"] = Field(
        default="count", description="events in a bin are counted, or only noticed"
    )
    clip: int = Field(default=255, ge=1, le=255, description="the largest count")
    downsample: PositiveInt = Field(default=1, description="sum over squares of this many pixels a side")
    polarity: Literal["keep", "merge"] = Field(
        default="keep", description="one channel for each polarity, or one for both"
    )
    merge_frames: int = Field(
        default=1, ge=1, le=MOST_BINS, description="sum over this many consecutive frames (frame sequences)"
    )
    repeat: int = Field(
        default=1, ge=1, le=4096, description="show each image in so many time steps: T, for spiking networks (images)"
    )
    centre: NonNegativeInt = Field(default=0, description="subtracted from every pixel (images)")
    shift: int = Field(default=0, ge=0, le=16, description="input is divided by 2^shift, which is exact")
    augmentation: Augmentation = Field(default_factory=Augmentation)


class ModelConfig(Section):
    """Which network. Sizes that the network does not have are refused when it is built."""

    network: str = Field(
        description="binary-mlp, binary-resnet, spiking-mlp, recurrent-snn, spiking-convnet, spiking-resnet, layers "
        "(what model.layers describes; axonnx import writes it), or one's own: 'my_network.py:MyNet'"
    )
    network_sha256: str | None = Field(
        default=None, description="of the source of one's own network; a run folder's configuration has it"
    )
    arguments: Table | None = Field(default=None, description="keyword arguments of one's own network")
    layers: tuple[Table, ...] | None = Field(
        default=None, max_length=1024, description="tables that describe the network 'layers', one for each layer"
    )
    begin: str | None = Field(
        default=None, description="a run folder of the same layers, whose weights are where training begins"
    )
    hidden: tuple[Size, ...] | None = Field(default=None, max_length=256, description="sizes of dense hidden layers")
    delays: tuple[NonNegativeInt, ...] | None = Field(
        default=None,
        max_length=64,
        description="time steps by which synapses hear their inputs later, each with weights, e.g. [0, 5, 10]; in a "
        "spiking-convnet twice as many from layer to layer",
    )
    delayed: Literal["first", "all"] | None = Field(
        default=None, description="which hidden layers have these delays: the first one, or all (unless set)"
    )
    widths: tuple[Size, ...] | None = Field(
        default=None, min_length=1, max_length=16, description="channels of each residual stage, or of each convolution"
    )
    blocks: PositiveInt | None = Field(default=None, le=1024, description="residual blocks in each stage")
    shortcut: Literal["pool", "conv"] | None = Field(default=None, description="how a stage's first shortcut shrinks")
    stem_stride: Literal[1, 2, 4] | None = Field(default=None, description="how much the first convolution shrinks")
    stream: Literal["current", "spikes"] | None = Field(
        default=None, description="what residual shortcuts carry: currents, or counts of spikes"
    )
    block_scale: NonNegativeFloat | None = Field(
        default=None, description="where the channel scales of a block's last convolution begin (SkipInit: 0)"
    )
    readout_decay: float | None = Field(
        default=None, ge=0, le=1, description="β of the read-out; 0 is the plain mean over time"
    )
    threshold: PositiveFloat | None = Field(default=None, description="θ of spiking neurons")
    decay: float | None = Field(default=None, ge=0, le=1, description="β of spiking neurons")
    learn_decay: Literal[True, False, "neuron"] | None = Field(
        default=None, description="learn β, one for each layer, or for each 'neuron' (or channel)"
    )
    time_constants: tuple[PositiveFloat, PositiveFloat] | None = Field(
        default=None, description="learned β of neurons begin at exp(−1/τ), τ spread between these steps, e.g. [1, 20]"
    )
    learn_threshold: Literal[True, False, "neuron"] | None = Field(
        default=None, description="learn θ, one for each layer, or for each 'neuron' (or channel)"
    )
    reset: Literal["subtract", "zero"] | None = Field(default=None, description="what a spike does to its membrane")
    base_std: NonNegativeFloat | None = Field(
        default=None, description="σ_base at the start, the noise of the threshold"
    )

    @field_validator("network")
    @classmethod
    def _shipped_or_own(cls, value: str) -> str:
        if value not in SHIPPED_NETWORKS and not OWN_NETWORK.fullmatch(value):
            known = ", ".join(map(repr, SHIPPED_NETWORKS))
            raise ValueError(f"expected {known}, or one's own, 'my_network.py:MyNet'")
        return value


def _named(value: Any) -> Any:
    """Read a name alone as the table that it stands for."""
    return {"name": value} if isinstance(value, str) else value


class VariantConfig(Section):
    """Which row of the paper's tables; single settings may be replaced."""

    name: str = Field(default="sbnn", description="bbnn, sbnn, mfa, fpv, nkl, nkl-sampled, sg-bn, sg-nbn-1, sg-nbn-2")
    granularity: Literal["layer", "neuron", "weight"] | None = Field(default=None, description="how many σ there are")
    fire: Literal["sample", "mean_field"] | None = Field(default=None, description="the forward pass in training")
    estimator: Annotated[Table, BeforeValidator(_named)] | None = Field(
        default=None, description='a name such as iwst, or with its options { name = "iwst", p = 0.5 }'
    )
    init: Literal["wide", "narrow"] | None = Field(
        default=None, description="means begin in U(±√(6/fan_in)), or in U(±1/√fan_in) as the authors' do"
    )
    normalisation: Literal["scale", "batch", "batch_over_time"] | None = Field(
        default=None,
        description="learned scale and bias, batch norm (spiking: one for each step), or one batch norm for all steps",
    )
    per_step: bool = Field(
        default=False, description="scale and bias for each time step too, as the authors' (spiking networks)"
    )
    initial_std: PositiveFloat | None = Field(
        default=None, description="σ·√fan_in at the start (0.5; authors, fixed: 1)"
    )


class OptimiserConfig(Section):
    """Adam with a rate for weights and one for scales, both annealed along a cosine."""

    epochs: PositiveInt = Field(default=30, description="times that training goes through all samples")
    batch_size: PositiveInt = Field(default=32, description="samples in one step of the optimiser")
    accumulate: PositiveInt = Field(
        default=1, description="a batch goes through the network in so many pieces, whose gradients are added up"
    )
    weight_rate: PositiveFloat = Field(default=0.005, description="learning rate of weights")
    scale_rate: PositiveFloat = Field(default=0.005, description="learning rate of log σ (the paper has 0.05)")
    final_rate: float = Field(default=0.02, gt=0, le=1, description="rate at the end, as a share of the start")
    warmup_epochs: NonNegativeFloat = Field(default=0.0, description="epochs over which rates rise from zero")
    clip_norm: PositiveFloat | None = Field(default=None, description="largest norm of the whole gradient")
    samples: PositiveInt = Field(default=1, description="noisy passes for each batch")
    gaps: Literal["float16", "float32", "recomputed"] = Field(
        default="float16",
        description="how h* − θ is kept for the backward pass; float32 takes twice the memory and moves a gradient by "
        "about a thousandth; recomputed has the gradients of float32, keeps nothing where a current comes straight "
        "from its synapses, and repeats the forward pass",
    )
    tf32: bool = Field(
        default=False,
        description="let a GPU round weights to 10 bits in convolutions and products: faster, other spikes",
    )
    label_smoothing: float = Field(
        default=0.0, ge=0, lt=1, description="share of the target that is spread evenly over all classes"
    )


class RegulariserConfig(Section):
    """What keeps signals near their noise: λ · mean of r² or of ½ ln(1 + r²). Variants without a KL term have none."""

    form: Literal["quadratic", "log"] = Field(default="quadratic", description="r², or ½ ln(1 + r²) as in the text")
    of: Literal["neuron", "current", "weight"] = Field(
        default="neuron", description="what r is: (h* − θ)/κ, I/κ_I of the arriving current, or m/σ"
    )
    weight: float | Literal["auto"] = Field(
        default="auto", description="λ; auto finds one for each layer, by dual ascent on its mean r²"
    )
    total: Literal["mean", "sum"] = Field(
        default="mean", description="over all neurons and steps; the sum is the paper's, and its λ depends on the size"
    )
    target: PositiveFloat = Field(default=3.0, description="auto: the mean r² that no layer should exceed")
    rate: PositiveFloat = Field(default=0.05, description="auto: how fast ln λ moves in a step")

    @field_validator("weight", mode="before")
    @classmethod
    def _number_or_auto(cls, value: Any) -> Any:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if value != "auto" and not (number and isfinite(value) and value >= 0):
            raise ValueError("expected a finite number from 0 on, or 'auto'")
        return value


class NoiseConfig(Section):
    """Noise in training and after it, for a network that is to run with and without it."""

    anneal: float = Field(default=0.0, ge=0, le=1, description="noise falls to zero over this last share of the epochs")
    mean_field: float = Field(default=0.0, ge=0, lt=1, description="this share of the batches is without noise")
    temper: float = Field(
        default=0.0,
        ge=0,
        lt=1,
        description="after the last epoch σ shrinks until noise costs at most this share of the decisions; 0: it stays",
    )


class FinetuneConfig(Section):
    """A closing phase with the mean-field forward pass, for networks that are to be collapsed."""

    epochs: NonNegativeInt = Field(default=0, description="epochs of this phase, after the optimiser's")
    rate: float = Field(default=0.1, gt=0, le=1, description="its learning rates, as a share of the optimiser's")


class Config(Section):
    """A whole run."""

    seed: int = Field(default=0, ge=0, lt=2**63, description="what every random number of the run follows from")
    device: str = Field(default="auto", description="auto, cpu, cuda, cuda:1, …")
    backend: Literal["auto", "native", "triton", "torch"] = Field(
        default="auto",
        description="what computes: auto takes the native core on a CPU and Triton kernels on a GPU; native, triton, "
        "torch",
    )
    data: DataConfig
    model: ModelConfig
    variant: VariantConfig = Field(default_factory=VariantConfig)
    optimiser: OptimiserConfig = Field(default_factory=OptimiserConfig)
    regulariser: RegulariserConfig = Field(default_factory=RegulariserConfig)
    noise: NoiseConfig = Field(default_factory=NoiseConfig)
    finetune: FinetuneConfig = Field(default_factory=FinetuneConfig)
    eval_samples: PositiveInt = Field(default=8, description="noisy passes of the Bayesian predictive at the end")
