"""Describe the ways to run a trained network."""

from __future__ import annotations

from axonnx.runtime.format.contract import AccuracyContract, CollapseContract


def way_text(entry: AccuracyContract, collapse: CollapseContract | None = None) -> str:
    """Describe the way of an accuracy; ``collapse`` is the file's own, if known."""
    texts = {
        "bayesian": f"bayesian ({entry.draws} passes)",
        "mean_field": "mean-field, as trained",
        "sampled": f"sampled ({entry.draws} members)",
        "stochastic": "stochastic (1 pass)",
        "unreduced": "before pruning and rounding",
        "file": "this file" if collapse is None else f"this file: {collapse_text(collapse)}",
    }
    return texts[entry.way]


def collapse_text(collapse: CollapseContract) -> str:
    """Describe how the posterior became this network, separated by commas."""
    parts = [
        collapse.mode,
        "calibrated" if collapse.calibrated else "",
        "" if collapse.weights == "float32" else collapse.weights,
        "" if collapse.prune is None else f"pruned below {collapse.prune:g}",
    ]
    return ", ".join(part for part in parts if part)
