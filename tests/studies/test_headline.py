"""The miniature headline: its lists and rules, and that its page follows from the table that ships."""

import csv
from pathlib import Path

import numpy as np
import pytest

from nas.study.catalogue import load_law
from plas_fit.fitting.trained_models import read_table
from studies.headline.design import LISTS, drawn
from studies.headline.fitting import (
    Form,
    chosen_form,
    correlations,
    holm,
    losses_of,
    means,
    of_parts,
    predictors,
    verdict,
    welch,
)
from studies.headline.page import BEGIN, END, adjusted, filled, interval
from studies.headline.search import QUESTIONS, merged, pick
from studies.headline.training import PARTS, part_of

ROOT = Path(__file__).resolve().parents[2]
TABLE, PAGE = ROOT / "docs" / "data" / "trained.csv", ROOT / "studies" / "headline" / "results.md"

SHAPE = {
    "depth": "2",
    "width": "64",
    "head_dim": "32",
    "n_heads": "2",
    "n_kv_heads": "1",
    "n_experts": "1",
    "top_k": "1",
}


def rows_of(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
def test_the_lists_are_what_the_design_draws() -> None:
    assert drawn() == {name: (LISTS / f"{name}.csv").read_text(encoding="utf-8") for name in PARTS}


def test_nothing_of_the_held_out_architectures_is_trained_for_the_law() -> None:
    shapes = {name: [tuple(row.values())[1:-1] for row in rows_of(LISTS / f"{name}.csv")] for name in PARTS}
    assert len(shapes["training"]) == len(set(shapes["training"])) == 64
    assert len(set(shapes["held_out"])) == 16
    assert not set(shapes["held_out"]) & set(shapes["training"])
    assert set(shapes["repeated"]) | set(shapes["longer"]) <= set(shapes["training"])


@pytest.mark.parametrize(
    ("name", "tokens", "seed", "part"),
    [
        ("t-01", 307200, 0, "training"),
        ("t-01", 307200, 2, "repeated"),
        ("t-01", 614400, 0, "longer"),
        ("h-01", 307200, 0, "held_out"),
    ],
)
def test_a_training_belongs_to_its_list(name: str, tokens: int, seed: int, part: str) -> None:
    assert part_of({"id": name, "tokens": str(tokens), "seed": str(seed)}) == part


def test_the_form_of_lowest_error_and_of_ties_the_simplest() -> None:
    forms = [Form("a", "a", 10, 0.0100, 0.0), Form("b", "b", 7, 0.01005, 0.0), Form("c", "c", 3, 0.0102, 0.0)]
    assert chosen_form(forms).name == "b"


def test_ranks_with_intervals_and_the_gain_over_the_better_count() -> None:
    loss = np.arange(16.0)
    noisy = loss + np.where(np.arange(16) % 2, 3.0, -3.0)
    each, gain = correlations(loss, {"law": loss, "parameters": -loss, "active parameters": noisy})
    assert each["law"] == pytest.approx((1.0, 1.0, 1.0))
    assert each["parameters"] == pytest.approx((-1.0, -1.0, -1.0))
    value, low, high = each["active parameters"]
    assert low < value < high <= 1.0
    assert gain == pytest.approx((1.0 - value, 1.0 - high, 1.0 - low))


def test_welchs_interval_by_hand() -> None:
    """Variances 0.01 each over 3: error 0.0816, 4 degrees of freedom, t 2.776."""
    ours, theirs = np.array([0.9, 1.0, 1.1]), np.array([1.4, 1.5, 1.6])
    assert welch(ours, theirs) == pytest.approx((-0.5, -0.5 - 2.7764 * 0.081650, -0.5 + 2.7764 * 0.081650), abs=1e-4)


@pytest.mark.parametrize(("low", "high", "word"), [(-2, -1, "holds"), (1, 2, "fails"), (-1, 1, "open")])
def test_a_verdict_needs_the_whole_interval_on_one_side(low: float, high: float, word: str) -> None:
    assert verdict(low, high, ("holds", "fails", "open")) == word


def test_the_hardware_has_the_last_word() -> None:
    found = [{**SHAPE, "expert_size": str(32 * i), "loss": str(2.0 - 0.1 * i)} for i in (1, 2, 3)]
    totals = {tuple(row[name] for name in (*SHAPE, "expert_size")): float(10 * i) for i, row in enumerate(found, 1)}
    chosen = pick(found, totals, 20.0)
    assert chosen is not None
    assert chosen["expert_size"] == "64"
    assert pick(found, totals, 5.0) is None
    together = merged({"one": chosen, "two": None, "three": dict(chosen)})
    assert [(row["id"], row["questions"]) for row in together] == [("one", "one three")]


@pytest.mark.skipif(not TABLE.exists(), reason="docs/data/trained.csv comes with the trainings of record")
def test_a_page_written_again_keeps_what_stands_around_its_figures() -> None:
    page = PAGE.read_text(encoding="utf-8")
    before, after = page.partition(BEGIN)[0], page.partition(END)[2]
    assert filled(page, ["one", "two"]) == f"{before}{BEGIN}\n\none\n\ntwo\n\n{END}{after}"
    assert filled(filled(page, ["one"]), ["two"]) == filled(page, ["two"])


def test_the_pages_ranks_follow_from_the_table() -> None:
    """The table loads in fit, and the page's correlations are recomputed from it and the law that ships with it."""
    assert len(read_table(TABLE, where=["part=training"])) == 64
    held_out = of_parts(rows_of(TABLE), "held_out")
    law = load_law(str(TABLE.with_name("trained_law.yaml")))
    each, gain = correlations(losses_of(held_out), predictors(law, held_out))
    page = PAGE.read_text(encoding="utf-8")
    for name, value in each.items():
        assert f"| {name} | {interval(value)} |" in page
    assert interval(gain) in page


@pytest.mark.skipif(not TABLE.exists(), reason="docs/data/trained.csv comes with the trainings of record")
def test_the_page_says_the_head_to_head_adjusted_for_three_picks() -> None:
    """Bonferroni's intervals and Holm's p values are recomputed from the table."""
    trained = means(of_parts(rows_of(TABLE), "head_to_head"))
    said = adjusted({question: trained[question] for question in QUESTIONS}, trained["qwen_shaped"])
    assert said in PAGE.read_text(encoding="utf-8")
    assert "| -0.1135 to -0.0128 | 0.0077 | 0.0232 | holds here |" in said
    assert "| -0.1771 to 0.0084 | 0.0217 | 0.0316 | is not decided |" in said


def test_holm_never_lowers_a_p_value_nor_its_order() -> None:
    assert holm([0.04, 0.01, 0.03]) == pytest.approx([0.06, 0.03, 0.06])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
