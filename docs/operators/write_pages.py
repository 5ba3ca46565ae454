"""Write one page for each spike operator of the opset: ``python docs/operators/write_pages.py``.

Everything but what the names of values mean comes from the operator set, so a page cannot say anything else than the
code. A test compares the pages with what this script writes.
"""

from __future__ import annotations

from pathlib import Path

from axonnx.runtime.format.opset import DOMAIN, ONNX_OPSET, OPS, VERSION, SpikeOp, function

HERE = Path(__file__).parent
STATE, PARAMETER = "[B, …]", "broadcasts to […]"
EACH = "one for all neurons, for each neuron, or for each channel"

# name -> (shape, what it is)
VALUES: dict[str, tuple[str, str]] = {
    "current": (STATE, "I, what the synapses bring in this time step"),
    "threshold": (PARAMETER, f"θ, {EACH}"),
    "decay": (PARAMETER, f"β, the share of the membrane that is left after one time step; {EACH}"),
    "membrane": (STATE, "h, the membrane after the time step before; zeros at the beginning"),
    "spikes": (STATE, "o, the spikes of the time step before, each 0 or 1; zeros at the beginning"),
    "variance": (STATE, "v, the variance of the membrane after the time step before; zeros at the beginning"),
    "arriving_variance": (STATE, "Var I, the variance of the current of this time step"),
    "noise": (STATE, "ε, standard-normal numbers that the caller draws; one for each neuron and time step"),
    "base_variance": (PARAMETER, "σ_base², the variance of the threshold; enters the decision, not the state"),
    "total": (
        STATE,
        "s, the sum of the read-out's membranes so far, or the last or the largest; zeros at the beginning",
    ),
    "begun": (STATE, "b, 1 if there was a time step before; zeros at the beginning"),
    "next_begun": (STATE, "b', 1"),
    "synaptic": (STATE, "i, the synaptic current after the time step before; zeros at the beginning"),
    "next_synaptic": (STATE, "i', the synaptic current after this time step: any real number"),
    "synaptic_decay": (PARAMETER, f"α, the share of the current that is left after one time step; {EACH}"),
    "zeroed": (PARAMETER, f"z, 1 where a spike sets its membrane to zero before it decays, 0 elsewhere; {EACH}"),
    "taken": (PARAMETER, f"r, what a spike takes from its membrane before it decays; {EACH}"),
    "late_zeroed": (PARAMETER, f"Z, 1 where a spike sets the next step's membrane to zero, its current too; {EACH}"),
    "late_taken": (PARAMETER, f"R, what a spike takes from the next step's membrane; {EACH}"),
    "adaptation": (STATE, "a, the adaptation after the time step before; zeros at the beginning"),
    "next_adaptation": (STATE, "a', the adaptation after this time step"),
    "adaptation_decay": (PARAMETER, f"δ, the share of the adaptation that is left after one time step; {EACH}"),
    "membrane_share": (PARAMETER, f"c, what the membrane of the step before adds to it; {EACH}"),
    "spike_share": (PARAMETER, f"b, what a spike of the step before adds to it; {EACH}"),
    "current_gain": (PARAMETER, f"g, by how much it lowers the current; {EACH}"),
    "threshold_gain": (PARAMETER, f"f, by how much it raises the threshold; {EACH}"),
    "lost": (PARAMETER, f"m, the numerator of the leak m / 2ˢ, 1 … 2ˢ; {EACH}"),
    "scale": (PARAMETER, f"2ˢ, 1 … 2¹⁶; {EACH}"),
    "round_above": (PARAMETER, f"ρ where v ≥ 0: 2ˢ − 1 rounds the rest of the membrane down, 0 up; {EACH}"),
    "round_below": (PARAMETER, f"ρ where v < 0: 2ˢ − 1 rounds the rest of the membrane down, 0 up; {EACH}"),
    "least": (PARAMETER, f"ℓ, 1 where a positive membrane loses at least 1, 0 elsewhere; {EACH}"),
    "most": (PARAMETER, f"n, the most spikes in one time step; {EACH}"),
    "counts": (STATE, "c, the number of spikes in the time step before; zeros at the beginning"),
    "next_counts": (STATE, "c', the number of spikes in this time step"),
    "unit": (PARAMETER, "u, a power of two: what 1 in the read-out's membrane adds to the sum"),
    "resonance": (STATE, "x, the resonance after the time step before; zeros at the beginning"),
    "next_resonance": (STATE, "x', the resonance after this time step"),
    "kept": (PARAMETER, f"a = decay · cos ω, the share of membrane and resonance that stays; {EACH}"),
    "turned": (PARAMETER, f"b = decay · sin ω, the share that goes over to the other; {EACH}"),
    "x": ("[B, C, H, W], H and W even", "any real numbers"),
    "next_membrane": (STATE, "h', the membrane after this time step"),
    "next_variance": (STATE, "v', the variance of the membrane after this time step"),
    "next_spikes": (STATE, "o', the spikes of this time step, each 0 or 1"),
    "next_total": (STATE, "s', the same with this time step's membrane"),
    "activity": ("[B, neurons]", "what reaches each neuron from all others"),
    "y": ("[B, C, H / 2, W / 2]", "the means"),
}
LEAKS = ("lost", "scale", "round_above", "round_below", "least")
VALUES |= {
    f"synaptic_{name}": (PARAMETER, f"as `{name}` of IntegerLIF, of the current: {VALUES[name][1]}") for name in LEAKS
}
OF_LAYER = ("[B, neurons]", "o, the spikes of a layer")
STATELESS = {
    "current": (STATE, "I, what the synapses bring"),
    "variance": (STATE, "κ², the variance of the current; zero or more"),
    "spikes": (STATE, "o, each 0 or 1"),
}


def page(op: SpikeOp) -> str:
    """Return the page of one operator, in the form of ONNX's own."""
    sections = [
        f"# {DOMAIN}::{op.name}\n\n{op.about}",
        f"## Version\n\nSince version {VERSION} of `{DOMAIN}`. Its body is of ONNX opset {ONNX_OPSET}.",
        "## Attributes\n\nNone: decay and threshold are inputs, constants of the graph that calls.",
        "## Inputs\n\n" + _table(op, op.inputs),
        "## Outputs\n\n" + _table(op, op.outputs),
        f"## Type constraints\n\n`T`: `tensor(float)`. {_types(op)}",
        f"## Formula\n\n    {op.formula}",
        f"## Ties\n\n{_ties(op)}",
        f"## Order of operations\n\n{_order(op)}",
        f"## Body\n\nThe definition: every file carries it, and a runtime that does not know the name runs it.\n\n"
        f"```\n{op.text}\n```",
    ]
    return "\n\n".join(sections) + "\n"


def _types(op: SpikeOp) -> str:
    if not op.integers:
        return "Nothing is computed in a wider type on the way."
    return (
        "All numbers are whole and below 2²⁴ in magnitude, where float32 is exact (`unit` and `total` are multiples of "
        "a power of two); the operator computes in int32. [The certificate](../file-format.md) of a layer's width "
        "ensures that nothing overflows."
    )


def _table(op: SpikeOp, names: tuple[str, ...]) -> str:
    rows = [f"| `{name}` | T | {shape} | {text} |" for name in names for shape, text in [_value(op, name)]]
    return "\n".join(["| name | type | shape | |", "| --- | --- | --- | --- |", *rows])


def _value(op: SpikeOp, name: str) -> tuple[str, str]:
    if op.membrane == "current" and name in STATELESS:
        return STATELESS[name]
    return OF_LAYER if op.outputs == ("activity",) and name == "spikes" else VALUES[name]


def _ties(op: SpikeOp) -> str:
    if "most" in op.parameters:
        return "A membrane on a multiple of its threshold fires as many spikes as it holds."
    if op.spikes is None:
        return "There is no decision, so there are no ties."
    value = "current" if op.membrane == "current" else "membrane"
    if op.variance is None:
        return f"A {value} on its threshold fires: the comparison is `≥`."
    return (
        f"The comparison is `≥`, on signed squares: without noise or without variance a {value} on its threshold "
        f"(0 ≥ 0) fires. No square root is taken, whose last bit differs between runtimes."
    )


def _order(op: SpikeOp) -> str:
    """List the body's nodes one by one; constants are not operations."""
    nodes = [node for node in function(op.name).node if node.op_type != "Constant"]
    steps = [f"{n}. `{node.output[0]}` = {node.op_type}({', '.join(node.input)})" for n, node in enumerate(nodes, 1)]
    if op.integers:
        return "\n".join(steps) + "\n\nEach is exact. Div rounds towards zero, and Mod has the sign of its divisor."
    rule = "Each is rounded to float32. An engine may not reorder them, nor join a product and a sum into one rounding."
    return "\n".join(steps) + f"\n\n{rule}"


def index() -> str:
    """Return the list of all operators."""
    rows = [f"| [{op.name}]({op.name}.md) | `{_in_cell(op.formula)}` |" for op in OPS.values()]
    head = f"# Operators of `{DOMAIN}`, version {VERSION}\n\nWritten by `python docs/operators/write_pages.py`.\n"
    return "\n".join([head, "| operator | formula |", "| --- | --- |", *rows]) + "\n"


def _in_cell(text: str) -> str:
    """Escape bars, which would end the cell."""
    return text.replace("|", "\\|")


def pages() -> dict[str, str]:
    """Every file of this folder that is written, by name."""
    return {"README.md": index(), **{f"{op.name}.md": page(op) for op in OPS.values()}}


def main() -> None:
    """Write them."""
    for name, text in pages().items():
        (HERE / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
