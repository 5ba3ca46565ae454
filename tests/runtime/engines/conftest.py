"""Common ground of the engine tests: one thread, every network exported once in a session."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from axonnx.export.collapsed import Collapsed, collapse_network
from axonnx.export.contract import make_contract
from axonnx.export.write import build_model, write_model
from axonnx.models import MEAN_FIELD, Replay
from axonnx.runtime.format.contract import InputContract

from .small_networks import CLASSES, MODES, RECIPES, STEPS, Recipe, build

Values = dict[str, NDArray]


@dataclass(frozen=True)
class Exported:
    """A collapsed network and the files that were written of it, by form."""

    recipe: Recipe
    collapsed: Collapsed
    files: dict[str, Path]

    @property
    def path(self) -> Path:
        return self.files["sequence"]

    def input(self, steps: int, batch: int, density: float, seed: int = 0) -> NDArray:
        """Counts up to 3 at a given share of the inputs; negative ones too, as centred images have them."""
        rng = np.random.default_rng(seed)
        shape = (steps, batch, *self.recipe.shape) if self.recipe.spiking else (batch, *self.recipe.shape)
        counts = rng.integers(1, 4, shape) * rng.choice([-1, 1], shape, p=[0.1, 0.9])
        return (counts * (rng.random(shape) < density)).astype(np.float32)

    def on_torch(self, x: NDArray, noises: dict[str, NDArray]) -> Values:
        """Logits, spikes and membranes of the collapsed torch networks."""
        found: Values = {}
        logits = []
        drawn = {name.removeprefix("noise/"): torch.from_numpy(noise) for name, noise in noises.items()}
        for member in self.collapsed.members:
            with torch.no_grad():
                output = member.network(torch.from_numpy(x), Replay(drawn) if drawn else MEAN_FIELD)
            logits.append(output.logits.numpy())
            for layer, seen in output.observations.items():
                found[f"spikes/{member.prefix}{layer}"] = seen.spikes.numpy()
                if self.recipe.spiking:
                    found[f"membrane/{member.prefix}{layer}"] = seen.gap.numpy()
        return found | {"logits": np.stack(logits)}


@pytest.fixture(scope="package", autouse=True)
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def exported(tmp_path_factory) -> Callable[[str, str], Exported]:
    """The files of a network and a way to collapse it; made once, whoever asks for them."""
    made: dict[tuple[str, str], Exported] = {}
    folder = tmp_path_factory.mktemp("engines")

    def get(name: str, mode: str = "mfa") -> Exported:
        if (name, mode) not in made:
            made[name, mode] = _export(name, mode, folder)
        return made[name, mode]

    return get


def _export(name: str, mode: str, folder: Path) -> Exported:
    recipe = RECIPES[name]
    steps = STEPS if recipe.spiking else None
    arriving = InputContract(name="events", shape=recipe.shape, steps=steps, largest=3)
    collapsed = collapse_network(build(name), arriving, MODES[mode])
    files = {}
    for form in ("sequence", "step") if recipe.spiking else ("sequence",):
        contract = make_contract(collapsed, tuple(f"class {number}" for number in range(CLASSES)), form)
        files[form] = folder / f"{name}-{mode}-{form}.onnx"
        write_model(build_model(collapsed, contract), files[form])
    return Exported(recipe, collapsed, files)
