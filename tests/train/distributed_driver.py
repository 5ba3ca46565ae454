"""What several processes do together, compared with one: started by torchrun, ``distributed_driver.py DATA FOLDER``.

The first process writes FOLDER/report.json; the test reads it. ``distributed_driver.py kill …`` is ``axonnx train …``
whose second process is killed in its second epoch.
"""

import json
import os
import shutil
import signal
import sys
from pathlib import Path

import torch
import torch.distributed as dist

from axonnx.models import MEAN_FIELD, Regulariser
from axonnx.train import loop, run
from axonnx.train.build import make_network, prepare
from axonnx.train.config.read import check_config
from axonnx.train.config.settings import Config
from axonnx.train.distributed import World, world
from axonnx.train.feed import Batch
from axonnx.train.objective import Objective

CPU = torch.device("cpu")
BATCH = 9  # of each process; 48 samples give two whole batches and a rest of twelve
WEIGHT = 0.1  # so large that a regulariser counted twice would show


def tiny(data: str, batch_size: int, **variant: object) -> Config:
    tree = {
        "device": "cpu",
        "data": {"name": data},
        "model": {"network": "recurrent-snn", "hidden": [6]},
        "variant": variant,
        "optimiser": {"epochs": 2, "batch_size": batch_size},
        "eval_samples": 2,
    }
    return check_config(tree, "distributed")


def gradients(config: Config, here: World, kl: str, cut: int | None = None) -> list[dict[str, list[float]]]:
    """The gradient of every batch of an epoch, in float64 so that only mistakes differ, not roundings.

    ``cut`` makes the second process's share of each batch smaller by so many samples.
    """
    prepared = prepare(config.data)
    network = make_network(config, prepared).double()
    training = loop.new_training(network, config, CPU)
    wrapped, found = here.wrap(network), []
    for batch in loop.make_feeds(prepared, config, CPU, here)["learn"].epoch(0):
        kept = len(batch.labels) - (cut or 0) * here.rank
        double = Batch(batch.x[:, :kept].double(), batch.labels[:kept])
        share = here.balance(kept, CPU)
        loop._step(wrapped, training, double, MEAN_FIELD, Objective(WEIGHT, Regulariser(of=kl)), 1, share)
        found.append({name: p.grad.flatten().tolist() for name, p in network.named_parameters()})
    return found


def cut_gradient(config: Config) -> dict[str, list[float]]:
    """What one process gets for the first batch of two that the second process cut by three samples."""
    prepared = prepare(config.data)
    network = make_network(config, prepared).double()
    batches = [next(iter(loop.make_feeds(prepared, config, CPU, World(r, 2))["learn"].epoch(0))) for r in (0, 1)]
    x = torch.cat([batches[0].x, batches[1].x[:, :-3]], 1).double()
    labels = torch.cat([batches[0].labels, batches[1].labels[:-3]])
    training = loop.new_training(network, config, CPU)
    loop._step(network, training, Batch(x, labels), MEAN_FIELD, Objective(WEIGHT), 1, 1.0)
    return {name: p.grad.flatten().tolist() for name, p in network.named_parameters()}


def shards(config: Config, here: World) -> list[list[list[int]]]:
    """The samples of every batch, for each process."""
    feed = loop.make_feeds(prepare(config.data), config, CPU, here)["learn"]
    mine = [feed.batches.make(3, number).indices.tolist() for number in range(len(feed))]
    everyone: list = [None] * here.size
    dist.all_gather_object(everyone, mine)
    return everyone


def first_rows(data: str, here: World) -> list[dict[str, float]]:
    """The row of an epoch of one batch, by all processes and by one alone."""
    rows = []
    for where, size in ((here, 24), (World(), 48)):
        config, prepared = tiny(data, size, name="mfa"), prepare(tiny(data, size).data)
        rows.append(loop.fit(make_network(config, prepared), prepared, config, world=where).rows[0])
    return rows


def evaluated(data: str, here: World) -> list[dict[str, object]]:
    """Figures of all parts by all processes and by one alone; the running means of normalisation are each one's own."""
    config, prepared = tiny(data, BATCH, name="sg-bn"), prepare(tiny(data, BATCH).data)
    network = make_network(config, prepared)
    loop.fit(network, prepared, config, world=here)
    by_all, alone = (run.final_metrics(network, prepared, config, where) for where in (here, World()))
    everywhere = here.gather(by_all)
    return [*everywhere, alone]


def tempered(data: str, here: World) -> list[tuple[float, list[float]]]:
    """The factor of a tempered network's σ, and log σ, in every process."""
    tree = tiny(data, BATCH, name="mfa", initial_std=30.0).model_dump(exclude_none=True)
    config = check_config({**tree, "noise": {"temper": 0.01}}, "tempered")
    prepared = prepare(config.data)
    network = make_network(config, prepared)
    scale = loop.fit(network, prepared, config, world=here).rows[-1]["noise_scale"]
    stds = [
        value for name, tensor in network.state_dict().items() if "log_" in name for value in tensor.flatten().tolist()
    ]
    return here.gather((scale, stds))


def killed(words: list[str]) -> int:
    """The command line, in which the second process does not survive its second epoch."""
    from axonnx.cli import main

    epoch = loop._epoch

    def deadly(*arguments):
        if os.environ["RANK"] == "1" and arguments[3] == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return epoch(*arguments)

    loop._epoch = deadly
    return main(["train", *words])


def resume(data: str, folder: Path, here: World) -> None:
    """A whole run of noisy networks, and one that goes on with its first checkpoint."""
    config, save = tiny(data, BATCH, name="sbnn", estimator={"name": "gr", "n": 2}), run.save_checkpoint

    def save_and_copy(*state):
        save(*state)
        if not (folder / "resumed").exists():
            shutil.copytree(folder / "whole", folder / "resumed")

    run.save_checkpoint = save_and_copy
    run.train_run(config, folder / "whole", here=here)
    here.wait()
    run.train_run(None, folder / "resumed", here=here, resume=True)


if __name__ == "__main__" and sys.argv[1] == "kill":
    torch.set_num_threads(1)
    sys.exit(killed(sys.argv[2:]))

if __name__ == "__main__":
    data, folder = sys.argv[1], Path(sys.argv[2])
    torch.set_num_threads(1)
    run.draw_curves = lambda *_: False
    with world() as here:
        plain, joint = tiny(data, BATCH, name="mfa"), tiny(data, 2 * BATCH, name="mfa")
        report = {
            "gradients": {
                kl: (gradients(plain, here, kl), gradients(joint, World(), kl)) for kl in ("neuron", "weight")
            },
            "uneven": (gradients(plain, here, "neuron", cut=3)[0], cut_gradient(plain)),
            "shards": shards(plain, here),
            "rows": first_rows(data, here),
            "evaluated": evaluated(f"{folder}/many.npz", here),
            "tempered": tempered(data, here),
            "means": here.mean({"layer": torch.tensor(float(here.rank))}, share=(0.5, 1.5)[here.rank]),
            "size": here.size,
        }
        resume(data, folder, here)
        if here.leads:
            (folder / "report.json").write_text(json.dumps(report))
