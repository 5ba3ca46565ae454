"""Which exports are proved: a set in which every pair of choices that go together occurs, and some triples.

The full product of networks, modes, variants, granularities, resets, decays, shortcuts, kinds of weights and ways to
store them has some 9,000 members. The set holds every pair, and every triple of network, mode and a choice that a
mode treats in its own way. A fault that shows only where three other choices meet may hide from it.
"""

from dataclasses import dataclass
from itertools import combinations, product

from axonnx.models import VARIANTS

from .small_networks import Recipe

FACTORS: dict[str, tuple[str, ...]] = {
    "network": ("binary-mlp", "binary-resnet", "spiking-mlp", "recurrent-snn", "spiking-resnet"),
    "mode": ("mfa", "sampled", "stochastic"),
    "variant": tuple(VARIANTS),
    "granularity": ("layer", "neuron", "weight"),
    "reset": ("subtract", "zero"),
    "decay": ("fixed", "learned", "of each neuron"),
    "shortcut": ("pool", "conv"),
    "weights": ("random", "trained"),
    "stored": ("float32", "int16", "int8"),
    "stream": ("current", "spikes"),
    "delays": ("none", "some"),
}
TOGETHER = [
    *combinations(FACTORS, 2),
    *(
        ("network", "mode", third)
        for third in ("granularity", "reset", "shortcut", "weights", "stored", "stream", "delays")
    ),
]
Choice = dict[str, str]


@dataclass(frozen=True)
class Case:
    """A network and how it is collapsed."""

    recipe: Recipe
    mode: str
    stored: str = "float32"

    @property
    def members(self) -> int:
        return 3 if self.mode == "sampled" else 1

    def __str__(self) -> str:
        r = self.recipe
        parts = [r.network, self.mode, r.variant, r.granularity if r.bayesian else "", r.weights, self.stored]
        parts += [f"reset-{r.reset}", f"decay-{r.decay.replace(' ', '-')}"] if r.spiking else []
        parts += ["delays"] if r.delays != "none" else []
        return "-".join(part for part in [*parts, f"{r.shortcut}-{r.stream}" if r.residual else ""] if part)


def fits(choice: Choice) -> bool:
    """Whether these choices go together; what has no meaning for a network or mode stays at its first value."""
    network, mode = choice.get("network", ""), choice.get("mode", "")
    meaningless = []
    if network.startswith("binary"):
        meaningless += ["reset", "decay"]
    if (network and not network.endswith("resnet")) or choice.get("delays") == "some":
        meaningless += ["shortcut", "stream"]
    if network.startswith("binary") or network.endswith("resnet"):
        meaningless.append("delays")
    if mode == "mfa":
        meaningless.append("granularity")  # of means there is one for each weight
    if "variant" in choice and VARIANTS[choice["variant"]].spread == "none":
        meaningless += ["mode", "granularity"]
    return all(choice.get(name, FACTORS[name][0]) == FACTORS[name][0] for name in meaningless)


def wanted() -> list[frozenset[tuple[str, str]]]:
    """Every combination of values of factors that stand together."""
    choices = (dict(zip(names, values, strict=True)) for names in TOGETHER for values in _values(names))
    return [frozenset(choice.items()) for choice in choices if fits(choice)]


def covering_set() -> list[Choice]:
    """Greedily, always the choice with most that is still missing; the same in every run."""
    number = {combination: 1 << place for place, combination in enumerate(wanted())}
    covers: list[tuple[int, Choice]] = []
    for values in _values(tuple(FACTORS)):
        choice = dict(zip(FACTORS, values, strict=True))
        if fits(choice):
            parts = (frozenset((name, choice[name]) for name in names) for names in TOGETHER)
            covers.append((sum(number[part] for part in parts), choice))
    missing, found = (1 << len(number)) - 1, []
    while missing:
        covered, best = max(covers, key=lambda entry: (entry[0] & missing).bit_count())
        missing &= ~covered
        found.append(best)
    return found


def case_from(choice: Choice) -> Case:
    rest = {name: value for name, value in choice.items() if name not in ("mode", "stored")}
    return Case(Recipe(**rest), choice["mode"], choice["stored"])


def _values(names: tuple[str, ...]) -> product:
    return product(*(FACTORS[name] for name in names))


CASES = [case_from(choice) for choice in covering_set()]
