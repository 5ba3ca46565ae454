"""One HTML page with all that is known of a file."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from axonnx.base.errors import AxonnxError
from axonnx.base.files import write_text
from axonnx.base.progress import Progress
from axonnx.loading import samples_for
from axonnx.runtime.engines.choose import measuring_engine
from axonnx.runtime.format.contract import Contract
from axonnx.runtime.measure.profile_result import ProfileResult
from axonnx.runtime.measure.result_files import read_result
from axonnx.runtime.measure.verify_result import VerifyResult
from axonnx.runtime.report.material import Material, check_belongs, read_run
from axonnx.runtime.report.measure import measure
from axonnx.runtime.report.model_view import view_model
from axonnx.runtime.report.page import render

LIMIT = 1024  # samples run: all of most test parts
MOST_SHOWN = 20  # samples in detail

Result = TypeVar("Result", VerifyResult, ProfileResult)


def write_report(
    model: Path,
    output: str | os.PathLike[str] = "report.html",
    run: str | os.PathLike[str] | None = None,
    data: Any = None,
    part: str | None = None,
    verify: VerifyResult | str | os.PathLike[str] | None = None,
    profile: ProfileResult | str | os.PathLike[str] | None = None,
    shown: int = 6,
    limit: int = LIMIT,
    engine: str = "auto",
    seed: int = 0,
    progress: Progress | None = None,
) -> Path:
    """Write one HTML page about a file that needs no network; what is not given is left out."""
    _check(output, shown, limit)
    view = view_model(model)
    of_run = None if run is None else read_run(Path(run))
    source = run if data is None else data
    samples = None if source is None else samples_for(source, view.contract, part, labelled=False).choose(limit)
    engine_of = measuring_engine(view.program, engine)
    tell = (progress or Progress()).figures
    material = Material(
        model=view,
        made=datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z"),
        run=of_run,
        verify=None if verify is None else _own(VerifyResult, verify, view.path),
        profile=None if profile is None else _own(ProfileResult, profile, view.path),
        measured=None if samples is None else measure(engine_of, samples, shown, seed, tell),
        warnings=() if run is None else tuple(other_weights(view.contract, Path(run))),
    )
    write_text(output, render(material))
    return Path(output)


def _check(output: str | os.PathLike[str], shown: int, limit: int) -> None:
    if not 0 <= shown <= MOST_SHOWN:
        raise AxonnxError(f"shown is {shown}; expected 0 to {MOST_SHOWN}: a page has to stay small")
    if limit < max(1, shown):
        raise AxonnxError(f"limit is {limit}; expected at least the {max(1, shown)} samples that are shown")
    if Path(output).is_dir():
        raise AxonnxError(f"{output}: a folder; name the file to write, e.g. {Path(output) / 'report.html'}")
    if not Path(output).resolve().parent.is_dir():
        raise AxonnxError(f"{output}: there is no such folder; make it first")


def _own(kind: type[Result], given: Result | str | os.PathLike[str], model: Path) -> Result:
    """Return a result, or read it from a JSON file; a result of another file is refused."""
    result = read_result(kind, Path(given)) if isinstance(given, str | os.PathLike) else given
    check_belongs(str(given) if isinstance(given, str | os.PathLike) else "the result", result, model)
    return result


def other_weights(contract: Contract, run: Path) -> list[str]:
    """Says so where the run's weights are not those that the file was made of."""
    from axonnx.train.checkpoint import read_index

    stated, index = contract.provenance, read_index(run / "checkpoint")
    if stated.checkpoint is None or stated.checkpoint == index["files"]["weights"]["sha256"]:
        return []
    return [f"The weights in {run} are not those the file was exported from: training went on, or it is another run."]
