"""Wrong settings: each is refused with its key, what was found, and what was meant or expected."""

import pytest

from axonnx.base.errors import AxonnxError
from axonnx.cli import main as axonnx
from axonnx.cli.options import settings_of
from axonnx.train.config.read import check_config, parse_config, read_config

from ..tiny_runs import tiny_tree

HERE = "digits-static"


def refusal(*overrides: str, source: str = HERE) -> str:
    with pytest.raises(AxonnxError) as fault:
        read_config(source, settings_of(overrides))
    return str(fault.value)


@pytest.mark.parametrize(
    ("override", "place", "near"),
    [
        ("--sead=3", "sead", "seed"),
        ("--optimizer.epoch=3", "optimiser.epoch", "epochs"),
        ("--optimiser.epoch=3", "optimiser.epoch", "epochs"),
        ("--data.duration=3", "data.duration", "duration_ms"),
        ("--data.augmentation.time_jitter=3", "data.augmentation.time_jitter", "time_jitter_us"),
        ("--model.hiden=[3]", "model.hiden", "hidden"),
        ("--finetune.epoch=1", "finetune.epoch", "epochs"),
    ],
)
def test_an_unknown_key_is_refused_with_the_nearest_known_one(override, place, near):
    assert f"{place}: unknown key; did you mean '{near}'?" in refusal(override)


@pytest.mark.parametrize(
    ("override", "meant"),
    [
        ("--epoch=3", "'optimiser.epochs' or 'finetune.epochs'"),
        ("--label-smoothing=3", "'optimiser.label_smoothing'"),
        ("--optimiser.target=3", "'regulariser.target'"),
        ("--flip=true", "'data.augmentation.flip'"),
    ],
)
def test_a_key_of_another_section_is_named_with_its_section(override, meant):
    assert f"unknown key; did you mean {meant}?" in refusal(override)


@pytest.mark.parametrize(
    ("given", "key", "value"),
    [
        ("--optimizer.epochs=3", "optimiser.epochs", 3),
        ("--epochs=3", "optimiser.epochs", 3),
        ("--batch-size=3", "optimiser.batch_size", 3),
        ("--lr=0.25", "optimiser.weight_rate", 0.25),
        ("--learning_rate=0.25", "optimiser.weight_rate", 0.25),
        ("--hidden=[3]", "model.hidden", (3,)),
        ("--regularizer.weight=0.5", "regulariser.weight", 0.5),
        ("--variant.estimator=iwst", "variant.estimator", {"name": "iwst"}),
        ("--data_root=there", "data.root", "there"),
    ],
)
def test_other_spellings_and_short_names_are_accepted(given, key, value):
    found = read_config(HERE, settings_of([given]))
    for part in key.split("."):
        found = getattr(found, part)
    assert found == value


def test_an_unknown_key_without_a_near_one_lists_what_is_known():
    text = refusal("--finetune.xyzzy=1")
    assert "finetune.xyzzy: unknown key; known here: epochs, rate" in text


@pytest.mark.parametrize(
    ("override", "parts"),
    [
        ("--optimiser.epochs=0", ("optimiser.epochs", "greater than 0", "found 0")),
        ("--optimiser.epochs=2.5", ("optimiser.epochs", "integer", "found 2.5")),
        ("--optimiser.epochs=many", ("optimiser.epochs", "integer", "found 'many'")),
        ("--optimiser.weight_rate=-0.1", ("optimiser.weight_rate", "greater than 0", "found -0.1")),
        ("--optimiser.weight_rate=inf", ("optimiser.weight_rate", "finite", "found inf")),
        ("--regulariser.weight=nan", ("regulariser.weight", "finite number from 0 on, or 'auto'", "found nan")),
        ("--regulariser.weight=-1", ("regulariser.weight", "finite number from 0 on, or 'auto'", "found -1")),
        ("--regulariser.weight=true", ("regulariser.weight", "finite number from 0 on, or 'auto'", "found True")),
        ("--regulariser.weight=Auto", ("regulariser.weight", "or 'auto'", "found 'Auto'")),
        ("--optimiser.final_rate=1.5", ("optimiser.final_rate", "less than or equal to 1", "found 1.5")),
        ("--optimiser.label_smoothing=1", ("optimiser.label_smoothing", "less than 1", "found 1")),
        ("--regulariser.of=neurons", ("regulariser.of", "'neuron', 'current' or 'weight'", "found 'neurons'")),
        ("--data.clip=256", ("data.clip", "less than or equal to 255", "found 256")),
        ("--data.values=counts", ("data.values", "'count' or 'binary'", "found 'counts'")),
        ("--data.name=5", ("data.name", "string", "found 5")),
        ("--data.augmentation.drop=2", ("data.augmentation.drop", "less than or equal to 1", "found 2")),
        ("--model.hidden=[8, -1]", ("model.hidden.1", "greater than 0", "found -1")),
        ("--model.network=mlp", ("model.network", "'binary-mlp'", "found 'mlp'")),
        ("--model=3", ("model", "a section of settings", "found 3")),
        ("--seed=-1", ("seed", "greater than or equal to 0", "found -1")),
        (f"--seed={2**63}", ("seed", "less than", f"found {2**63}")),
    ],
)
def test_a_wrong_value_is_refused_with_key_expectation_and_what_was_found(override, parts):
    text = refusal(override)
    assert all(part in text for part in parts), text
    assert text.startswith(f"{HERE}: 1 wrong setting(s)")


def test_all_faults_are_told_at_once():
    text = refusal("--optimiser.epochs=0", "--data.bin=3", "--seed=x")
    assert "3 wrong setting(s)" in text
    assert all(key in text for key in ("optimiser.epochs", "data.bin", "seed"))


def test_what_is_missing_is_named_without_a_dump_of_the_rest(tmp_path):
    with pytest.raises(AxonnxError) as fault:
        check_config({"data": {"bins": 3}}, "mine.toml")
    assert str(fault.value).splitlines()[1:] == [
        "  data.name: is missing and has no default",
        "  model: is missing and has no default",
    ]


def test_an_unknown_configuration_names_the_nearest():
    assert "unknown configuration 'digits-statik'. Did you mean 'digits-static'?" in refusal(source="digits-statik")
    assert "Give a shipped name or a .toml file" in refusal(source="zzz")


def test_a_file_that_is_not_there_or_not_toml(tmp_path):
    assert "no-such.toml: no such file" in refusal(source="no-such.toml")
    broken = tmp_path / "broken.toml"
    broken.write_text("[data\nname = 3")
    assert f"{broken}: not a TOML file" in refusal(source=str(broken))
    broken.write_bytes(b"name = '\xff\xfe'")
    assert f"{broken}: not a TOML file" in refusal(source=str(broken))


def test_a_configuration_does_not_change_after_it_was_read(frames):
    config = check_config(tiny_tree(frames), "tiny")
    with pytest.raises(ValueError, match="frozen"):
        config.optimiser.epochs = 5


def test_the_command_line_prints_the_faults_and_ends_with_2(capsys):
    assert axonnx(["train", HERE, "--optimiser.epoch", "3"]) == 2
    said = capsys.readouterr()
    assert "did you mean 'epochs'?" in said.err
    assert said.out == ""


@pytest.mark.parametrize(
    ("override", "place"),
    [
        ("--data.options.sensor=nan", "sensor is nan"),
        ("--data.options.sensor=[78, -inf]", "sensor[1] is -inf"),
        ("--model.arguments={sizes = {first = [1979-05-27]}}", "sizes.first[0] is datetime.date"),
        ("--model.widths=[]", "model.widths"),
    ],
)
def test_values_that_no_file_would_give_back_and_no_widths_are_refused(override, place):
    assert place in refusal(override)


@pytest.mark.parametrize(("text", "says"), [("seed", "not a TOML file"), ("seed = " + "[" * 5000, "too deep")])
def test_the_text_of_a_checkpoint_that_is_no_configuration_is_refused_with_its_place(text, says):
    with pytest.raises(AxonnxError, match=f"run/checkpoint: .*{says}"):
        parse_config(text, "run/checkpoint")
