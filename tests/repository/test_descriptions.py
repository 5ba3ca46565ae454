"""What a user sets in a configuration and finds in a file's contract says what it means."""

from collections.abc import Iterator

import pytest
from pydantic import BaseModel, Field

from axonnx.runtime.binning.settings import Binning
from axonnx.runtime.format import contract
from axonnx.runtime.format.contract import Contract
from axonnx.train.config.read import fields
from axonnx.train.config.settings import Config

PARTS = [kind for kind in vars(contract).values() if isinstance(kind, type) and issubclass(kind, contract.Part)]


def undescribed(model: type[BaseModel]) -> Iterator[str]:
    return (key for key, field in fields(model) if not field.description)


@pytest.mark.parametrize("model", [Config, Binning, *PARTS], ids=lambda model: model.__name__)
def test_every_field_says_what_it_means(model):
    assert list(undescribed(model)) == []


def test_the_contract_is_among_them_and_the_check_bites():
    class Silent(BaseModel):
        said: int = Field(description="so")
        unsaid: int = 3

    assert Contract in PARTS
    assert list(undescribed(Silent)) == ["unsaid"]
