"""Settings of earlier versions, translated to present ones: an old run folder gives the same run."""

from __future__ import annotations

from typing import Any

from axonnx.base.errors import AxonnxError

# optimiser.kl was one of these, and optimiser.kl_weight its λ, for a sum over all neurons and steps.
KINDS = {"neuron": ("log", "neuron"), "weight": ("log", "weight"), "quadratic": ("quadratic", "neuron")}


def with_present_names(tree: dict[str, Any], where: str) -> dict[str, Any]:
    """``tree`` with ``[regulariser]`` in the place of ``optimiser.kl`` and ``optimiser.kl_weight``."""
    optimiser = tree.get("optimiser")
    old = [key for key in ("kl", "kl_weight") if isinstance(optimiser, dict) and key in optimiser]
    if not old or not isinstance(optimiser, dict):
        return tree
    if "regulariser" in tree:
        raise AxonnxError(
            f"{where}: optimiser.{old[0]} is of an earlier version, and the section regulariser, which took its place, "
            f"is there too. Set regulariser.weight, which is for a mean over neurons and steps; the λ of "
            f"optimiser.kl_weight was for a sum, regulariser.total = 'sum'"
        )
    kind, weight = optimiser.get("kl", "neuron"), optimiser.get("kl_weight", 1e-6)
    if kind not in KINDS:
        raise AxonnxError(f"{where}: optimiser.kl is {kind!r}; expected one of {', '.join(map(repr, KINDS))}")
    form, of = KINDS[kind]
    rest = {key: value for key, value in optimiser.items() if key not in old}
    return {**tree, "optimiser": rest, "regulariser": {"form": form, "of": of, "weight": weight, "total": "sum"}}
