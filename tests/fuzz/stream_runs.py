"""Networks that follow streams, for the campaigns on streams and on saved sessions."""

from __future__ import annotations

from axonnx.runtime.engines.interface import Engine
from axonnx.runtime.model import load
from axonnx.runtime.streams.decision import Decision
from tests.fuzz.harness import shared_folder
from tests.fuzz.samples import samples

NETWORKS = ("mlp-mfa", "mlp-zero-stochastic", "recurrent-mfa", "resnet-mfa")


def engines(kind: str = "numpy") -> dict[str, Engine]:
    """Small networks by name, in an engine of that kind."""
    found = {}
    for name, data in samples(*NETWORKS).items():
        path = shared_folder() / f"{name}.onnx"
        path.write_bytes(data)
        found[name] = load(path, kind).engine
    assert len(found) == len(NETWORKS)
    return found


def said(decisions: list[Decision]) -> list[tuple[object, ...]]:
    """What decisions say, to the bit."""
    return [(d.t_us, d.bin, d.window, d.final, d.member_logits.tobytes()) for d in decisions]
