"""``report_file``: one HTML page with all that is known of a file."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.base.files import write_text
from axonnx.report.material import Material, check_belongs, read_run
from axonnx.report.measure import Measured, Samples, measure, read_samples, samples_of
from axonnx.report.model_view import ModelView, view_model
from axonnx.report.page import render
from axonnx.runtime.engines.choose import measuring_engine
from axonnx.runtime.format.contract import Contract
from axonnx.runtime.measure.profile_result import ProfileResult
from axonnx.runtime.measure.result_files import read_result
from axonnx.runtime.measure.sample_choice import choose_samples
from axonnx.runtime.measure.verify_result import VerifyResult

LIMIT = 1024  # samples run: all of most test parts
MOST_SHOWN = 20  # samples in detail

Tell = Callable[[str], None]
Result = TypeVar("Result", VerifyResult, ProfileResult)


def report_file(
    model: str | Path,
    output: str | Path = "report.html",
    *,
    run: str | Path | None = None,
    data: str | Path | None = None,
    verify: VerifyResult | str | Path | None = None,
    profile: ProfileResult | str | Path | None = None,
    samples: int = 6,
    limit: int = LIMIT,
    engine: str = "auto",
    seed: int = 0,
    tell: Tell = lambda _line: None,
) -> Path:
    """Write one HTML page about a file that needs no network, and give its path; what is not named is left out.

    ``run`` is the run folder it was exported from, for training curves and test samples, ``data`` an npz of samples to
    take instead. ``verify`` and ``profile`` are results, or the JSON files they were written to. ``limit`` samples are
    run and ``samples`` of them shown in detail. Without a run no torch is needed.

    Examples:
        >>> axonnx.report_file("digits.onnx", "report.html", run="digits", limit=20).name
        'report.html'
    """
    _check(output, samples, limit)
    view = view_model(model)
    material = Material(
        model=view,
        made=datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z"),
        run=None if run is None else read_run(run),
        verify=None if verify is None else _own(VerifyResult, verify, view.path),
        profile=None if profile is None else _own(ProfileResult, profile, view.path),
        measured=_measured(view, _samples(view, run, data, limit), samples, engine, seed, tell),
        warnings=() if run is None else tuple(other_weights(view.contract, Path(run))),
    )
    write_text(output, render(material))
    return Path(output)


def _check(output: str | Path, samples: int, limit: int) -> None:
    if not 0 <= samples <= MOST_SHOWN:
        raise AxonnxError(f"samples is {samples}; expected 0 to {MOST_SHOWN}: a page has to stay small")
    if limit < max(1, samples):
        raise AxonnxError(f"limit is {limit}; expected at least the {max(1, samples)} samples that are shown")
    if Path(output).is_dir():
        raise AxonnxError(f"{output}: a folder; name the file to write, e.g. {Path(output) / 'report.html'}")
    if not Path(output).resolve().parent.is_dir():
        raise AxonnxError(f"{output}: there is no such folder; make it first")


def _own(kind: type[Result], given: Result | str | Path, model: Path) -> Result:
    """A result, or what a JSON file holds; one of another file is refused."""
    result = read_result(kind, given) if isinstance(given, str | Path) else given
    check_belongs(str(given) if isinstance(given, str | Path) else "the result", result, model)
    return result


def _samples(view: ModelView, run: str | Path | None, data: str | Path | None, limit: int) -> Samples | None:
    if data is not None:
        return read_samples(data, view.contract, limit)
    return None if run is None else test_samples(Path(run), view, limit)


def _measured(
    view: ModelView, samples: Samples | None, shown: int, engine: str, seed: int, tell: Tell
) -> Measured | None:
    if samples is None:
        return None
    return measure(measuring_engine(view.program, engine), samples, shown, seed, tell)


def test_samples(run: Path, model: ModelView, limit: int) -> Samples:
    """Test samples of the run's data set, as integers."""
    from axonnx.train.build import prepare  # needs torch, which a device without a run does not have
    from axonnx.train.data.batches import Batches
    from axonnx.train.output.run_folder import RunFolder

    config = RunFolder(run).config()
    prepared = prepare(config.data)
    test = prepared.splits.parts["test"]
    chosen = test.subset(choose_samples(test.labels, limit))
    batches = Batches(chosen, binning=prepared.binning, shuffle=False, dtype="uint8", batch_size=64)
    parts = [np.asarray(batch.x) for batch in batches.epoch(0)]
    timed = [x.swapaxes(0, 1) for x in parts] if prepared.steps else [x[:, np.newaxis] for x in parts]
    source = f"{samples_of(len(chosen), len(test))} of the test part of {config.data.name}"
    return Samples(_fitting(np.concatenate(timed), run, model), chosen.labels, source)


def _fitting(frames: NDArray[np.integer], run: Path, model: ModelView) -> NDArray[np.integer]:
    entering = model.contract.input
    expected = (entering.steps or 1, *entering.shape)
    if frames.shape[1:] != expected:
        raise AxonnxError(
            f"{run}: its samples are {list(frames.shape[1:])} and {model.path.name} takes {list(expected)}; name the "
            f"run that the file was exported from"
        )
    return frames


def other_weights(contract: Contract, run: Path) -> list[str]:
    """Says so where the run's weights are not those that the file was made of."""
    from axonnx.train.output.checkpoint import read_index

    stated, index = contract.provenance, read_index(run / "checkpoint")
    if stated.checkpoint is None or stated.checkpoint == index["files"]["weights"]["sha256"]:
        return []
    return [f"The weights in {run} are not those the file was exported from: training went on, or it is another run."]
