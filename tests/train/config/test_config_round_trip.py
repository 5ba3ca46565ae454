"""The resolved configuration is a file that gives the same configuration again."""

import tomllib

from hypothesis import given
from hypothesis import strategies as st

from axonnx.cli.options import settings_of
from axonnx.train.config.read import check_config, read_config, to_toml

# Any text that TOML can hold (surrogates are not text), and any value a data set's options may have.
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
scalars = st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False) | texts
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3), max_leaves=6
)

SETTINGS = {
    "seed": st.integers(0, 2**63 - 1),
    "eval_samples": st.integers(1, 99),
    "data.bins": st.integers(1, 1000),
    "data.duration_ms": st.floats(1e-9, 1e12),
    "data.values": st.sampled_from(["count", "binary"]),
    "data.augmentation.time_stretch": st.floats(0, 0.99),
    "data.augmentation.flip": st.booleans(),
    "model.hidden": st.lists(st.integers(1, 512), min_size=1, max_size=4),
    "model.decay": st.floats(0, 1),
    "variant.name": st.sampled_from(["bbnn", "mfa", "sg-bn"]),
    "variant.estimator": st.fixed_dictionaries({"name": st.just("agr"), "k": st.floats(1e-3, 10)}),
    "optimiser.weight_rate": st.floats(1e-12, 1e3),
    "optimiser.clip_norm": st.floats(1e-6, 1e6),
    "optimiser.epochs": st.integers(1, 10**6),
    "finetune.rate": st.floats(1e-6, 1),
}


def literal(value) -> str:
    """A value as a person would type it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {literal(part)}" for key, part in value.items()) + "}"
    return f'"{value}"' if isinstance(value, str) else str(value)


@given(chosen=st.fixed_dictionaries({}, optional=SETTINGS))
def test_overrides_survive_the_file(chosen, tmp_path_factory):
    words = [f"--{key}={literal(value)}" for key, value in chosen.items()]
    config = read_config("digits-saccade", settings_of(words))
    path = tmp_path_factory.getbasetemp() / "round-trip.toml"
    path.write_text(to_toml(config), "utf-8")
    assert read_config(str(path)) == config
    for key, value in chosen.items():
        found = config
        for part in key.split("."):
            found = getattr(found, part)
        assert (list(found) if isinstance(found, tuple) else found) == value


@given(options=st.dictionaries(texts, values, max_size=4), name=texts)
def test_any_option_of_a_data_set_survives_the_file(options, name):
    base = read_config("digits-static").model_dump()
    config = check_config({**base, "data": {**base["data"], "options": options, "name": name}}, "generated")
    assert check_config(tomllib.loads(to_toml(config)), "again") == config


def test_a_second_round_trip_gives_the_same_text():
    text = to_toml(read_config("dvs-gesture-cpu"))
    assert to_toml(check_config(tomllib.loads(text), "again")) == text


def test_every_setting_that_has_a_value_is_written():
    config = read_config("digits-static", settings_of(["--optimiser.clip_norm", "2"]))
    tree = tomllib.loads(to_toml(config))
    assert tree["optimiser"]["clip_norm"] == 2.0
    assert tree["optimiser"]["scale_rate"] == config.optimiser.scale_rate
    assert tree["data"]["augmentation"]["flip"] is False
    assert "bins" not in tree["data"]  # unset
