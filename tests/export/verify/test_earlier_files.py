"""A file that was written before a setting was added is still what its run gives."""

from axonnx.export.verify.structure import present_config
from axonnx.train.config.read import read_config, to_toml

NOW = to_toml(read_config("digits-saccade"))


def test_settings_that_came_later_have_their_defaults():
    earlier = NOW.replace("accumulate = 1\n", "")
    assert earlier != NOW
    assert present_config(earlier) == present_config(NOW) == NOW


def test_settings_that_differ_stay_different():
    assert present_config(NOW.replace("seed = 0", "seed = 1", 1)) != NOW
    assert present_config(NOW.replace("accumulate = 1", "accumulate = 2")) != NOW
    assert present_config("no TOML [") == "no TOML ["
    assert present_config(None) is None
