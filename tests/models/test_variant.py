"""The rows of the paper's tables, and the combinations that make no sense."""

from dataclasses import replace

import pytest

from axonnx.models import VARIANTS, Variant, make_estimator, variant

SG = make_estimator("sg")
# spread, forward, KL, normalisation, estimator: the table of the notes.
TABLE = {
    "bbnn": ("learned", "sample", True, "scale", "st"),
    "sbnn": ("learned", "sample", True, "scale", "st"),
    "mfa": ("learned", "mean_field", True, "scale", "st"),
    "fpv": ("fixed", "mean_field", True, "scale", "st"),
    "nkl": ("fixed", "mean_field", False, "scale", "st"),
    "nkl-sampled": ("learned", "sample", False, "scale", "st"),
    "sg-bn": ("none", "mean_field", False, "batch", "sg"),
    "sg-nbn-1": ("none", "mean_field", False, "scale", "sg"),
    "sg-nbn-2": ("none", "mean_field", False, "scale", "sg"),
}


def test_variants_are_the_rows_of_the_table():
    found = {
        name: (row.spread, row.fire, row.kl, row.normalisation, row.estimator.name) for name, row in VARIANTS.items()
    }
    assert found == TABLE
    assert VARIANTS["sg-bn"].estimator.width == VARIANTS["sg-nbn-1"].estimator.width == 0.4
    assert VARIANTS["sg-nbn-2"].estimator.width != 0.4


@pytest.mark.parametrize("name", ["mfa", "MFA", "bbnn-mfa", "SBNN-MFA"])
def test_names_may_say_which_kind_of_network(name):
    assert variant(name) is VARIANTS["mfa"]


def test_unknown_names_are_answered_with_the_known_ones():
    with pytest.raises(ValueError, match=r"unknown variant 'bbnn-x'; known are \['bbnn', 'fpv', 'mfa', "):
        variant("bbnn-x")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"spread": "none", "kl": False}, "estimator 'st' needs a posterior: use 'sg' with spread = 'none'"),
        ({"spread": "none", "estimator": SG}, "without a posterior there is no KL term: set kl = False"),
    ],
)
def test_combinations_without_a_meaning_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Variant(**options)


def test_batch_norm_in_time_needs_the_number_of_steps():
    with pytest.raises(ValueError, match="needs to know its number of time steps: give steps=T"):
        variant("sg-bn").through_time(None)
    through = variant("sg-bn").through_time(9)
    assert (through.normalisation, through.steps) == ("batch_through_time", 9)
    assert variant("sbnn").through_time(None) is variant("sbnn")
    assert replace(variant("sbnn"), normalisation="batch_over_time").through_time(None).steps is None
