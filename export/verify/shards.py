"""``verify_in_shards``: a verification divided between processes or machines, and put together again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from axonnx.base.files import sha256_of
from axonnx.export.verify.stages import verify_file
from axonnx.runtime.jobs.running import Watch, all_results
from axonnx.runtime.jobs.work import FileTask, Job, Pool
from axonnx.runtime.measure.verify_result import VerifyResult


def verify_in_shards(
    model: str | Path,
    run: str | Path,
    shards: int,
    pool: Pool | None = None,
    watch: Watch | None = None,
    **settings: Any,
) -> VerifyResult:
    """As ``verify_file`` with these ``settings``: each of so many jobs looks at its share of the samples.

    Verdict, mismatches and what is compared follow from the samples, not from who looked at them.
    """
    task = FileTask(str(Path(model).resolve()), sha256_of(model), str(Path(run).resolve()))
    jobs = [Job(f"shard {i}/{shards}", verified, (task, {**settings, "shard": (i, shards)})) for i in range(shards)]
    found = [VerifyResult.model_validate_json(text) for text in all_results(jobs, pool, watch)]
    return VerifyResult.merged(found).model_copy(update={"model": str(model), "run": str(run)})


def verified(task: FileTask, settings: dict[str, Any]) -> str:
    """Return a job: one shard."""
    task.check()
    return verify_file(task.model, task.data, **settings).model_dump_json()
