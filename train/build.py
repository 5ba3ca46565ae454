"""From a checked configuration to the parts of a run: data, binning, batches, network."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import ValidationError

from axonnx import models
from axonnx.base.errors import AxonnxError
from axonnx.models import Network, Variant
from axonnx.models.checking import check_network
from axonnx.models.described import DescribedNetwork, numbers_in, read_layers
from axonnx.runtime.binning import Binning
from axonnx.runtime.format.contract import MOST_SCALED, InputContract, MergingContract
from axonnx.runtime.format.network_input import merge_frames
from axonnx.train import own
from axonnx.train.config.own import OwnSource, own_source
from axonnx.train.config.settings import Config, DataConfig, ModelConfig, ValidationConfig, VariantConfig
from axonnx.train.data.recordings import Frames, Recordings
from axonnx.train.data.registry import load_data_set
from axonnx.train.data.shaping import Shaping
from axonnx.train.data.splits import DataSplits, Quantities, read_quantities
from axonnx.train.noise import refuse_idle_noise


@dataclass(frozen=True)
class Prepared:
    """Data that is ready to be batched, and the shape of one sample as the network sees it."""

    splits: DataSplits
    binning: Binning | None
    shape: tuple[int, ...]  # [T, C, H, W] with time, [C, H, W] without
    merging: MergingContract | None = None  # of frames
    repeated: bool = False  # an image for all time steps
    quantities: Quantities | None = None  # what is learned in place of classes

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of what the network gives: classes, or real values."""
        return self.splits.classes if self.quantities is None else self.quantities.names

    @property
    def units(self) -> tuple[str, ...] | None:
        """The units of real values."""
        return None if self.quantities is None else self.quantities.units

    @property
    def targets(self) -> NDArray[np.float32] | None:
        """The real values [classes, values] that each class stands for."""
        return None if self.quantities is None else self.quantities.table

    @property
    def steps(self) -> int | None:
        """T, of data with a time axis."""
        return self.shape[0] if len(self.shape) == 4 else None


def prepare(config: DataConfig) -> Prepared:
    """Load the data set and work out how it is binned, and what is learned."""
    prepared = _binned(config)
    if config.quantities is None:
        return prepared
    return replace(prepared, quantities=read_quantities(config.quantities, prepared.splits.classes, config.name))


def _binned(config: DataConfig) -> Prepared:
    shaping = Shaping(config.resize, config.crop, config.windows)
    splits = load_data_set(config.name, root=config.root, shaping=shaping, **config.options)
    if config.classes is not None:
        splits = splits.with_classes(config.classes)
    if config.held_out is not None:
        splits = splits.with_test_groups(config.held_out)
    elif config.unseen:
        splits = splits.with_unseen_groups()
    splits = _with_validation(splits, config.validation)
    _refuse_idle_settings(config, splits)
    if splits.kind == "events":
        binning = make_binning(config, splits)
        return Prepared(splits, binning, binning.shape)
    merging = _merging(config, splits) if config.merge_frames > 1 else None
    if merging is not None:
        splits = _merged(splits, merging)
    if config.repeat > 1:
        splits = _repeated(config, splits)
    assert isinstance(splits.train, Frames)
    return Prepared(splits, None, tuple(splits.train.frames.shape[1:]), merging, config.repeat > 1)


def _with_validation(splits: DataSplits, how: ValidationConfig) -> DataSplits:
    if how.groups is not None:
        splits = splits.with_validation_groups(how.groups)
    return splits.with_validation(how.share, how.seed, how.by) if how.share else splits


def _refuse_idle_settings(config: DataConfig, splits: DataSplits) -> None:
    """Refuse a setting that this kind of data would never look at."""
    events = splits.kind == "events"
    idle = FRAME_SETTINGS if events else EVENT_SETTINGS
    if config.scale_to is not None and config.centre:
        raise AxonnxError("data.scale_to is for counts, which begin at 0; leave data.centre out")
    if not events and config.merge_frames == 1:
        idle = (*idle, "clip")
    for key in idle:
        if getattr(config, key) != DataConfig.model_fields[key].default:
            kind = "frames and images" if events else "sums of frames" if key == "clip" else "events"
            raise AxonnxError(f"data.{key} is for {kind}; {config.name} has {splits.kind}. Leave it out")


LONGEST_BIN_US = 3_600_000_000  # of a bin that its events alone end: an hour
EVENT_SETTINGS = ("bins", "duration_ms", "bin_events", "values", "downsample", "polarity")
FRAME_SETTINGS = ("merge_frames", "repeat", "centre")


def make_binning(config: DataConfig, splits: DataSplits) -> Binning:
    """How the data set's events become frames."""
    duration_us = config.windows.duration_us if config.duration_ms is None else round(1000 * config.duration_ms)
    if config.bin_events is not None and config.bins is not None and duration_us is None:
        duration_us = config.bins * LONGEST_BIN_US
    if config.bins is None or duration_us is None:
        raise _without_binning(config, splits)
    assert splits.sensor is not None
    try:
        return Binning.over(
            duration_us=duration_us,
            bins=config.bins,
            sensor=splits.sensor,
            most_events=config.bin_events,
            origin="zero" if splits.cut else splits.origin,  # windows begin where they were cut
            values=config.values,
            clip=config.clip,
            downsample=config.downsample,
            polarity=config.polarity,
        )
    except ValidationError as fault:
        raise AxonnxError(f"data: {fault.errors()[0]['msg']}") from None


def _without_binning(config: DataConfig, splits: DataSplits) -> AxonnxError:
    """Say what is missing, with values that fit the recordings."""
    assert isinstance(splits.train, Recordings)
    found = suggested_binning(splits.train, config.bins, config.duration_ms)
    given = {"data.bins": config.bins, "data.duration_ms": config.duration_ms}
    missing = {key: found[key] for key, value in given.items() if value is None and key in found}
    words = " and ".join(f"{key} (e.g. {value:g})" for key, value in missing.items())
    return AxonnxError(f"{config.name} holds events, and {words} must say how they are binned", settings=missing)


def _merging(config: DataConfig, splits: DataSplits) -> MergingContract:
    if not isinstance(splits.train, Frames) or not splits.train.is_sequence:
        raise AxonnxError(f"data.merge_frames is for sequences of frames; {config.name} has none")
    return MergingContract(recorded=splits.train.frames.shape[1], frames=config.merge_frames, clip=config.clip)


def _repeated(config: DataConfig, splits: DataSplits) -> DataSplits:
    """Every image as a sequence of itself, without copies of it."""
    shown: dict[str, Any] = {}
    for name, data in splits.parts.items():
        if not isinstance(data, Frames) or data.is_sequence:
            raise AxonnxError(f"data.repeat is for images; {config.name} has frames in time already. Leave it out")
        many = (len(data), config.repeat, *data.frames.shape[1:])
        shown[name] = replace(data, frames=np.broadcast_to(data.frames[:, np.newaxis], many))
    return replace(splits, **shown)


def _merged(splits: DataSplits, rule: MergingContract) -> DataSplits:
    """Every part with sums of frames in a row for its frames."""
    merged: dict[str, Any] = {}
    for name, data in splits.parts.items():
        assert isinstance(data, Frames)
        merged[name] = replace(data, frames=merge_frames(data.frames, rule).astype(np.uint8))
    return replace(splits, **merged)


def make_variant(config: VariantConfig) -> Variant:
    """Return the paper's variant with single settings replaced."""
    with _naming("variant.name"):
        chosen = models.variant(config.name)
    changes: dict[str, Any] = {}
    for key in ("granularity", "fire", "init", "initial_std", "normalisation"):
        if getattr(config, key) is not None:
            changes[key] = getattr(config, key)
    if config.per_step:
        if changes.get("normalisation", chosen.normalisation) != "scale":
            raise AxonnxError(f"variant.per_step is for scale and bias; {config.name!r} has batch norm. Leave it out")
        changes["normalisation"] = "scale_through_time"
    if config.estimator is not None:
        options = dict(config.estimator)
        if "name" not in options:
            raise AxonnxError("variant.estimator needs a name, e.g. { name = 'iwst', p = 0.5 }")
        with _naming("variant.estimator", (ValueError, TypeError)):
            changes["estimator"] = models.make_estimator(str(options.pop("name")), **options)
    with _naming("variant"):
        return replace(chosen, **changes)


@contextmanager
def _naming(key: str, faults: tuple[type[Exception], ...] = (ValueError,)) -> Iterator[None]:
    """Refusals of the models with the key of the setting they are about."""
    try:
        yield
    except faults as fault:
        raise AxonnxError(f"{key}: {fault}") from None


def make_network(config: Config, prepared: Prepared, source: OwnSource | None = None) -> Network:
    """Make the network for this data, with weights drawn from the run's seed; one's own from its ``source``."""
    torch.manual_seed(config.seed)
    source = source or own_source(config.model, Path())
    if source is not None:
        return _own(config, prepared, source)
    return _described(config, prepared) if config.model.network == "layers" else _shipped(config, prepared)


# What torch and Python say of sizes that do not fit each other.
UNFIT = (ValueError, TypeError, KeyError, IndexError, RuntimeError, OverflowError)


def _described(config: Config, prepared: Prepared) -> Network:
    """Make the network that model.layers describes."""
    model, variant = config.model, make_variant(config.variant)
    idle = [key for key in (*SIZES, *NEURON_SETTINGS, "arguments") if getattr(model, key) is not None]
    if idle:
        raise AxonnxError(f"model.{idle[0]} is not for the network 'layers', which model.layers describes as a whole")
    if prepared.steps is None:
        raise AxonnxError(f"{config.data.name} has no time axis; the network 'layers' is a spiking one")
    if not model.layers:
        raise AxonnxError("model.layers is missing: a table for each layer, as axonnx import writes them")
    refuse_idle_noise(config, variant)
    with _naming("model.layers", UNFIT):
        _refuse_count(numbers_in(read_layers(model.layers)))
        network = DescribedNetwork(model.layers, variant.through_time(prepared.steps))
        check_network(network, prepared.shape[-3:], len(prepared.outputs))
    return network


def _own(config: Config, prepared: Prepared, source: OwnSource) -> Network:
    idle = [key for key in (*SIZES, "layers") if getattr(config.model, key) is not None]
    if idle:
        raise AxonnxError(f"model.{idle[0]} is for shipped networks; put it into model.arguments")
    variant = make_variant(config.variant)
    refuse_idle_noise(config, variant)
    channels, height, width = prepared.shape[-3:]
    given = {
        "inputs": channels * height * width,
        "shape": (channels, height, width),
        "classes": len(prepared.outputs),
        "steps": prepared.steps,
        "variant": variant if prepared.steps is None else variant.through_time(prepared.steps),
        "settings": _lif_settings(config.model),
    }
    network = own.build(source, given, config.model.arguments or {}, _not_to_ignore(config, variant))
    _refuse_count(sum(value.numel() for value in network.parameters()))
    return network


def _not_to_ignore(config: Config, variant: Variant) -> dict[str, str]:
    """Arguments that a constructor must take, for these settings mean something to them."""
    set_here = [f"model.{key}" for key in NEURON_SETTINGS if getattr(config.model, key) is not None]
    found = {"settings": set_here[0]} if set_here else {}
    if any(getattr(variant, key) != getattr(Variant(), key) for key in LAYER_SETTINGS):
        found["variant"] = "variant"
    return found


def _shipped(config: Config, prepared: Prepared) -> Network:
    kind, steps = config.model.network, prepared.steps
    spiking = not kind.startswith("binary")
    if spiking != (steps is not None):
        have = "no time axis" if steps is None else "a time axis"
        fits = [name for name in NETWORKS if name.startswith("binary") == (steps is None)]
        raise AxonnxError(
            f"{config.data.name} has {have}, so model.network cannot be {kind!r}; it can be {', '.join(fits)}"
        )
    if config.variant.per_step and not spiking:
        raise AxonnxError(f"variant.per_step is for spiking networks; {kind!r} has no time steps. Leave it out")
    options = _options(config.model, kind)
    options["variant"] = make_variant(config.variant)
    refuse_idle_noise(config, options["variant"])
    options["classes"] = len(prepared.outputs)
    channels, height, width = prepared.shape[-3:]
    maps = kind.endswith(("resnet", "convnet"))
    options["inputs"] = channels if maps else channels * height * width
    if maps:
        options["size"] = height, width
    if spiking:
        options["settings"] = _lif_settings(config.model)
        options["steps"] = steps
    with _naming("model"):
        _refuse_too_large(kind, options)
        network: Network = NETWORKS[kind](**options)
    return network


def _refuse_too_large(kind: str, options: dict[str, Any]) -> None:
    """Count parameters on a device without memory, before any of them is made."""
    with torch.device("meta"):
        _refuse_count(sum(value.numel() for value in NETWORKS[kind](**options).parameters()))


def _refuse_count(count: int) -> None:
    if count > MOST_PARAMETERS:
        raise AxonnxError(
            f"a network of {count:,} parameters; at most {MOST_PARAMETERS:,} are made. Choose smaller sizes"
        )


MOST_PARAMETERS = 2**28  # with their moments 4 GB


NETWORKS: dict[str, Any] = {
    "binary-mlp": models.BinaryMLP,
    "binary-resnet": models.BinaryResNet,
    "spiking-mlp": models.SpikingMLP,
    "recurrent-snn": models.RecurrentSNN,
    "spiking-convnet": models.SpikingConvNet,
    "spiking-resnet": models.SpikingResNet,
}
RESIDUAL_SETTINGS: tuple[str, ...] = ("widths", "blocks", "shortcut", "stem_stride", "stream", "block_scale")
DELAY_SETTINGS = ("delays", "delayed")
SIZES = ("hidden", *DELAY_SETTINGS, *RESIDUAL_SETTINGS, "readout_decay")
LAYER_SETTINGS = ("spread", "normalisation", "granularity", "estimator", "init", "initial_std")  # of a variant
NEURON_SETTINGS = ("threshold", "decay", "learn_decay", "time_constants", "learn_threshold", "reset", "base_std")


def _options(model: ModelConfig, kind: str) -> dict[str, Any]:
    """Return the sizes that were given; a size that this network does not have is refused."""
    takes = RESIDUAL_SETTINGS if "resnet" in kind else ("hidden",)
    takes += () if kind.startswith("binary") else ("readout_decay",)
    takes += DELAY_SETTINGS if kind in ("spiking-mlp", "recurrent-snn") else ()
    takes += ("widths", "delays") if kind == "spiking-convnet" else ()
    if model.arguments:
        raise AxonnxError(f"model.arguments is for one's own networks; {kind!r} takes {', '.join(takes)}")
    given = {key: getattr(model, key) for key in (*SIZES, "layers")}
    given = {key: value for key, value in given.items() if value is not None}
    wrong = sorted(set(given) - set(takes))
    if kind.startswith("binary"):
        wrong += [key for key in NEURON_SETTINGS if getattr(model, key) is not None]
    if wrong:
        raise AxonnxError(f"model.{wrong[0]} is not for {kind!r}, which takes {', '.join(takes)}")
    if "delayed" in given and "delays" not in given:
        raise AxonnxError("model.delayed says which layers have delays; model.delays is missing, e.g. [0, 5, 10]")
    if kind.endswith("mlp") and "hidden" not in given:
        raise AxonnxError(f"model.hidden is missing: {kind!r} needs the sizes of its hidden layers, e.g. [128, 128]")
    if kind == "spiking-convnet" and "widths" not in given:
        raise AxonnxError(f"model.widths is missing: {kind!r} needs the channels of its convolutions, e.g. [16, 32]")
    return given


def _lif_settings(model: ModelConfig) -> models.LIFSettings:
    given = {key: getattr(model, key) for key in NEURON_SETTINGS}
    with _naming("model"):
        return models.LIFSettings(**{key: value for key, value in given.items() if value is not None})


def input_contract(config: Config, prepared: Prepared) -> InputContract:
    """Return what the network was fed in training."""
    return InputContract(
        name="events",
        shape=prepared.shape[-3:],
        steps=prepared.steps,
        binning=_deployed(prepared),
        fit=prepared.splits.fit,
        merging=prepared.merging,
        repeated=prepared.repeated,
        scaled_to=config.data.scale_to,
        centre=config.data.centre,
        shift=config.data.shift,
        largest=_largest(config, prepared),
    )


def _deployed(prepared: Prepared) -> Binning | None:
    """Return the binning of whole recordings: training knows where windows begin, and a device does not."""
    binning = prepared.binning
    return None if binning is None else binning.model_copy(update={"origin": prepared.splits.origin})


def _largest(config: Config, prepared: Prepared) -> int:
    if config.data.scale_to is not None:
        return MOST_SCALED
    if prepared.binning is not None:
        return prepared.binning.limit
    parts = [data.frames for data in prepared.splits.parts.values() if isinstance(data, Frames)]
    values = [int(np.max(frames)) for frames in parts] + [int(np.min(frames)) for frames in parts]
    return max(1, *(abs(value - config.data.centre) for value in values))


BINS = 20
ROUND = (1, 1.5, 2, 3, 4, 5, 6, 8)  # of a duration's first digits


def suggested_binning(data: Recordings, bins: int | None = None, duration_ms: float | None = None) -> dict[str, float]:
    """Bins, and a duration that nine of ten recordings fit into."""
    lengths = np.array([events["t"][-1] for events in map(data.__getitem__, range(len(data))) if len(events)], np.int64)
    return binning_for(lengths, bins, duration_ms)


def binning_for(
    lengths_us: NDArray[np.int64], bins: int | None = None, duration_ms: float | None = None
) -> dict[str, float]:
    """``data.bins`` and ``data.duration_ms`` for recordings of these lengths: a round number that divides into bins."""
    chosen = BINS if bins is None else bins
    if duration_ms is None:
        longest = float(np.quantile(lengths_us, 0.9)) / 1000 if len(lengths_us) else 1000.0
        power = 10.0 ** np.floor(np.log10(max(longest, 1.0)))
        wide = next((power * digit for digit in ROUND if power * digit >= 0.95 * longest), 10 * power)
        duration_ms = -(-round(1000 * wide) // chosen) * chosen / 1000  # whole µs in each bin
    return {"data.bins": chosen, "data.duration_ms": duration_ms}
