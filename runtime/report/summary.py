"""The top of a report: the verdict, the key figures, and the pipeline stages completed so far."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

from axonnx.runtime.format.contract import results_of
from axonnx.runtime.measure.comparison import Difference
from axonnx.runtime.measure.verify_result import Implementation, VerifyResult
from axonnx.runtime.report.charts import Axis, Series, count_axis, curves, finite, nothing, positive, rates, shares
from axonnx.runtime.report.markup import (
    DASH,
    Content,
    Html,
    card,
    cards,
    count,
    element,
    energy,
    folded,
    interval,
    listing,
    missing,
    number,
    percent,
    section,
    short,
    si,
    size,
    table,
    tile,
)
from axonnx.runtime.report.material import Material, PartMetrics, Row, RunFiles

MODES = {
    "mfa": "posterior means",
    "sampled": "an ensemble of sampled weights",
    "stochastic": "neurons that keep their noise",
}


def in_a_sentence(material: Material) -> str:
    """Return what kind of network this is."""
    contract, neurons = material.model.contract, sum(layer.neurons for layer in material.model.layers)
    of = f" of {contract.provenance.data}" if contract.provenance.data else ""
    return (
        f"A {contract.kind} network of {count(neurons)} neurons for {results_of(contract)}{of}, collapsed to "
        f"{MODES[contract.collapse.mode]}."
    )


def verdict(material: Material) -> Html:
    """Show that the file is verified, or the first divergence, or how to verify it."""
    verify = material.verify
    if verify is None:
        command = f"axonnx verify {material.name} --run {material.run_name} -o verify.json"
        return _banner(
            "open", "Not verified", missing("Nothing proves yet that the file equals the trained network.", command)
        )
    if verify.verdict == "equal":
        compared = ", ".join(f"{count(number)} {name}" for name, number in verify.compared)
        return _banner("good", f"Verified: {count(verify.mismatches)} mismatches", f"in {compared}")
    found = "the file differs" if not verify.mismatches else f"{count(verify.mismatches)} mismatches"
    failures = _lines(tuple(line for stage in verify.stages if not stage.ok for line in stage.lines))
    return _banner("bad", f"Not equal: {found}", _divergence(verify.first_divergence), failures)


def key_figures(material: Material) -> Html:
    """Return the tiles."""
    return element("dl", _tiles(material), class_="tiles")


def pipeline(material: Material) -> Html:
    """Return what was done, step by step, and what was not."""
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
    for name, unit, figure, low, high in material.errors("mae"):
        told = f"95 %: {number(low)} – {number(high)}{unit and ' ' + unit}"
        tiles.append(tile(f"Mean error of {name}", f"{number(figure)} {unit}".rstrip(), told))
    spikes = material.spikes_per_inference()
    if spikes is not None:
        tiles.append(tile("Spikes per inference", short(spikes), _rate(material)))
    if profile is not None:
        found = profile.energy
        dense = min(found.dense, key=lambda each: each.parts.total)
        beside = f"dense: {energy(dense.parts.total)}; fewer joules: {found.verdict(dense)}"
        tiles.append(tile("Energy per inference", energy(found.total_nj), beside))
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


def _divergence(first: Difference | None) -> str:
    if first is None:
        return "No single value is the cause; see the stages."
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


TITLE = "Training"
UNKNOWN = "results.csv has no values for this chart."
LOSSES = {"loss": "loss", "cross_entropy": "cross-entropy", "validation_nll": "validation NLL", "test_nll": "test NLL"}
ACCURACIES = {"train_accuracy": "training", "validation_accuracy": "validation", "test_accuracy": "test"}


def training_section(run: RunFiles | None) -> Html:
    """Curves and final figures; without a run, how to name one."""
    if run is None:
        return section("training", TITLE, None, missing("No run folder was named.", "axonnx report … --run RUN"))
    lead = f"{len(run.rows)} epochs of {run.path.name}." if run.rows else f"{run.path.name} has no finished epoch yet."
    return section("training", TITLE, lead, _charts(run.rows) if run.rows else None, _final(run))


def column(rows: Sequence[Row], name: str) -> list[float]:
    """Return a column as numbers; what is none is NaN."""
    return [_number(row.get(name)) for row in rows]


def _charts(rows: Sequence[Row]) -> Html:
    epochs = [at if math.isnan(epoch) else epoch for at, epoch in enumerate(column(rows, "epoch"), 1)]
    x = count_axis(int(min(epochs)), int(max(epochs)), "epoch")
    turns = [e - 0.5 for e, a, b in zip(epochs[1:], rows, rows[1:], strict=False) if a.get("phase") != b.get("phase")]
    loss, accuracy = _named(rows, LOSSES), _named(rows, ACCURACIES)
    errors = {name: column(rows, name) for name in dict.fromkeys(key for row in rows for key in row) if "rmse" in name}
    firing, gradients = _under(rows, "rate/"), _under(rows, "gradient/")
    gradients = _named(rows, {"gradient_norm": "all"}) | gradients

    def draw(title: str, series: Series, y: Axis) -> Html:
        note = "Vertical line: fine-tuning begins." if turns else None
        full = bool(finite(series))
        return curves(title, x, epochs, series, y, marks=turns, note=note) if full else nothing(title, UNKNOWN)

    return cards(
        draw("Loss", loss, positive(loss)),
        draw("Error", errors, positive(errors)) if errors else draw("Accuracy", accuracy, shares(accuracy)),
        draw("Firing rates", firing, rates(firing, "spikes per neuron and step")),
        draw("Gradient norms", gradients, positive(gradients)),
    )


def _final(run: RunFiles) -> Html:
    if not run.metrics:
        return missing("The run has no final figures (metrics.json).", f"axonnx train … --out {run.path} --resume")
    if any(part.mae for part in run.metrics.values()):
        head = ["part", "samples", "mean absolute error", "95 % interval", "RMSE", "R²"]
        return card(table(head, [_errors(name, part) for name, part in run.metrics.items()], "Final errors"))
    head = ["part", "samples", "accuracy", "95 % interval", "NLL", "Brier", "ECE"]
    rows = [_figures(name, part) for name, part in run.metrics.items()]
    return card(table(head, rows, "Final figures of the trained network"))


def _figures(name: str, part: PartMetrics) -> list[str]:
    label = name.replace("_", " ")
    scores = [percent(part.accuracy), interval(part.accuracy_interval)]
    return [label, count(part.samples), *scores, number(part.nll), number(part.brier), number(part.ece)]


def _errors(name: str, part: PartMetrics) -> list[str]:
    bounds = ", ".join(f"{number(low)} – {number(high)}" for low, high in part.intervals.get("mae", ()))
    figures = [", ".join(map(number, values)) for values in (part.mae, part.rmse, part.r2)]
    return [name.replace("_", " "), count(part.samples), figures[0], bounds, *figures[1:]]


def _named(rows: Sequence[Row], names: dict[str, str]) -> Series:
    return {title: column(rows, name) for name, title in names.items() if any(row.get(name) for row in rows)}


def _under(rows: Sequence[Row], prefix: str) -> Series:
    names = dict.fromkeys(name for row in rows for name in row if name and name.startswith(prefix))
    return {name.removeprefix(prefix): column(rows, name) for name in names}


def _number(text: str | None) -> float:
    try:
        return float(text or "nan")
    except ValueError:
        return math.nan


def provenance_section(material: Material) -> Html:
    """Hashes, versions, configuration and contract."""
    stated = material.model.contract.provenance
    facts: list[list[Content]] = [
        ["file", _path(str(material.model.path))],
        ["file, sha256", _hash(material.model.sha256)],
        ["checkpoint, sha256", _hash(stated.checkpoint)],
        ["data set", stated.data or DASH],
        ["data set, sha256", _hash(stated.data_digest)],
        ["run", _path(str(material.run.path)) if material.run else DASH],
        ["exported with", ", ".join(f"{name} {version}" for name, version in stated.versions.items()) or DASH],
        ["report made", material.made],
    ]
    config = stated.config or (material.run.config if material.run else None)
    contract = json.dumps(json.loads(material.model.contract.model_dump_json(exclude={"provenance"})), indent=1)
    return section(
        "provenance",
        "Provenance",
        None,
        card(
            table(["what", "value"], facts, "Provenance", names=2, hide_caption=True),
            folded("Configuration of the run", listing(config)) if config else None,
            folded("Contract in the file", listing(contract)),
            folded("Program", listing(material.model.program.describe())),
        ),
    )


def _hash(text: str | None) -> Content:
    return element("code", text, class_="hash") if text else DASH


def _path(text: str) -> Html:
    return element("code", text, class_="hash")
