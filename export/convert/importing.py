"""``import_network``: a network of another library becomes a run folder and a file of ours, with a proof."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from axonnx.base.errors import AxonnxError
from axonnx.base.files import write_text
from axonnx.export.certainty import exact_scale, fitted_scale
from axonnx.export.convert.live import load_live, write_images, write_samples
from axonnx.export.convert.nir_neurons import NIRS_OWN, Assumed, Reset, Tie
from axonnx.export.convert.nir_source import NirSource, nir_source
from axonnx.export.convert.plan import Plan, Rule
from axonnx.export.convert.proof import Proof, prove
from axonnx.export.convert.source import Seen, Source, torch_source
from axonnx.export.convert.witness import RECORDED, recorded, witnessed
from axonnx.export.exporting import Exported, export_run
from axonnx.export.graph.grid import Stored
from axonnx.models import Network
from axonnx.models.described import INPUT
from axonnx.runtime.measure.metrics import metrics_of
from axonnx.runtime.measure.samples import choose_samples
from axonnx.runtime.streams.probabilities import softmax
from axonnx.train.build import Prepared, make_network, prepare
from axonnx.train.config.read import as_tree, check_config
from axonnx.train.config.settings import Config
from axonnx.train.loop import part_feed
from axonnx.train.run import write_run
from axonnx.train.trained import open_run

Tell = Callable[[str], None]
Doubles = NDArray[np.float64]
Integers = NDArray[np.int64]
VARIANT = "sg-nbn-1"  # weights without noise; fine-tuning may choose another
# An import is judged by its source, spike by spike, so its weights keep the finest grid: each rounding that is coarser
# moves more membranes across their thresholds. Networks trained here are stored as export.graph.grid says.
FITTED_ON = 512  # samples at most
Decision = Literal["count", "sum", "mean", "last", "maximum"]
RULES: dict[Decision, Rule] = {
    "count": "spike count",
    "sum": "sum",
    "mean": "mean",
    "last": "last",
    "maximum": "maximum",
}
TOLD = {"last": "last time step", "maximum": "maximum over time"}
IMPORTED_WEIGHTS: Stored = "float32"


@dataclass(frozen=True)
class Imported:
    """What an import leaves: a run folder, a file, and how equal they are to the source."""

    folder: Path
    source: str
    layers: tuple[str, ...]
    exported: Exported
    proof: Proof
    notes: tuple[str, ...]


def import_network(
    source: nn.Module | str | Path,
    output: str | Path = "model.onnx",
    *,
    run: str | Path | None = None,
    data: str | Path | None = None,
    settings: Mapping[str, Any] | None = None,
    shape: Sequence[int] | None = None,
    steps: int = 50,
    largest: int = 1,
    dt: float | None = None,
    reset: Reset = "value",
    tie: Tie = "silent",
    witness: nn.Module | str | Path | None = None,
    value: int = 0,
    decision: Decision | None = None,
    classes: Sequence[str] | None = None,
    samples: int = 64,
    weights: Stored = IMPORTED_WEIGHTS,
    overwrite: bool = False,
    tell: Tell = lambda _line: None,
) -> Imported:
    """Make ``source`` a network of ours: a run folder, the ONNX file ``output``, and a proof against the source.

    ``source`` is a torch module of snnTorch, SpikingJelly or Norse, or names one as ``file.py:factory`` (a class or a
    function that returns it, with its weights), or is the path of a NIR file, whose time step ``dt`` is then needed (in
    seconds). Of a module that returns several values, ``value`` has the classes.

    A NIR file states neither its reset nor whether a tie fires: ``reset`` and ``tie`` are assumed, and a ``witness``,
    the module that the file was made of or its recorded spikes, shows whether that is right. Without a witness the
    equations of the file are the source.

    ``data`` (a data set's name or a path) and ``settings`` (``{"data.bins": 20, …}``) say what the network is fed.
    Without them random events of ``shape`` (C, H, W), with ``steps`` time steps and counts up to ``largest``, take
    their place, labelled with the source's own decisions. ``samples`` are compared, of the data's test part.
    ``decision`` says how the source decides over time, if its own output does not show it. A temperature is fitted on
    the data's validation part, or else on its training part, so that softmax(logits) are probabilities.
    ``weights`` is how the file stores them, as in `export_run`; here "float32" is the default, the finest grid, as the
    file is compared with its source.
    """
    folder = Path(output).with_suffix("") if run is None else Path(run)
    given = _with_data(settings, data)
    size, labelled = _shape(source, shape, given), bool(given)
    made, seen = _source(source, size, dt, Assumed(reset, tie), witness, value)
    tell(f"{made.name}: {len(made.plan.layers)} layers")
    size = made.plan.shapes[INPUT] if size is None else size
    if "data.quantities" not in given and len(_classes(made, None)) == 1:
        raise AxonnxError(
            f"{made.name}: gives one number, which decides nothing among classes. If it is a real value, name it with "
            f"its unit, and give data whose folders are named by values",
            settings={"data.quantities": ["angle [deg]"]},
        )
    if not given:
        _refuse_taken(folder, overwrite)
        tell(f"no data given: {samples} samples of {made.repeats or steps} steps are drawn")
        given = {"data.name": str(folder / "samples"), "data.options": {"classes": _classes(made, classes)}}
        if made.repeats:
            given |= write_images(folder / "samples", made, size, samples)
        else:
            write_samples(folder / "samples", made, size, steps, samples, largest)
    config = _config(made.plan, given)
    prepared = prepare(config.data)
    if made.repeats and (not prepared.repeated or prepared.steps != made.repeats):
        raise AxonnxError(
            f"{made.name} shows one image in {made.repeats} time steps by itself; the data gives "
            f"{list(prepared.shape)}. Give images, each repeated {made.repeats} times",
            settings={"data.repeat": made.repeats},
        )
    rule, told = _rule(made, decision)
    made.plan.decide(rule, 1.0, 0)
    network = fill(make_network(_config(made.plan, given), prepared), made.plan)
    fitted = labelled and prepared.quantities is None
    seen_labels, looked_at = _outputs(network, prepared, config) if fitted else (None, {})
    made.plan.notes.append(_scale(made, rule, told, seen_labels, prepared))
    config = _config(made.plan, given)
    network = fill(make_network(config, prepared), made.plan)
    write_run(folder, config, prepared, network, overwrite, looked_at)
    exported = export_run(folder, output, weights=weights, tell=tell)
    tell("comparing with the source")
    x = _some(folder, samples)
    of_file = grid_weights(exported.collapsed.network)
    proof = prove(made, network.eval(), str(exported.path), of_file, x, exported.contract.input, seen)
    write_text(folder / "import.json", json.dumps({"source": made.name, **proof.as_dict()}, indent=1))
    layers = tuple(f"{layer.name:<20}{layer.kind:<14}hears {', '.join(layer.of)}" for layer in made.plan.layers)
    return Imported(folder, made.name, layers, exported, proof, tuple(dict.fromkeys(made.plan.notes)))


def _outputs(
    network: Network, prepared: Prepared, config: Config
) -> tuple[tuple[Doubles, Integers], dict[str, Integers]]:
    """Return outputs [N, classes] and labels of samples that are not of the test part, and their fingerprints."""
    part = "validation" if "validation" in prepared.splits.parts else "train"
    chosen = choose_samples(prepared.splits.parts[part].labels, FITTED_ON)
    feed = part_feed(prepared, config, torch.device("cpu"), part, chosen)
    network.eval()
    with torch.no_grad():
        found = [(network(batch.x).logits.double().numpy(), batch.labels.numpy()) for batch in feed.epoch(0)]
    outputs, labels = (np.concatenate(column) for column in zip(*found, strict=True))
    fingerprints = feed.batches.fingerprints(np.arange(len(labels)))
    return (outputs, labels), {"temperature": fingerprints}


def _rule(source: Source, stated: Decision | None) -> tuple[Rule, str]:
    """Return by what the source decides, and what is told of it if it was only assumed."""
    plan = source.plan
    rule: Rule = (RULES[stated] if stated else plan.rule) or ("spike count" if plan.reads_spikes else "mean")
    if rule == "spike count" and not plan.reads_spikes:
        raise AxonnxError(
            f"{source.name}: gives a membrane, no spikes to count; the decision is sum, mean, last or maximum"
        )
    if stated and plan.rule and {rule, plan.rule} & {"last", "maximum"} and rule != plan.rule:
        raise AxonnxError(
            f"{source.name}: its output is by the {plan.rule} over time, and decision says {stated}; leave decision "
            f"out, or return the outputs of all time steps"
        )
    return rule, "" if stated or plan.rule else ", as nothing shows another"


def _scale(source: Source, rule: Rule, told: str, seen: tuple[Doubles, Integers] | None, prepared: Prepared) -> str:
    """Give the plan its decision rule and its temperature; return what is told of them."""
    plan = source.plan
    sums = rule in ("spike count", "sum") and not told
    scale, fitted, how = float(prepared.steps or 1) if sums else 1.0, 0, "as the source's" if sums else "not fitted"
    if seen is not None:
        found = fitted_scale(*seen)
        if found is None:
            raise AxonnxError(
                f"{source.name}: its outputs do not grow with the probability of their class, on {len(seen[1])} "
                f"samples; check the order of the classes, the labels, and which value the network returns (value)"
            )
        scale, fitted = found, len(seen[1])
    if prepared.quantities is not None and exact_scale(scale, plan.reads_spikes) != scale:
        raise AxonnxError(
            f"{source.name}: gives the sum over {prepared.steps} steps, which no exact factor makes of the mean; "
            f"return the mean, or take a power of two for the number of time steps"
        )
    scale = exact_scale(scale, plan.reads_spikes)
    if seen is not None:
        before, after = (metrics_of(softmax(seen[0] * factor), seen[1]) for factor in (1.0, scale))
        losses = f"NLL {before.nll:.3f} → {after.nll:.3f}, ECE {before.ece:.3f} → {after.ece:.3f}"
        how = f"fitted on {fitted} samples: {losses}"
    plan.decide(rule, scale, fitted)
    return f"decision: by the {TOLD.get(rule, f'{rule} over time')}{told}; temperature {1.0 / scale:.4g}, {how}"


def fill(network: Network, plan: Plan) -> Network:
    """Put the plan's numbers into a network of its layers; spreads and layers made before stay as they are."""
    kept = tuple(f"layers.{name}." for name in plan.made)
    wanted = {name: value for name, value in network.state_dict().items() if not name.startswith(kept)}
    missing = [name for name in wanted if name not in plan.tensors and not name.endswith(".log_std")]
    assert not missing, missing
    found = {name: plan.tensors[name].reshape(value.shape) for name, value in wanted.items() if name in plan.tensors}
    network.load_state_dict(found, strict=False)
    return network


def grid_weights(network: Network) -> dict[str, Tensor]:
    """Weights and biases of a collapsed network, and weights from neurons to themselves, by the plan's names."""
    found = {}
    for name, module in network.named_modules():
        for part in ("weight", "bias", "recurrent_weight"):
            value = getattr(module, part, None)
            if isinstance(value, Tensor) and name.startswith("layers."):
                found[f"{name.removeprefix('layers.')}.{part}"] = value.clone()
    return found


def _source(
    source: nn.Module | str | Path,
    size: tuple[int, ...] | None,
    dt: float | None,
    assumed: Assumed,
    witness: nn.Module | str | Path | None,
    value: int,
) -> tuple[Source, tuple[Tensor, Seen] | None]:
    """Return what is imported, and the spikes that a witness recorded of it."""
    if not isinstance(source, nn.Module) and str(source).endswith((".nir", ".h5", ".hdf5")):
        file = nir_source(Path(source), dt, assumed)
        return _witnessed(file, witness, value)
    for name, given in (("dt", dt), ("witness", witness), ("reset", assumed if assumed != NIRS_OWN else None)):
        if given is not None:
            raise AxonnxError(
                f"{name} is for NIR files, which do not hold all of a network; a torch module is complete"
            )
    assert size is not None
    made = torch_source(load_live(source), size, value)
    if made.plan.made:
        raise AxonnxError(
            f"{made.name}: has neurons of Axonnx, which a run folder of layers cannot hold; axonnx.bayesian trains it "
            f"and axonnx.Model.from_module exports it"
        )
    return made, None


def _witnessed(
    file: NirSource, witness: nn.Module | str | Path | None, value: int
) -> tuple[Source, tuple[Tensor, Seen] | None]:
    if witness is None:
        return file, None
    if isinstance(witness, nn.Module) or not str(witness).endswith(RECORDED):
        return witnessed(file, witness if isinstance(witness, nn.Module) else str(witness), value), None
    return replace(file, proves=""), recorded(file, Path(witness))


def _shape(
    source: nn.Module | str | Path, shape: Sequence[int] | None, given: Mapping[str, Any]
) -> tuple[int, ...] | None:
    """Return the shape of a sample: the given one, that of the data, or what the first layer of weights takes."""
    if shape is not None:
        if len(shape) != 3 or min(shape) < 1:
            raise AxonnxError(f"shape is {tuple(shape)}; expected channels, height and width, e.g. (2, 34, 34)")
        return tuple(int(side) for side in shape)
    if given:
        return prepare(_config(Plan(), given, checked=False).data).shape[-3:]
    if not isinstance(source, nn.Module) and not str(source).rpartition(":")[0]:
        return None
    first = next((m for m in load_live(source).modules() if isinstance(m, nn.Linear | nn.Conv1d | nn.Conv2d)), None)
    if isinstance(first, nn.Linear):
        return 1, 1, first.in_features
    raise AxonnxError(
        "the shape of the input cannot be told from the network; give shape=(channels, height, width), or data"
    )


def _config(plan: Plan, given: Mapping[str, Any], checked: bool = True) -> Config:
    layers = [layer.as_table() for layer in plan.layers] if checked else []
    tree = as_tree({"variant.name": VARIANT, **given, "model.network": "layers", "model.layers": layers})
    return check_config(tree, "import")


def _with_data(settings: Mapping[str, Any] | None, data: str | Path | None) -> dict[str, Any]:
    found = dict(settings or {})
    if data is not None:
        found["data.name"] = str(data)
    if found and "data.name" not in found:
        raise AxonnxError(f"{next(iter(found))} is a setting of data; name the data too")
    return found


def _classes(source: Source, classes: Sequence[str] | None) -> list[str]:
    count = int(torch.Size(source.plan.shapes[source.plan.layers[-1].name]).numel())
    if classes is not None and len(classes) != count:
        raise AxonnxError(f"{len(classes)} classes are named; the network tells {count} apart")
    return [str(number) for number in range(count)] if classes is None else list(classes)


def _refuse_taken(folder: Path, overwrite: bool) -> None:
    if (folder / "config.toml").exists() and not overwrite:
        raise AxonnxError(
            f"{folder}: holds a run already. Overwrite it, or name another folder", options=("overwrite", "run")
        )


def _some(folder: Path, samples: int) -> Tensor:
    """Return samples of the test part as the network is fed them, [T, N, …]."""
    return torch.cat([x for x, _ in open_run(folder).data("test", samples)], 1)
