"""Leave one group out: who is trained on, who is judged by, and what is averaged."""

import json

import numpy as np
import pytest

from axonnx.base.errors import AxonnxError
from axonnx.train import build
from axonnx.train.data.recordings import Frames
from axonnx.train.data.splits import DataSplits
from experiments import held_out
from experiments.__main__ import main
from experiments.held_out import groups_of, held_out_jobs, mean_over_groups
from experiments.plan import Plan

PLAN = Plan.model_validate(
    {
        "title": "Two widths",
        "about": "…",
        "measure": "training",
        "figure": "curves",
        "scales": {
            "quick": {
                "seeds": 1,
                "about": "tiny",
                "settings": {
                    "data": {"name": "spoken"},
                    "model": {"network": "spiking-mlp"},
                    "optimiser": {"epochs": 1},
                    "eval_samples": 1,
                },
            }
        },
        "cases": [{"name": f"{n}", "settings": {"model": {"hidden": [n]}}} for n in (2, 4)],
        "claims": [{"text": "wide is better", "first": "4", "second": "2"}],
    }
)


def frames_of(groups: list[int], seed: int) -> Frames:
    random = np.random.default_rng(seed)
    labels, who = np.arange(6 * len(groups)) % 2, np.repeat(groups, 6)
    frames = random.integers(0, 3, (len(labels), 4, 1, 2, 2)).astype(np.uint8)
    return Frames(frames, labels, ("a", "b"), who.astype(np.int64))


@pytest.fixture
def spoken(monkeypatch) -> DataSplits:
    """A data set of four speakers to learn from and one to be judged by."""
    splits = DataSplits("spoken", frames_of([1, 3, 4, 7], 0), frames_of([9], 1))
    monkeypatch.setattr(build, "load_data_set", lambda *_, **__: splits)
    for reader in ("experiments.perform", "experiments.__main__"):
        monkeypatch.setattr(f"{reader}.read_plan", lambda _: PLAN)
    return splits


def test_held_out_groups_are_the_test_part_and_the_rest_is_learned_from(spoken):
    found = spoken.with_test_groups([3, 7])
    assert set(found.train.groups) == {1, 4}
    assert set(found.test.groups) == {3, 7}
    assert len(found.train) + len(found.test) == len(spoken.train)
    with pytest.raises(AxonnxError, match=r"spoken: held-out groups \[9\]; known: \[1, 3, 4, 7\]"):
        spoken.with_test_groups([9])
    alone = DataSplits("spoken", *(Frames(p.frames, p.labels, p.classes) for p in (spoken.train, spoken.test)))
    with pytest.raises(AxonnxError, match="nothing is known about speakers"):
        alone.with_test_groups([1])


def test_every_case_runs_with_every_seed_without_every_group(spoken):
    assert groups_of(PLAN, "quick", "all") == [1, 3, 4, 7]
    assert groups_of(PLAN, "quick", "7,1") == [7, 1]
    for wrong in ("2", "", "one"):
        with pytest.raises(AxonnxError, match="expected 'all' or some of 1,3,4,7"):
            groups_of(PLAN, "quick", wrong)
    jobs = list(held_out_jobs(PLAN, "quick", [1, 7]))
    assert len(jobs) == len({job.digest for job in jobs}) == 2 * held_out.FEWEST_SEEDS * 2
    assert {(job.group, tuple(job.settings["data"]["held_out"])) for job in jobs} == {(1, (1,)), (7, (7,))}


def test_each_group_counts_the_same():
    def record(group, accuracy, nll):
        epochs = [{"epoch": 1, "phase": "train", "loss": accuracy}]
        return {"case": "a", "seed": 0, "group": group, "accuracy": accuracy, "final": {"nll": nll}, "epochs": epochs}

    (found,) = mean_over_groups([record(1, 0.5, 1.0), record(2, 1.0, 4.0)])
    assert found["accuracy"] == 0.75
    assert found["final"] == {"nll": 2.5}
    assert found["epochs"] == [{"epoch": 1, "phase": "train", "loss": 0.75}]
    assert found["groups"] == {"1": 0.5, "2": 1.0}


def test_a_group_that_failed_is_not_averaged_away():
    fine = {"case": "a", "seed": 0, "group": 1, "accuracy": 0.5}
    failed = {"case": "a", "seed": 0, "group": 2, "accuracy": None, "failed": "not finite"}
    (found,) = mean_over_groups([fine, failed])
    assert found["failed"] == "not finite"
    assert found["accuracy"] is None


def test_the_command_goes_on_where_it_stopped_and_never_looks_at_the_test_part(spoken, tmp_path, capsys, monkeypatch):
    words = ["widths", "--scale", "quick", "--hold-out", "1,4", "-o", str(tmp_path)]
    assert main(words) == 0
    told = capsys.readouterr()
    assert "Means over groups 1, 4 of the training part, each held out in turn; no test part was seen." in told.out
    assert "wide is better" in told.out
    assert told.err.count("without 4: ") == 6
    records = json.loads((tmp_path / "results" / "quick" / "widths-held-out.json").read_text())["records"]
    assert len(records) == 6
    assert all(record["final"]["mean_field"]["samples"] == 6 for record in records)  # of one speaker
    assert main(words) == 0
    assert capsys.readouterr().err.count("done before") == 12
