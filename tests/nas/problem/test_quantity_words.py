"""Quantities of designs in words."""

import pytest

from nas.problem.wording import in_words, named
from nas.study.catalogue import load_law
from search_spaces.specification import GENES


@pytest.mark.parametrize(
    ("name", "words"),
    [("kv_dim", "KV dimension (features)"), ("depth", "layers"), ("predicted_loss", "loss (nats)"), ("mine", "mine")],
)  # fmt: skip
def test_a_column_has_words_and_the_unit_that_they_do_not_say(name: str, words: str) -> None:
    assert named(name) == words


def test_names_within_a_text_are_words_without_units() -> None:
    assert in_words("least ffn_ratio") == "least FFN ratio"
    assert in_words("kv_dim above 512") == "KV dimension above 512"


def test_what_the_default_law_and_a_space_name_is_in_words() -> None:
    for name in (*load_law("hw_codesign").fitted_on, *GENES):
        assert "_" not in in_words(name), name
