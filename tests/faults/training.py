"""Faults in the process that trains, none of which is there any more when its run is verified."""

from __future__ import annotations

from tests.faults.bench import Bench, Ended, ends


@ends(0, "verified: 0 mismatches", quick=True)
def a_run_without_a_fault(bench: Bench) -> Ended:
    """The control of every fault of training."""
    return bench.verify(bench.file, bench.run)


@ends(2, "its sha256 is not the one in checkpoint.json", quick=True)
def a_bit_of_the_weights_flipped_on_disk(bench: Bench) -> Ended:
    """The checkpoint is damaged after training."""
    run = bench.copy()
    (weights,) = (run / "checkpoint").glob("weights-*.safetensors")
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(data)
    return bench.verify(bench.file, run)
