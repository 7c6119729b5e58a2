"""Laws on other people's models: one convention of counts, the rules beside the laws, and that page and records are what the benchmark makes."""

import sys
from pathlib import Path

import numpy as np
import pytest

from nas.study.catalogue import load_law
from objectives.fitting.trained_models import Table

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "benchmarks"))  # the scripts import one another as they do when they run

import laws_elsewhere_tables  # noqa: E402
from laws_elsewhere import BEGIN, END, PAGE, RECORDS, Score, by_law, figures, records, scored, scores  # noqa: E402
from laws_elsewhere_tables import Measured, follows, tables  # noqa: E402

Found = dict[str, dict[str, Score]]


@pytest.fixture(scope="module")
def measured(external_data: Path) -> list[Measured]:
    """Every table."""
    return list(tables(external_data / "loss"))


@pytest.fixture(scope="module")
def found(measured: list[Measured]) -> Found:
    """Every score."""
    return {own.name: scores(own) for own in measured}


def test_page_and_records_are_what_the_benchmark_makes(measured: list[Measured], found: Found) -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page.partition(BEGIN)[2].partition(END)[0].strip() == figures(found, measured)
    assert RECORDS.read_text(encoding="utf-8") == records(found)


@pytest.mark.parametrize(
    ("by", "ordered"),
    [("`routed`", 91.0), ("`sparsity_iso`", 91.0), ("`fine_grained`", 91.0), ("`conditional`", 91.0), ("`conditional_1b`", 90.1),
     ("`hw_codesign`", 97.3), ("more parameters", 91.0), ("deeper", 93.2)],
)  # fmt: skip
def test_without_embeddings_laws_of_parameters_order_morph(by: str, ordered: float, found: Found) -> None:
    """With the published counts, which hold two embeddings, all but the last two lines were 20 to 41 %."""
    assert found["Morph"][by].pairs == 111
    assert round(100 * found["Morph"][by].ordered, 1) == ordered


def test_parameters_alone_order_gemstones(found: Found) -> None:
    for tokens, ordered, regret in ((10, 92.6, 0.0039), (100, 97.0, 0.0)):
        score = found[f"Gemstones {tokens} B"]["more parameters"]
        assert round(100 * score.ordered, 1) == ordered
        assert round(float(np.mean(score.regrets)), 4) == regret


def test_every_measured_step_of_k_lowers_the_loss(measured: list[Measured], found: Found) -> None:
    own = next(table for table in measured if table.name == "Routing K")
    predicted = by_law(load_law("hw_codesign"), own.table)
    assert predicted is not None
    steps, wrong = [], []
    for group in np.unique(own.group):
        rows = np.flatnonzero(own.group == group)
        rows = rows[np.argsort(own.table.numbers["top_k"][rows])]
        assert own.table.numbers["top_k"][rows].tolist() == [1, 2, 4]
        steps += np.diff(own.table.loss[rows]).tolist()
        experts = own.table.numbers["n_experts"][rows[0]], own.table.numbers["width"][rows[0]]
        wrong += [experts for step in np.diff(predicted[rows]) if step > 0]
    assert len(steps) == 12
    assert -0.047 < min(steps) < max(steps) < -0.016
    assert wrong == [(8, 1536)]
    assert found["Routing K"]["`sparsity_iso`"].ordered == found["Routing K"]["more active parameters"].ordered == 1


@pytest.mark.parametrize("constant", ["MORPH_VOCABULARY", "GEMSTONES_VOCABULARY"])
def test_a_wrong_convention_is_refused_by_the_tables_name(
    constant: str, external_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(laws_elsewhere_tables, constant, 0)
    with pytest.raises(ValueError, match=rf"^{constant.partition('_')[0].title()}.*: expected counts of parameters"):
        list(tables(external_data / "loss"))


def test_counts_that_do_not_follow_from_shapes_are_refused() -> None:
    assert follows("mine", np.array([1000.5]), np.array([1000.0])) == pytest.approx(5e-4)
    with pytest.raises(ValueError, match=r"^mine: .*got 1010 for 1000 in row 2; correct the convention"):
        follows("mine", np.array([1000.0, 1010.0]), np.array([1000.0, 1000.0]))


def test_a_tie_is_half_and_what_is_not_priced_is_no_pair() -> None:
    loss = np.array([3.0, 2.0, 1.0, 2.5])
    own = Measured("mine", Table({"loss": loss}, np.arange(4)), np.zeros(4, dtype=np.int64), "", None)
    score = scored(np.array([3.0, 1.0, 1.0, np.nan]), own, in_nats=False)
    assert score is not None
    assert (score.pairs, score.of) == (3, 6)
    assert score.ordered == pytest.approx(2.5 / 3)
    assert score.regrets == (0.5,)
    assert scored(np.ones(4), own, in_nats=False) is None
