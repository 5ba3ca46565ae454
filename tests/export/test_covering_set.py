"""The set of proved cases holds what it says it holds."""

from .cases import CASES, FACTORS, fits, wanted


def test_every_pair_and_every_named_triple_is_proved():
    proved = [
        {
            **{name: getattr(case.recipe, name) for name in FACTORS if name not in ("mode", "stored")},
            "mode": case.mode,
            "stored": case.stored,
        }
        for case in CASES
    ]
    missing = [combination for combination in wanted() if not any(combination <= choice.items() for choice in proved)]
    assert missing == []
    assert all(fits(choice) for choice in proved)


def test_what_is_wanted_names_every_value_of_every_factor():
    named = {entry for combination in wanted() for entry in combination}
    assert named == {(name, value) for name, values in FACTORS.items() for value in values}


def test_every_network_is_proved_in_every_mode():
    proved = {(case.recipe.network, case.mode) for case in CASES}
    assert proved == {(network, mode) for network in FACTORS["network"] for mode in FACTORS["mode"]}


def test_surrogate_gradient_baselines_are_collapsed_to_their_means_alone():
    assert not fits({"variant": "sg-bn", "mode": "sampled"})
    assert fits({"variant": "sg-bn", "mode": "mfa"})
