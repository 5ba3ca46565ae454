"""The top of a report: the verdict, the key figures, and the pipeline stages completed so far."""

from __future__ import annotations

from axonnx.report.facts.material import Material
from axonnx.report.html.markup import Content, Html, element
from axonnx.report.html.numbers import DASH, count, energy, interval, number, percent, short, si, size
from axonnx.report.html.page_blocks import missing, table, tile
from axonnx.runtime.measure.comparison import Difference
from axonnx.runtime.measure.verify_result import Implementation, VerifyResult

MODES = {
    "mfa": "posterior means",
    "sampled": "an ensemble of sampled weights",
    "stochastic": "neurons that keep their noise",
}


def in_a_sentence(material: Material) -> str:
    """What kind of network this is."""
    contract, neurons = material.model.contract, sum(layer.neurons for layer in material.model.layers)
    of = f" of {contract.provenance.data}" if contract.provenance.data else ""
    return (
        f"A {contract.kind} network of {count(neurons)} neurons for {len(contract.classes)} classes{of}, collapsed to "
        f"{MODES[contract.collapse.mode]}."
    )


def verdict(material: Material) -> Html:
    """Big and green, or red with the first divergence, or how to get one."""
    verify = material.verify
    if verify is None:
        command = f"axonnx verify {material.name} --run {material.run_name} -o verify.json"
        return _banner("open", "Not verified", missing("Nothing shows yet that the file is what was trained.", command))
    if verify.verdict == "equal":
        return _banner("good", f"Verified: {count(verify.mismatches)} mismatches", f"in {_compared(verify)}")
    found = "the file differs" if not verify.mismatches else f"{count(verify.mismatches)} mismatches"
    return _banner("bad", f"Not equal: {found}", _divergence(verify.first_divergence), _failures(verify))


def key_figures(material: Material) -> Html:
    """The tiles."""
    return element("dl", _tiles(material), class_="tiles")


def pipeline(material: Material) -> Html:
    """What was done, step by step, and what was not."""
    contract = material.model.contract
    collapse = contract.collapse
    members = f", {collapse.members} members" if collapse.members > 1 else ""
    epochs = f"{len(material.run.rows)} epochs" if material.run is not None else "no run named"
    steps = [
        ("Data", contract.provenance.data or "unnamed", _input(material), True),
        ("Train", material.run.path.name if material.run else DASH, epochs, material.run is not None),
        ("Collapse", collapse.mode + (", calibrated" if collapse.calibrated else ""), MODES[collapse.mode], True),
        ("Export", size(material.model.size), f"opset {material.model.opset}, {collapse.weights}{members}", True),
        ("Verify", *_verified(material.verify)),
        ("Profile", *_profiled(material)),
    ]
    return element("ol", [_step(*step) for step in steps], class_="pipeline", aria_label="Pipeline")


def verification(verify: VerifyResult | None) -> Html | None:
    """Who was compared with whom."""
    if verify is None or not (verify.implementations or verify.stages):
        return None
    stages = [element("li", _mark(stage.ok), stage.name, _lines(stage.lines)) for stage in verify.stages]
    head = ["implementation", "samples", "spikes differing", "membranes differing", "largest Δ logit"]
    rows = [_implementation(entry) for entry in verify.implementations]
    return element(
        "details",
        element("summary", "How it was verified"),
        element("ul", stages, class_="stages") if stages else None,
        table(head, rows, "Implementations against the reference", hide_caption=True) if rows else None,
        open=verify.verdict == "different",
        class_="card",
    )


def _tiles(material: Material) -> list[Html]:
    shipped, profile, model = material.shipped, material.profile, material.model
    tiles = []
    if shipped is not None:
        told = f"95 %: {interval(shipped.interval)}; {shipped.on}"
        tiles.append(tile("Accuracy", percent(shipped.accuracy), told))
    spikes = material.spikes_per_inference()
    if spikes is not None:
        tiles.append(tile("Spikes per inference", short(spikes), _rate(material)))
    if profile is not None:
        dense = profile.energy.dense_nj
        tiles.append(tile("Energy per inference", energy(profile.energy.total_nj), f"dense: {energy(dense)}"))
        per_step = si(profile.latency_ms_per_step * 1e-3, "s")
        tiles.append(tile("Time per step", per_step, f"engine {profile.engine}"))
    tiles.append(tile("File", size(model.size), f"sha256 {model.sha256[:8]}…"))
    tiles.append(tile("Parameters", short(model.parameters), f"{len(model.layers)} layers"))
    return tiles


def _rate(material: Material) -> str:
    rates = material.rates()
    return f"mean rate {percent(sum(rates.values()) / len(rates))}" if rates else ""


def _banner(kind: str, title: str, *content: Content) -> Html:
    sign = {"good": "✓", "bad": "✗", "open": "?"}[kind]
    text = [element("p", part) if isinstance(part, str) and not isinstance(part, Html) else part for part in content]
    body = element("div", element("p", title, class_="big"), text)
    return element("div", element("span", sign, class_="sign", aria_hidden="true"), body, class_=f"verdict {kind}")


def _compared(verify: VerifyResult) -> str:
    return ", ".join(f"{count(number)} {name}" for name, number in verify.compared)


def _divergence(first: Difference | None) -> str:
    if first is None:
        return "No single value was named; see the stages."
    where = [(name, getattr(first, name)) for name in ("layer", "sample", "step", "neuron")]
    place = ", ".join(f"{name} {value}" for name, value in where if value is not None)
    values = f"expected {_exactly(first.expected)}, found {_exactly(first.found)}"
    margin = ""
    if first.distance is not None:
        margin = f", {number(abs(first.distance))} from the threshold {_exactly(first.threshold)}"
    return f"First divergence in {first.implementation}: {place}: {values}{margin}."


def _exactly(value: float | None) -> str:
    """All digits of a float32."""
    return DASH if value is None else f"{value:.9g}"


def _failures(verify: VerifyResult) -> Html | None:
    lines = [line for stage in verify.stages if not stage.ok for line in stage.lines]
    return element("ul", [element("li", line) for line in lines]) if lines else None


def _input(material: Material) -> str:
    entering = material.model.contract.input
    shape = "×".join(str(side) for side in entering.shape)
    return f"images of {shape}" if entering.steps is None else f"{entering.steps} steps of {shape}"


def _verified(verify: VerifyResult | None) -> tuple[str, str, bool | None]:
    if verify is None:
        return DASH, "not done", False
    if verify.verdict == "equal":
        return "equal", f"{len(verify.implementations)} implementations", True
    return "different", f"{count(verify.mismatches)} mismatches", None


def _profiled(material: Material) -> tuple[str, str, bool]:
    profile = material.profile
    if profile is None:
        return DASH, "not done", False
    return energy(profile.energy.total_nj), f"{count(profile.samples)} samples", True


def _step(name: str, value: str, detail: str, done: bool | None) -> Html:
    kind = {True: "done", False: "open", None: "bad"}[done]
    return element("li", element("b", name), element("span", value), element("small", detail), class_=kind)


def _implementation(entry: Implementation) -> list[str]:
    differing = [count(entry.spikes_differing), count(entry.membranes_differing)]
    return [entry.name, count(entry.samples), *differing, number(entry.max_logit_difference)]


def _mark(ok: bool) -> Html:
    return element("span", "✓ " if ok else "✗ ", class_="good" if ok else "bad")


def _lines(lines: tuple[str, ...]) -> Html | None:
    return element("ul", [element("li", line) for line in lines]) if lines else None
