"""What a file states of its own certainty: the samples that it was fitted on, and the fit itself."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from axonnx.export.verify.plain_certainty import check_margin, check_scale
from axonnx.export.verify.runtime_check import running_logits
from axonnx.export.verify.structure import Findings, Subject
from axonnx.runtime.program.layer_noise import draw_noise
from axonnx.train.trained import Trained
from axonnx.train.training_witness import PART, fingerprints_of

CONFINED = ("validation",)  # parts that something may be fitted on after training


def check_certainty(subject: Subject, found: Findings) -> None:
    """Refuse samples of the test part, samples other than stated, and margins that they do not give."""
    stated, trained = subject.contract.certainty, subject.trained
    assert stated is not None
    if not isinstance(trained, Trained):
        found.fail("the file states a temperature and margins, and there is no run that has the samples of their fit")
        return
    if stated.part not in trained.parts or stated.part not in CONFINED:
        found.fail(f"certainty was fitted on the part {stated.part!r}; expected {' or '.join(CONFINED)} of the run")
        return
    seen = fingerprints_of(trained.prepared, trained.config, stated.part)
    tested = fingerprints_of(trained.prepared, trained.config, PART)
    if shared := int(np.isin(seen, tested).sum()):
        found.fail(f"certainty was fitted on {len(seen)} samples, {shared} of which are samples of {PART!r}")
    digest = hashlib.sha256(b"".join(_bytes_of(number) for number in sorted(seen.tolist()))).hexdigest()
    if (stated.samples, stated.digest) != (len(seen), digest):
        found.fail(
            f"certainty was fitted on {stated.samples} samples with the digest {stated.digest[:16]}…; the part "
            f"{stated.part!r} of the run has {len(seen)} with {digest[:16]}…"
        )
        return
    logits: list[NDArray[np.float32]] = []
    labels: list[int] = []
    timed = subject.contract.kind == "spiking"
    for x, true in trained.data(stated.part, None):
        count, samples = len(x) if timed else 1, range(len(labels), len(labels) + len(true))
        drawn = draw_noise(subject.program, 0, samples, 0, count) if subject.program.noises else {}
        noise = drawn if timed else {name: value[0] for name, value in drawn.items()}
        logits.append(np.stack([running_logits(member, x, noise) for member in subject.collapsed.members], 1))
        labels += true.tolist()
    steps = np.concatenate(logits, 2).tolist()
    for step, (margin, members) in enumerate(zip(stated.margins, steps, strict=True)):
        for line in check_margin(margin, stated.coverage, members, labels):
            found.fail(f"the margin of time step {step}, {margin:.6g}, {line}")
    for line in check_scale(stated.scale, steps[-1], labels):
        found.fail(line)
    if found.ok:
        found.lines.append(
            f"temperature and {len(stated.margins)} margins follow from {len(labels):,} samples of {stated.part!r}, "
            f"none of which is of {PART!r}"
        )


def _bytes_of(number: int) -> bytes:
    """Return a fingerprint as 8 bytes, little-endian."""
    return number.to_bytes(8, "little", signed=True)
