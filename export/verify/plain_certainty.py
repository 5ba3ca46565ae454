"""Temperature and margins of a file, held against plain counts of its own decisions on the validation samples.

A margin is right if at least ⌈(n + 1) · coverage⌉ samples have this score or a smaller one, and fewer a smaller one. A
temperature is right if the loss is larger a little above and a little below it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

BESIDE = 1.01  # how far beside the temperature the loss is looked at


def check_margin(margin: float, coverage: float, members: Sequence[Sequence[Sequence[float]]], labels: Sequence[int]
                 ) -> Iterator[str]:  # fmt: skip
    """Say what is wrong with a margin; ``members`` are the logits [members][samples][classes] of one time step."""
    scores = []
    for number, label in enumerate(labels):
        scores.append(plain_distances([member[number] for member in members])[label])
    needed = math.ceil((len(labels) + 1) * coverage)
    inside, below = sum(score <= margin for score in scores), sum(score < margin for score in scores)
    if inside < needed:
        yield f"holds the true class of {inside} of {len(labels)} samples; a coverage of {coverage:g} needs {needed}"
    elif below >= needed:
        yield f"is wider than it has to be: {below} of {len(labels)} samples need less, and {needed} are enough"


def plain_distances(members: Sequence[Sequence[float]]) -> list[float]:
    """Return how far each class is behind the best one, of logits [members][classes] summed over members."""
    summed = [0.0] * len(members[0])
    for logits in members:
        summed = [one + other for one, other in zip(summed, logits, strict=True)]
    return [max(summed) - each for each in summed]


def check_scale(scale: float, members: Sequence[Sequence[Sequence[float]]], labels: Sequence[int]) -> Iterator[str]:
    """Say if the loss is smaller for another scale; ``members`` are the logits of the last time step."""
    here, above, below = (_loss(each, members, labels) for each in (scale, scale * BESIDE, scale / BESIDE))
    if min(above, below) < here:
        better = scale * BESIDE if above < below else scale / BESIDE
        yield f"scale {scale:.6g} has the loss {here:.6g}, {better:.6g} a smaller one ({min(above, below):.6g})"


def _loss(scale: float, members: Sequence[Sequence[Sequence[float]]], labels: Sequence[int]) -> float:
    """−Σ target · ln softmax(scale · ln p), where each label is wrong with probability 1/(N + 2)."""
    doubt, total = 1.0 / (len(labels) + 2), 0.0
    for number, label in enumerate(labels):
        logits = [scale * z for z in _joint([member[number] for member in members])]
        top = max(logits)
        norm = top + math.log(sum(math.exp(z - top) for z in logits))
        wrong = doubt * sum(norm - z for z in logits) / len(logits)
        total += (1.0 - doubt) * (norm - logits[label]) + wrong
    return total / len(labels)


def _joint(members: Sequence[Sequence[float]]) -> list[float]:
    """Logits of one network, or the logarithm of several networks' mean probabilities."""
    if len(members) == 1:
        return list(members[0])
    mean = [0.0] * len(members[0])
    for logits in members:
        powers = [math.exp(z - max(logits)) for z in logits]
        mean = [so_far + power / sum(powers) / len(members) for so_far, power in zip(mean, powers, strict=True)]
    return [math.log(max(p, 1e-30)) for p in mean]
