"""A network made by ``axonnx.bayesian`` in the training loops of Lightning and Accelerate, then exported and proven."""

import pytest
import torch
import torch.nn.functional as nnf
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import axonnx
from axonnx.export.convert.bayesian import BayesianModule
from axonnx.models import LIF, GaussianPosterior

BATCH, EPOCHS = 8, 6


def samples() -> TensorDataset:
    """Return 48 samples [T, 2, 6, 6] of three classes: events fall into another pair of rows for each."""
    drawn = torch.rand(48, 7, 2, 6, 6, generator=torch.Generator().manual_seed(0))
    labels = torch.arange(48) % 3
    rows = torch.arange(6) // 2 == labels[:, None]
    return TensorDataset((drawn < torch.where(rows, 0.5, 0.1)[:, None, None, :, None]).float(), labels)


def network() -> BayesianModule:
    torch.manual_seed(1)
    module = nn.Sequential(nn.Conv2d(2, 4, 3), LIF(), nn.Flatten(), nn.Linear(64, 12), LIF(), nn.Linear(12, 3))
    return axonnx.bayesian(module, classes=3, shape=(2, 6, 6))


def loss_of(net: BayesianModule, x: Tensor, y: Tensor) -> Tensor:
    return nnf.cross_entropy(net(x.transpose(0, 1)), y) + axonnx.regulariser(net)


def posterior(net: nn.Module) -> list[Tensor]:
    parts = [part for part in net.modules() if isinstance(part, GaussianPosterior)]
    return [value.detach().clone() for part in parts for value in part.parameters()]


def check_trained_and_proven(net: nn.Module, begin: list[Tensor], tmp_path) -> None:
    """The loop moved means and spreads, learned the task, and the file is the network that it left."""
    moved = [not torch.equal(a, b) for a, b in zip(begin, posterior(net), strict=True)]
    assert moved
    assert all(moved)
    data = samples()
    model = axonnx.Model.from_module(net, DataLoader(data, BATCH), classes=["top", "middle", "bottom"])
    found = model.verify(net, DataLoader(data, BATCH))
    assert found.verified, [stage for stage in found.stages if not stage.ok]
    assert found.mismatches == 0 < found.compared.spikes
    model.save(tmp_path / "own.onnx")
    answers = axonnx.load(tmp_path / "own.onnx").predict(data.tensors[0].numpy().astype("uint8"))
    decided = [model.contract.classes.index(answer.label) for answer in answers]
    right = int((torch.tensor(decided) == data.tensors[1]).sum())
    assert right >= 36, f"{right} of 48 right; chance is 16"
    with torch.no_grad():  # the proof is of these weights alone
        next(part for part in net.modules() if isinstance(part, GaussianPosterior)).mean.neg_()
    assert not model.verify(net, DataLoader(data, BATCH)).verified


@pytest.mark.filterwarnings("ignore")  # of Lightning: workers, loggers, its own deprecations
def test_a_lightning_module(tmp_path):
    lightning = pytest.importorskip("pytorch_lightning")

    class Classifier(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.net = network()

        def training_step(self, batch, number):
            loss = loss_of(self.net, *batch)
            self.log("loss", loss)
            return loss

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), 1e-2)

    classifier = Classifier()
    begin = posterior(classifier)
    silent = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
    trainer = lightning.Trainer(
        max_epochs=EPOCHS, accelerator="cpu", default_root_dir=tmp_path, enable_checkpointing=True, **silent
    )
    trainer.fit(classifier, DataLoader(samples(), BATCH, shuffle=True))
    assert trainer.global_step == EPOCHS * 6
    check_trained_and_proven(classifier, begin, tmp_path)


@pytest.mark.filterwarnings("ignore")  # of huggingface_hub and torch's DataLoader
def test_an_accelerate_loop(tmp_path):
    accelerate = pytest.importorskip("accelerate")
    accelerator = accelerate.Accelerator(cpu=True, gradient_accumulation_steps=2)
    net = network()
    begin = posterior(net)
    adam = torch.optim.Adam(net.parameters(), 1e-2)
    prepared, optimiser, loader = accelerator.prepare(net, adam, DataLoader(samples(), BATCH, shuffle=True))
    for _ in range(2 * EPOCHS):
        for x, y in loader:
            with accelerator.accumulate(prepared):
                accelerator.backward(loss_of(prepared, x, y))
                accelerator.clip_grad_norm_(prepared.parameters(), 1.0)
                optimiser.step()
                optimiser.zero_grad()
    check_trained_and_proven(accelerator.unwrap_model(prepared), begin, tmp_path)
