"""What the command line replaces: ``--section.key value``, wherever it stands."""

from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from axonnx.base.errors import AxonnxError
from axonnx.cli.command import run_verb
from axonnx.cli.options import settings_of
from axonnx.train import run as running
from axonnx.train.build import make_network, prepare
from axonnx.train.config.read import as_tree, read_config, settings
from axonnx.train.config.settings import Config
from axonnx.train.data.augment import Augmentation

main = partial(run_verb, "train")


@pytest.fixture
def trained(monkeypatch) -> list[Config]:
    """What would have been trained."""
    seen: list[Config] = []

    def kept(configuration, out, *, settings, **options):
        seen.append(read_config(configuration, settings))
        folder = Path(out or "o")
        folder.mkdir()
        (folder / "config.toml").touch()
        return SimpleNamespace(folder=folder, metrics={})

    monkeypatch.setattr(running, "train_run", kept)
    return seen


@pytest.mark.parametrize(
    ("words", "tree"),
    [
        (["--optimiser.epochs", "3"], {"optimiser": {"epochs": 3}}),
        (["--optimiser.epochs=3"], {"optimiser": {"epochs": 3}}),
        (["--optimiser.weight-rate=1e-6"], {"optimiser": {"weight_rate": 1e-6}}),
        (["--data.values", "binary"], {"data": {"values": "binary"}}),
        (["--data.name", '"quoted"'], {"data": {"name": "quoted"}}),
        (["--data.name=a=b"], {"data": {"name": "a=b"}}),
        (["--data.name", "2020-01-01"], {"data": {"name": "2020-01-01"}}),
        (["--data.root", 'C:\\data "x"'], {"data": {"root": 'C:\\data "x"'}}),
        (["--model.hidden", "[8, 4]"], {"model": {"hidden": [8, 4]}}),
        (["--seed", "-1"], {"seed": -1}),
        (["--data.augmentation.flip", "true"], {"data": {"augmentation": {"flip": True}}}),
        (["--data.options.camera.threshold", "0.3"], {"data": {"options": {"camera": {"threshold": 0.3}}}}),
        (["--variant.estimator", "{ name = 'agr', k = 0.5 }"], {"variant": {"estimator": {"name": "agr", "k": 0.5}}}),
        (["--variant.estimator.name", "agr"], {"variant": {"estimator": {"name": "agr"}}}),
        (["--seed", "1", "--seed", "2"], {"seed": 2}),
        ([], {}),
    ],
)
def test_words_become_a_tree(words, tree):
    assert as_tree(settings_of(words)) == tree


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--optimiser.epochs"], "--optimiser.epochs needs a value"),
        (["--optimiser.epochs", "--seed", "3"], "--optimiser.epochs needs a value"),
        (["epochs", "3"], "unexpected word 'epochs'"),
        (["--seed", "3", "4"], "unexpected word '4'"),
        (["--data", "3", "--data.bins", "4"], "data.bins: data was given a value of its own"),
    ],
)
def test_wrong_words_are_refused(words, complaint):
    with pytest.raises(AxonnxError, match=complaint):
        as_tree(settings_of(words))


@pytest.mark.parametrize(
    "words",
    [
        ["digits-static", "--optimiser.epochs", "3", "--seed", "7", "--out", "o"],
        ["--optimiser.epochs", "3", "--seed", "7", "--out", "o", "digits-static"],
        ["--out=o", "--optimiser.epochs=3", "digits-static", "--seed=7"],
        ["--quiet", "--seed", "7", "--out", "o", "--optimiser.epochs", "3", "digits-static"],
    ],
)
def test_overrides_stand_anywhere(trained, words):
    assert main(words) == 0
    assert trained == [read_config("digits-static", {"optimiser.epochs": 3, "seed": 7})]


def test_a_table_given_as_one_value_replaces_the_one_that_was_there():
    assert read_config("shd-cpu").data.augmentation != Augmentation()
    assert read_config("shd-cpu", settings_of(["--data.augmentation", "{}"])).data.augmentation == Augmentation()
    kept = read_config("shd-cpu", settings_of(["--data.augmentation.drop", "0.1"])).data.augmentation
    assert (kept.drop, kept.shift_x) == (0.1, read_config("shd-cpu").data.augmentation.shift_x)


def test_an_override_replaces_one_setting_and_leaves_its_neighbours():
    plain, changed = (
        read_config("cifar10-bbnn"),
        read_config("cifar10-bbnn", settings_of(["--data.augmentation.crop", "2"])),
    )
    assert changed.data.augmentation.crop == 2
    assert changed.data.augmentation.flip is plain.data.augmentation.flip is True
    assert changed.model_copy(update={"data": plain.data}) == plain


def test_data_root_is_short_for_its_setting(trained):
    assert main(["digits-static", "--data-root", "with space/true"]) == 0
    assert trained[0].data.root == "with space/true"


@pytest.mark.parametrize("words", [["digits-static", "stray"], ["digits-static", "--seed", "3", "stray"]])
def test_a_stray_word_is_refused(trained, words, capsys):
    with pytest.raises(SystemExit) as end:
        main(words)
    assert end.value.code == 2
    assert "unrecognized arguments: stray" in capsys.readouterr().err
    assert not trained


def test_no_configuration_is_refused(trained):
    with pytest.raises(AxonnxError, match="which configuration"):
        main([])
    with pytest.raises(AxonnxError, match="which configuration"):
        main(["--resume"])


def test_settings_lists_every_key_with_default_and_meaning(capsys):
    assert main(["--settings"]) == 0
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert set(lines) == {f"--{key}" for key, _, _ in settings()}
    assert '"auto"' in lines["--regulariser.weight"]
    assert "λ" in lines["--regulariser.weight"]
    assert lines["--data.name"].split()[1] == "required"
    assert lines["--data.bins"].split()[1] == "unset"
    assert "--data.augmentation.time_stretch" in lines


def test_every_listed_setting_can_be_overridden_and_every_default_is_one():
    base = ["--data.name=x", "--model.network=binary-mlp"]
    for key, default, _ in settings():
        if default not in ("required", "unset"):
            assert read_config("digits-static", settings_of([*base, f"--{key}={default}"])), key


def test_help_explains_overrides(capsys):
    with pytest.raises(SystemExit) as end:
        main(["--help"])
    assert end.value.code == 0
    out = capsys.readouterr().out
    assert all(word in out for word in ("--optimiser.epochs 10", "--resume", "--settings", "--list", "--output"))


def test_values_nested_without_end_are_refused(tmp_path):
    with pytest.raises(AxonnxError, match="too deep within each other"):
        settings_of([f"--model.hidden={'[' * 5000}"])
    path = tmp_path / "deep.toml"
    path.write_text(f"seed = {'[' * 5000}")
    with pytest.raises(AxonnxError, match="too deep within each other"):
        read_config(str(path))


@pytest.mark.parametrize("sizes", ["[1000000000]", "[16777216, 16777216]", f"[{10**30}]"])
def test_networks_that_no_machine_can_hold_are_refused(sizes):
    with pytest.raises(AxonnxError, match=r"parameters; at most|less than or equal to"):
        make_network(
            config := read_config("digits-static", settings_of([f"--model.hidden={sizes}"])), prepare(config.data)
        )


def test_a_network_of_ones_own_takes_no_sizes_of_a_shipped_one():
    own = {"model.network": "my_network.py:MyNet", "model.arguments": {"memory": 3}}
    config = read_config("digits-saccade", own)
    assert config.model.model_dump(exclude_defaults=True) == {
        "network": "my_network.py:MyNet",
        "arguments": {"memory": 3},
    }
    assert config.data == read_config("digits-saccade").data
    assert read_config("digits-saccade", {"model.network": "recurrent-snn"}).model.hidden == (128, 128)


def test_what_is_no_configuration_but_data_is_said(tmp_path):
    with pytest.raises(AxonnxError, match=f"unknown configuration.*axonnx data {tmp_path} says how to train on it"):
        read_config(str(tmp_path))


def test_a_value_for_a_section_names_the_setting():
    with pytest.raises(
        AxonnxError, match=r"data: is a section of settings \(name, .*found 'x'; did you mean data.name"
    ):
        read_config("digits-saccade", {"data": "x"})
