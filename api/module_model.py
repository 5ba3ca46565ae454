"""``Model``: a file with an engine, also one that was made of a torch module in memory."""

from __future__ import annotations

import shutil
import weakref
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

from axonnx.base.files import replacing
from axonnx.runtime.engines.choose import EngineName
from axonnx.runtime.model import Model as FileModel
from axonnx.runtime.model import load

if TYPE_CHECKING:
    from torch import nn

    from axonnx.runtime.measure.verify_result import VerifyResult


class Model(FileModel):
    """A network as a file runs it.

    Attributes:
        path: The file.
    """

    path: Path

    @classmethod
    def from_module(
        cls, net: nn.Module, x: Any, *, engine: EngineName = "auto", threads: int = 1, **settings: Any
    ) -> Model:
        """Make a model of a torch module: what `axonnx.bayesian` gave, or any module that it takes.

        Args:
            net: The module; it stays as it is.
            x: What it is called with: an example batch, (x, y), a Dataset or a DataLoader.
            engine: The engine that runs it.
            threads: The engine's threads.
            **settings: ``classes``, ``collapse``, ``members``, ``weights`` and the others of
                `axonnx.convert.module_files.export_module`.

        Examples:
            >>> import snntorch, torch
            >>> from torch import nn
            >>> module = nn.Sequential(nn.Linear(16, 8), snntorch.Leaky(beta=0.9, init_hidden=True), nn.Linear(8, 3))
            >>> net, x = axonnx.bayesian(module, classes=3), torch.ones(5, 2, 16)
            >>> model = axonnx.Model.from_module(net, x, classes=["a", "b", "c"], weights="int8")
            >>> model.contract.classes, model.verify(net, x).verified
            (('a', 'b', 'c'), True)
        """
        from axonnx.convert.module_files import export_module

        folder = Path(mkdtemp(prefix="axonnx-"))
        try:
            loaded = load(export_module(net, x, folder / "model.onnx", **settings).path, engine, threads)
        except BaseException:
            shutil.rmtree(folder)
            raise
        model = cls(loaded.program, loaded.engine)
        model.path = folder / "model.onnx"
        weakref.finalize(model, shutil.rmtree, folder, ignore_errors=True)  # the folder lives as long as the model
        return model

    def save(self, path: str | Path) -> Path:
        """Write the file, whole or not at all; its path."""
        with replacing(path) as temporary:
            temporary.write_bytes(self.path.read_bytes())
        return Path(path)

    def verify(self, net: nn.Module, data: Any, **settings: Any) -> VerifyResult:
        """Prove that this model is the module ``net``; see `axonnx.convert.module_files.verify_module`."""
        from axonnx.convert.module_files import verify_module

        return verify_module(self.path, net, data, **settings)
