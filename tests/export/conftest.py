"""Common ground of the export tests: one thread, folders of their own, each case exported once."""

from collections.abc import Callable, Iterator

import pytest
import torch

from axonnx.export.exporter import CollapseSettings

from .cases import Case
from .running import KINDS, Comparison, Exported, export
from .small_networks import build, input_of


@pytest.fixture(scope="package", autouse=True)
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


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
def tally(record_testsuite_property) -> Iterator[Comparison]:
    """All that the proof compared; ``pytest -s tests/export`` prints it at the end."""
    total = Comparison()
    yield total
    text = ", ".join(f"{total.compared[kind]:,} {kind} ({total.differing[kind]} differ)" for kind in KINDS)
    record_testsuite_property("compared", text)
    print(f"\ncompared: {text}")
