"""Common ground of the export tests: one thread, folders of their own, each case exported once."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from axonnx.export.collapsed import CollapseSettings
from axonnx.train import run as train_run_module

from .cases import Case
from .running import KINDS, Comparison, Exported, export
from .small_networks import build, input_of
from .tiny_runs import make_run, write_frames


@pytest.fixture(scope="package", autouse=True)
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def _own_folders(tmp_path, monkeypatch) -> None:
    """Neither the user's caches nor the place where pytest was started come into a test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="session")
def case_of() -> Callable[[Case], Exported]:
    """The export of a case; made once in a session, whoever asks for it."""
    made: dict[Case, Exported] = {}

    def get(case: Case) -> Exported:
        if case not in made:
            settings = CollapseSettings(case.mode, case.members, seed=3, weights=case.stored)
            made[case] = export(build(case.recipe), input_of(case.recipe), settings)
        return made[case]

    return get


@pytest.fixture(scope="session")
def runs(tmp_path_factory) -> dict[str, Path]:
    """Trained runs of several kinds; curves are not drawn."""
    folder = tmp_path_factory.mktemp("runs")
    frames = write_frames(folder / "frames.npz")
    images = write_frames(folder / "images.npz", time=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        patch.delenv("AXONNX_DATA", raising=False)
        patch.setattr(train_run_module, "draw_curves", lambda *_: False)
        return {
            "spiking": make_run(folder / "spiking", frames, "spiking-mlp"),
            "recurrent": make_run(folder / "recurrent", frames, "recurrent-snn"),
            "baseline": make_run(folder / "baseline", frames, "spiking-mlp", "sg-bn"),
            "binary": make_run(folder / "binary", images, "binary-mlp"),
        }


@pytest.fixture(scope="session")
def tally(record_testsuite_property) -> Iterator[Comparison]:
    """All that the proof compared; ``pytest -s tests/export`` prints it at the end."""
    total = Comparison()
    yield total
    text = ", ".join(f"{total.compared[kind]:,} {kind} ({total.differing[kind]} differ)" for kind in KINDS)
    record_testsuite_property("compared", text)
    print(f"\ncompared: {text}")
