"""``axonnx doctor``: what is here and whether it works; the first thing to attach to a report of a fault."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from axonnx.doctor.examination import examine
from axonnx.doctor.findings import Cache, CoreFinding, Diagnosis, EngineFinding

FINE, FAILED = 0, 1


def main(arguments: Sequence[str]) -> int:
    """``axonnx doctor``: exit 0 when every engine that is here gives the right bits, 1 when one does not."""
    options = make_parser().parse_args(arguments)
    found = examine()
    print(found.model_dump_json(indent=1) if options.json else text(found))
    return FINE if found.well else FAILED


def make_parser() -> argparse.ArgumentParser:
    """The options of the verb."""
    parser = argparse.ArgumentParser(
        "axonnx doctor",
        description="Versions, processor, compilers, native core, engines on files of known answers, caches and data.",
        allow_abbrev=False,
    )
    parser.add_argument("--json", action="store_true", help="everything as one JSON object")
    return parser


def text(found: Diagnosis) -> str:
    """The same for people."""
    processor = found.processor
    memory = "" if processor.memory_bytes is None else f", {processor.memory_bytes / 2**30:.1f} GiB of memory"
    lines = [
        f"axonnx {found.axonnx}, {found.python}, {found.system}",
        f"{processor.model or processor.architecture}: {processor.usable} of {processor.processors} processors{memory}",
        f"instruction sets: {', '.join(processor.instruction_sets) or 'unknown'}",
        "",
        *(f"{program.name:<18}{program.version}  ({program.path})" for program in found.programs),
        *([] if found.programs else ["no C compiler, no node"]),
        "",
        f"native core       {_core(found.core)}",
        *(_engine(engine) for engine in found.engines),
        "",
        *(f"axonnx[{each.name}]".ljust(20) + _extra(each.missing) for each in found.extras),
        "",
        *(_cache(cache) for cache in found.caches),
        "",
        f"data folder (AXONNX_DATA): {found.data_root or 'not set'}",
        *(f"{each.name:<20}{each.found or 'not there'}" for each in found.data),
        "",
        ", ".join(f"{name} {version}" for name, version in found.packages.items()),
        "",
        "all engines that are here give the right bits" if found.well else "AN ENGINE DOES NOT WORK HERE: see above",
    ]
    return "\n".join(lines)


def _core(found: CoreFinding) -> str:
    if found.isa is None:
        return f"none: {found.note}"
    others = ", ".join(isa for isa in found.isas if isa != found.isa) or "nothing else"
    chosen = "named by AXONNX_ISA" if found.forced else "the best that this processor can run"
    return f"{found.isa}, {chosen}; it can also run {others}"


def _engine(found: EngineFinding) -> str:
    about = {
        "equal": f"equal: {found.numbers} numbers, bit for bit ({found.seconds:.1f} s)",
        "different": f"DIFFERENT in {found.differing} of {found.numbers} numbers",
        "missing": f"not here: {found.note}",
        "failed": f"FAILED: {found.note}",
    }
    return f"engine {found.name:<11}{about[found.status]}"


def _cache(found: Cache) -> str:
    return f"cache {found.name:<12}{found.files:>7,} files {found.bytes / 2**20:>9,.1f} MiB  {found.path}"


def _extra(missing: tuple[str, ...]) -> str:
    return f"lacks {', '.join(missing)}" if missing else "complete"
