"""What ships: every configuration is valid, builds its network, and says what the paper says."""

import shutil
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from axonnx.base.errors import AxonnxError
from axonnx.cli.command import run_verb
from axonnx.runtime.binning import Sensor
from axonnx.train.build import Prepared, make_binning, make_network, make_variant
from axonnx.train.config.read import read_config, shipped
from axonnx.train.config.settings import Config, RegulariserConfig
from axonnx.train.data.registry import available

main = partial(run_verb, "train")

TABLES = {
    "cifar10": ["bbnn", "bbnn-nkl", "bbnn-mfa", "bbnn-fpv", "sg-bn"],
    "dvs-gesture": ["sbnn", "sbnn-nkl", "sg-bn", "sg-nbn-1", "sg-nbn-2"],
    "shd": ["sbnn", "sbnn-nkl", "sg-bn", "sg-nbn-1", "sg-nbn-2"],
}
SHIPPED = sorted((Path(__file__).parents[3] / "train/config/shipped").glob("*.toml"))
ROWS = [f"{table}-{row}" for table, rows in TABLES.items() for row in rows]
OURS = [
    "digits-saccade",
    "digits-static",
    "shd-cpu",
    "shd-cpu-25",
    "shd-cpu-recurrent",
    "shd-cpu-700",
    "dvs-gesture-cpu",
    "dvs-gesture-cpu-resnet",
    "dvs-gesture-stream",
]

# What each data set gives: its sensor and classes, or the shape of its samples and classes.
COCHLEA, CAMERA = Sensor(width=700, height=1, polarities=1), Sensor(width=128, height=128)
SAMPLES = {
    "cifar10": ((3, 32, 32), 10),
    "digits-static": ((1, 8, 8), 10),
    "digits-saccade": (Sensor(width=16, height=16), 10),
    "dvs-gesture": (CAMERA, 11),
    "dvs-gesture-32x32": ((17, 2, 32, 32), 11),
    "dvs-gesture-slices": (Sensor(width=32, height=32), 11),
    "shd": (COCHLEA, 20),
    "shd-regenerated": (COCHLEA, 20),
}


def prepared_for(config: Config) -> Prepared:
    """The shape of this configuration's data, without the data."""
    sample, classes = SAMPLES[config.data.name]
    splits = SimpleNamespace(classes=tuple(map(str, range(classes))), sensor=sample, origin="zero", cut=False)
    if isinstance(sample, Sensor):
        return Prepared(splits, None, make_binning(config.data, splits).shape)
    return Prepared(splits, None, sample)


def test_every_row_of_the_papers_tables_and_our_own_are_there():
    assert set(shipped()) >= {*ROWS, *OURS}


@pytest.mark.parametrize("name", shipped())
def test_every_configuration_builds_its_network(name):
    config = read_config(name)
    with torch.device("meta" if "resnet" in config.model.network else "cpu"):  # of the large ones shapes only
        network = make_network(config, prepared_for(config))
    groups = network.parameter_groups()
    assert groups["weights"]
    assert bool(groups["scales"]) == (make_variant(config.variant).spread == "learned")


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_a_shipped_file_works_as_a_file_of_ones_own(path, tmp_path):
    mine = tmp_path / "mine.toml"
    shutil.copy(path, mine)
    rows = TABLES.get(path.stem)
    if rows is None:
        assert read_config(str(mine)) == read_config(path.stem)
        return
    assert read_config(str(mine), {"variant.name": rows[0]}) == read_config(f"{path.stem}-{rows[0]}")
    with pytest.raises(AxonnxError, match=r"makes one configuration of each, .* Set variant.name to one of them"):
        read_config(str(mine))


@pytest.mark.parametrize(
    ("table", "epochs", "batch", "weight", "final_rate", "steps"),
    [
        ("cifar10", 200, 256, 1e-8, 1 / 50, None),
        ("dvs-gesture", 70, 64, 1e-10, 1 / 50, 50),
        ("shd", 30, 32, 1e-6, 1 / 10, 100),
    ],
)
def test_the_papers_hyper_parameters_stand_in_every_row(table, epochs, batch, weight, final_rate, steps):
    """λ is that of the authors' implementation: for the sum of the quadratic form."""
    for row in TABLES[table]:
        config = read_config(f"{table}-{row}")
        chosen = config.optimiser
        assert (chosen.weight_rate, chosen.scale_rate) == (0.005, 0.05)
        assert (chosen.epochs, chosen.batch_size) == (epochs, batch)
        assert config.regulariser == RegulariserConfig(form="quadratic", weight=weight, total="sum")
        assert chosen.final_rate == final_rate
        assert prepared_for(config).steps == config.data.bins == steps
        assert config.variant.name == row
        assert config.model.threshold in (None, 1.0)


@pytest.mark.parametrize(
    ("table", "widths", "blocks", "hidden"),
    [
        ("cifar10", (64, 128, 256, 512), 3, None),
        ("dvs-gesture", (32, 64, 128), 3, None),
        ("shd", None, None, (256, 256)),
    ],
)
def test_the_papers_networks_have_the_papers_sizes(table, widths, blocks, hidden):
    model = read_config(f"{table}-{TABLES[table][0]}").model
    assert (model.widths, model.blocks, model.hidden) == (widths, blocks, hidden)


def test_the_papers_input_is_32_by_32_and_augmented_where_it_says_so():
    assert prepared_for(read_config("dvs-gesture-sbnn")).shape == (50, 2, 32, 32)
    assert prepared_for(read_config("shd-sbnn")).shape == (100, 1, 1, 700)
    augmentation = read_config("cifar10-bbnn").data.augmentation
    assert (augmentation.crop, augmentation.flip) == (4, True)
    assert read_config("dvs-gesture-sbnn").data.augmentation.is_off


@pytest.mark.parametrize(
    ("row", "spread", "fire", "kl", "normalisation"),
    [
        ("cifar10-bbnn", "learned", "sample", True, "scale"),
        ("cifar10-bbnn-mfa", "learned", "mean_field", True, "scale"),
        ("cifar10-bbnn-fpv", "fixed", "mean_field", True, "scale"),
        ("cifar10-bbnn-nkl", "fixed", "mean_field", False, "scale"),
        ("shd-sbnn", "learned", "sample", True, "scale"),
        ("shd-sg-bn", "none", "mean_field", False, "batch"),
        ("shd-sg-nbn-1", "none", "mean_field", False, "scale"),
        ("dvs-gesture-sg-nbn-2", "none", "mean_field", False, "scale"),
    ],
)
def test_a_row_is_the_variant_it_is_named_after(row, spread, fire, kl, normalisation):
    found = make_variant(read_config(row).variant)
    assert (found.spread, found.fire, found.kl, found.normalisation) == (spread, fire, kl, normalisation)


def test_the_two_surrogate_widths_differ():
    widths = [make_variant(read_config(f"shd-sg-nbn-{n}").variant).estimator for n in (1, 2)]
    assert widths[0] != widths[1]


def test_list_shows_every_configuration_and_data_set(capsys):
    assert main(["--list"]) == 0
    words = capsys.readouterr().out.split()
    assert {*shipped(), *available()} <= set(words)
