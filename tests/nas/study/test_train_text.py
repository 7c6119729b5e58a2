"""The hash of texts that a study with `train` may name: none, or 64 digits; anything else is a sentence."""

from typing import Any

import pytest
from pydantic import ValidationError

from nas.study.expensive_settings import TrainSettings


@pytest.mark.parametrize("text", [None, "none", "0" * 64])
def test_none_and_a_hash_are_taken(text: Any) -> None:
    """A pattern on a text that may be none raised a TypeError of its own."""
    found = TrainSettings.model_validate({"data": ["stdlib"], "tokens": 1e6, "text": text})
    assert found.text == (None if text == "none" else text)


@pytest.mark.parametrize("text", ["zz", [1], "0" * 63])
def test_anything_else_is_refused(text: Any) -> None:
    with pytest.raises(ValidationError, match="text"):
        TrainSettings.model_validate({"data": ["stdlib"], "tokens": 1e6, "text": text})
