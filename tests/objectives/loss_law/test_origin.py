"""What a law says of where it comes from, in one line, whatever a file holds there."""

from typing import Any

import pytest

from objectives.loss_law.law import Law, origin_line, origin_of, verdict_line

FORM = {"form": "parameters_power", "coefficients": {"kappa": 400.0, "alpha": 0.3, "l_inf": 1.7}}
WHOLE = {
    "form": "parameters_power",
    "rows": 42,
    "tables": [
        {"name": "a.csv", "sha256": "0123456789abcdef", "rows": 30},
        {"name": "b.csv", "sha256": "ff", "rows": 12},
    ],
    "tokens": [2e6, 8e6],
    "verdict": "Not settled by these rows: the picks.",
    "file": {"name": "laws/mine.yaml", "sha256": "fedcba9876543210"},
}


def law(provenance: Any, **further: Any) -> Law:
    return Law.model_validate({**FORM, "name": "mine", "provenance": provenance, **further})


def test_everything_is_told_in_one_line() -> None:
    assert origin_line(law(WHOLE, residual_sd=0.0187)) == (
        "Law mine: parameters_power, 42 rows of a.csv (01234567) and b.csv (ff), 2e+06 to 8e+06 tokens, "
        "residual standard deviation 0.0187 nats, file laws/mine.yaml (fedcba98)"
    )
    assert verdict_line(law(WHOLE)) == "Verdict of the law's fit: Not settled by these rows: the picks."


def test_a_law_without_provenance_says_nothing_and_an_older_one_what_it_has() -> None:
    assert origin_line(law({})) == verdict_line(law({})) == ""
    assert origin_line(law({"data_sha256": "ab", "rows": 80, "form": "parameters_power"})) == (
        "Law mine: parameters_power, 80 rows"
    )
    many = [{"name": f"{i}.csv", "sha256": "00"} for i in range(5)]
    assert "0.csv (00) and 1.csv (00) and 3 more tables" in origin_line(law({"rows": 9, "tables": many}))


@pytest.mark.parametrize(
    "provenance",
    [{"rows": "many"}, {"tables": "all"}, {"file": 3}, {"tokens": [1]}, {"verdict": ["<b>"]}],
)
def test_what_cannot_be_read_is_nothing(provenance: dict[str, Any]) -> None:
    assert origin_of(law(provenance)) is None
    assert origin_line(law(provenance)) == ""
