"""One exported network in three implementations, and a comparison that counts: torch, onnxruntime, onnx.reference."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import onnx
import onnxruntime as ort
import torch
from numpy.typing import NDArray
from onnx.reference import ReferenceEvaluator
from torch import Tensor

from axonnx.export.collapsed import Collapsed, CollapseSettings, collapse_network
from axonnx.export.contract import make_contract
from axonnx.export.write import build_model
from axonnx.models import MEAN_FIELD, Network, Replay
from axonnx.runtime.format.contract import Contract, InputContract

Values = dict[str, NDArray]


@dataclass(frozen=True)
class Exported:
    """A collapsed network and the model that was built of it."""

    collapsed: Collapsed
    contract: Contract
    model: onnx.ModelProto
    session: ort.InferenceSession

    @property
    def data(self) -> bytes:
        return self.model.SerializeToString(deterministic=True)

    def noises(self, x: Tensor, seed: int = 0) -> dict[str, Tensor]:
        """Noise for every noisy layer, of the shape that ``x`` asks for."""
        generator = torch.Generator().manual_seed(seed)
        axes = 2 if self.contract.input.steps and self.contract.form == "sequence" else 1
        inputs = [entry for entry in self.session.get_inputs() if entry.name.startswith("noise/")]
        return {i.name: torch.randn(*x.shape[:axes], *i.shape[axes:], generator=generator) for i in inputs}

    def on_torch(self, x: Tensor, noises: Mapping[str, Tensor]) -> Values:
        """The collapsed torch networks' own pass, under the names of the graph's outputs."""
        found: Values = {}
        logits = []
        for member in self.collapsed.members:
            drawn = {name.removeprefix("noise/"): noise for name, noise in noises.items()}
            with torch.no_grad():
                output = member.network(x, Replay(drawn) if drawn else MEAN_FIELD)
            logits.append(output.logits.numpy())
            for layer, seen in output.observations.items():
                found[f"trace/spikes/{member.prefix}{layer}"] = seen.spikes.numpy()
                if self.contract.kind == "spiking":
                    found[f"trace/membrane/{member.prefix}{layer}"] = seen.gap.numpy()
        return found | ({"logits": logits[0]} if len(logits) == 1 else {"member_logits": np.stack(logits)})

    def on_onnxruntime(self, x: Tensor, noises: Mapping[str, Tensor]) -> Values:
        names = [output.name for output in self.session.get_outputs()]
        return dict(zip(names, self.session.run(None, _feeds(x, noises)), strict=True))

    def on_reference(self, x: Tensor, noises: Mapping[str, Tensor]) -> Values:
        evaluator = ReferenceEvaluator(self.model)
        return dict(zip(evaluator.output_names, evaluator.run(None, _feeds(x, noises)), strict=True))


def export(
    network: Network,
    arriving: InputContract,
    settings: CollapseSettings | None = None,
    *,
    form: str = "sequence",
    trace: bool = True,
    thresholds: Mapping[str, Tensor] | None = None,
) -> Exported:
    """Collapse and export, with every layer's spikes and membranes as outputs."""
    return exported(collapse_network(network, arriving, settings, thresholds), form=form, trace=trace)


def exported(collapsed: Collapsed, *, form: str = "sequence", trace: bool = True) -> Exported:
    first = collapsed.members[0]
    classes = len(first.network.get_submodule(first.captured.signature.readout).bias)
    contract = make_contract(collapsed, tuple(f"class {number}" for number in range(classes)), form)
    model = build_model(collapsed, contract, with_traces=trace)
    return Exported(collapsed, contract, model, open_session(model))


def open_session(model: onnx.ModelProto, disabled: tuple[str, ...] = ()) -> ort.InferenceSession:
    """Stock onnxruntime with all its optimisations, on one thread."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return ort.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"], disabled_optimizers=list(disabled)
    )


def _feeds(x: Tensor, noises: Mapping[str, Tensor]) -> Values:
    return {"events": x.numpy(), **{name: noise.numpy() for name, noise in noises.items()}}


@dataclass
class Comparison:
    """How many numbers were compared, and how many of them differ; equal is equal, without a tolerance."""

    compared: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    differing: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    largest_logit_difference: float = 0.0

    def add(self, expected: Values, found: Values) -> None:
        """Everything that both sides tell; the first must not tell more than the second."""
        for name, value in expected.items():
            other, kind = found[name], _kind(name)
            assert value.dtype == other.dtype == np.float32
            assert value.shape == other.shape, name
            self.compared[kind] += value.size
            self.differing[kind] += int((value != other).sum())  # NaN differs from everything
            if kind == "logits":
                difference = float(np.abs(value - other).max(initial=0.0))
                self.largest_logit_difference = max(self.largest_logit_difference, difference)

    def hold(self, kinds: tuple[str, ...]) -> None:
        """Nothing differs, and something of each kind was compared."""
        assert all(self.compared[kind] > 0 for kind in kinds), self.compared
        assert self.differing == dict.fromkeys(KINDS, 0), f"differing {self.differing} of {self.compared}"
        assert self.largest_logit_difference == 0.0


KINDS = ("spikes", "membranes", "logits")


def _kind(name: str) -> str:
    return "spikes" if "spikes/" in name else "membranes" if "membrane/" in name else "logits"
