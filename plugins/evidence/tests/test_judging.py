"""Pairs of questions and judgements against loops over rows, and what the record makes of them."""

from itertools import combinations
from math import log

import numpy as np
import pytest
from plas_evidence.judging import BINS, Pairs, binned, judged, means, questions_of, table_record
from plas_evidence.tables import GroupedTable, Prediction, base

from nas.study.catalogue import load_law
from plas_fit.fitting.trained_models import Table
from search_spaces.arrays import FloatArray


def random_table(seed: int, rows: int = 40) -> Table:
    """Models over few values of each quantity, so that all questions have pairs."""
    draw = np.random.default_rng(seed)
    of = {
        "depth": [4, 8],
        "width": [256, 512],
        "expert_ffn_ratio": [1, 2, 4],
        "query_dim": [256, 512],
        "kv_dim": [64, 256],
        "n_experts": [1, 8],
        "tokens": [1e9, 1.005e9, 2e9],
        "parameters": [1e8, 1.04e8, 1.07e8, 2e8],
        "active_parameters": [5e7, 5.2e7, 1e8],
    }
    numbers = {name: draw.choice(np.array(values, dtype=np.float64), rows) for name, values in of.items()}
    numbers["top_k"] = np.minimum(numbers["n_experts"], draw.choice([1.0, 2.0], rows))
    return Table(numbers | {"loss": draw.normal(3, 0.2, rows).round(2)}, np.arange(rows))


def near(table: Table, a: int, b: int, *names: str, most: float = 1.01) -> bool:
    return all(abs(log(table.feature(n)[a] / table.feature(n)[b])) <= log(most) for n in names)


def asks(question: str, t: Table, a: int, b: int) -> bool:
    """Whether two rows are a pair of a question, from the page's words."""

    def same(*names: str) -> bool:
        return near(t, a, b, *names)

    def alike(*names: str) -> bool:
        return near(t, a, b, *names, most=1.05)

    shape, counts = ("depth", "width"), ("active_parameters", "parameters")
    ratio = t.feature("query_dim") / t.feature("width")
    flops = t.feature("active_parameters") * t.feature("tokens")
    return {
        "size": same("tokens", "n_experts", "top_k") and not alike("active_parameters"),
        "shape": same("tokens", "n_experts", "top_k") and alike(*counts) and not same(*shape),
        "experts": same("tokens", *shape, "top_k") and not same("n_experts"),
        "active": same("tokens", *shape, "n_experts") and not same("top_k"),
        "memory": same("tokens") and alike("parameters") and not same("n_experts"),
        "ffn": same("tokens", *shape, "n_experts", "top_k") and not same("expert_ffn_ratio"),
        "kv": same("tokens", *shape, "n_experts", "top_k", "expert_ffn_ratio", "query_dim") and not same("kv_dim"),
        "attention": same("tokens") and alike(*counts) and abs(log(ratio[a] / ratio[b])) > log(1.05),
        "tokens": same(*shape, "query_dim", "kv_dim", "expert_ffn_ratio", "n_experts", "top_k", *counts)
        and not same("tokens"),
        "compute": abs(log(flops[a] / flops[b])) <= log(1.05)
        and same("n_experts", "top_k")
        and not alike("active_parameters"),
        "equal tokens": same("tokens"),
    }[question]


@pytest.mark.parametrize("seed", range(4))
def test_pairs_are_those_that_the_page_says(seed: int) -> None:
    table, group = random_table(seed), np.random.default_rng(seed + 9).integers(0, 2, 40)
    found = questions_of(table, group)
    every = [(a, b) for a, b in combinations(range(40), 2) if group[a] == group[b] and table.loss[a] != table.loss[b]]
    assert len(found) >= 8
    for question, pairs in found.items():
        wanted = [(a, b) for a, b in every if asks(question, table, a, b)]
        assert list(zip(pairs.first.tolist(), pairs.second.tolist(), strict=True)) == wanted


def by_loops(
    predicted: FloatArray, loss: FloatArray, pairs: list[tuple[int, int]]
) -> tuple[float, float, float, float]:
    """Order, a pair without a price a coin, and regret, slope and error of the others, a pair or a row at a time."""
    own = [(a, b) for a, b in pairs if np.isfinite(predicted[a] + predicted[b])]
    gaps = [(predicted[a] - predicted[b], loss[a] - loss[b]) for a, b in own]
    unpriced = [0.5] * (len(pairs) - len(own))
    order = np.mean([0.5 if abs(p) <= 1e-9 else float(p * m > 0) for p, m in gaps] + unpriced)
    regrets = []
    for row in sorted({row for pair in own for row in pair}):
        near_by = [row, *(b for a, b in own if a == row), *(a for a, b in own if b == row)]
        least = min(predicted[i] for i in near_by)
        picked = [loss[i] for i in near_by if predicted[i] <= least + 1e-9]
        regrets.append(np.mean(picked) - min(loss[i] for i in near_by))
    slope = sum(p * m for p, m in gaps) / sum(p * p for p, _ in gaps)
    return float(order), float(np.mean(regrets)), slope, float(np.sqrt(np.mean([(p - m) ** 2 for p, m in gaps])))


@pytest.mark.parametrize("seed", range(4))
def test_judgements_are_those_of_loops(seed: int) -> None:
    table, draw = random_table(seed), np.random.default_rng(seed + 99)
    predicted = (table.loss + draw.normal(0, 0.3, 40)).round(1)  # with ties
    predicted[draw.integers(0, 40, 4)] = np.nan
    for pairs in questions_of(table, np.zeros(40)).values():
        one = judged({"x": Prediction(predicted, True)}, table.loss, pairs)["x"]
        assert one is not None
        both = list(zip(pairs.first.tolist(), pairs.second.tolist(), strict=True))
        if one.mute < 1:
            assert (one.order, one.regret, one.slope, one.error) == pytest.approx(by_loops(predicted, table.loss, both))
            assert one.interval[0] <= one.order <= one.interval[1]


def test_the_interval_of_a_coin_holds_a_half_in_most_tables() -> None:
    """Rows are drawn again, not pairs: 40 rows make 780 pairs, and an interval over pairs would be 2.5 times too narrow."""
    holds, widths = 0, []
    first, second = np.triu_indices(40, 1)
    for seed in range(60):
        draw = np.random.default_rng(seed)
        loss, predicted = draw.normal(size=40), draw.normal(size=40)
        one = judged({"x": Prediction(predicted, False)}, loss, Pairs(first, second))["x"]
        assert one is not None
        holds += one.interval[0] <= 0.5 <= one.interval[1]
        widths.append(one.interval[1] - one.interval[0])
    assert holds >= 52
    assert 0.15 < np.mean(widths) < 0.35


def test_draws_that_are_as_wide_as_the_truth_cover_it_as_often_as_they_say() -> None:
    """Losses are one more draw of the same normal: intervals of differences hold, and pairs called sure are right as often as called."""
    draw, first, second = np.random.default_rng(5), *np.triu_indices(60, 1)
    centre = draw.normal(0, 1, 60)
    found = []
    for _ in range(20):
        loss, draws = centre + draw.normal(0, 0.5, 60), centre + draw.normal(0, 0.5, (400, 60))
        found.append(judged({"x": Prediction(centre, True, draws)}, loss, Pairs(first, second))["x"])
    doubts = [one.doubt for one in found if one is not None and one.doubt is not None]
    assert len(doubts) == 20
    for level in (50, 80, 90):
        assert np.mean([(one.coverage or {})[level] for one in doubts]) == pytest.approx(level / 100, abs=0.04)
    assert np.mean([one.sure_right for one in doubts]) > 0.95
    assert 0.1 < np.mean([one.sure for one in doubts]) < 0.7


def test_a_misfit_beside_the_draws_covers_as_much_and_rows_outside_count_in_nothing_but_their_share() -> None:
    draw, first, second = np.random.default_rng(6), *np.triu_indices(60, 1)
    centre, outside = draw.normal(0, 1, 60), np.arange(60) < 6
    held, shares = [], []
    for _ in range(20):
        loss = centre + draw.normal(0, 0.5, 60) + 100.0 * outside * draw.normal(size=60)
        draws = centre + draw.normal(0, 0.3, (200, 60))
        one = judged({"x": Prediction(centre, True, draws, 0.4, outside)}, loss, Pairs(first, second))["x"]
        assert one is not None
        assert one.doubt is not None
        assert one.doubt.coverage is not None
        held.append(one.doubt.coverage[90])
        shares.append(one.doubt.outside)
    assert np.mean(held) == pytest.approx(0.9, abs=0.03)
    assert shares[0] == pytest.approx(1 - (54 * 53) / (60 * 59))


def test_what_says_nothing_is_mute_and_decides_nothing() -> None:
    table = random_table(1)
    pairs = questions_of(table, np.zeros(40))["equal tokens"]
    said = {"flat": Prediction(np.zeros(40), True), "silent": Prediction(np.full(40, np.nan), True), "cannot": None}
    found = judged(said, table.loss, pairs)
    assert found["cannot"] is None
    for name in ("flat", "silent"):
        one = found[name]
        assert one is not None
        assert (one.order, one.mute, one.decides) == (0.5, 1.0, False)


def test_pairs_without_a_price_count_half_in_the_order_and_in_its_interval() -> None:
    """A law that prices 6 of 66 pairs, all rightly, has 54.5 %, and cannot have 100 % by any draw of the rows."""
    loss, first, second = np.arange(12.0), *np.triu_indices(12, 1)
    predicted = np.where(np.arange(12) < 4, loss, np.nan)
    one = judged({"few": Prediction(predicted, True)}, loss, Pairs(first, second))["few"]
    assert one is not None
    assert (one.pairs, one.of, one.order) == (6, 66, pytest.approx((6 + 30) / 66))
    assert one.interval[1] < 0.9
    assert one.mute == pytest.approx(60 / 66)


def test_statements_are_counted_by_their_probability() -> None:
    said = np.array([0.5, 0.55, 0.6, 0.89, 0.9, 0.949, 0.95, 1.0])
    right = np.array([True, False, True, False, True, True, True, False])
    assert binned(said, right) == ((2, 1), (1, 1), (0, 0), (1, 0), (2, 2), (2, 1))


def test_probabilities_of_true_draws_are_right_as_often_as_they_say() -> None:
    draw, first, second = np.random.default_rng(8), *np.triu_indices(60, 1)
    centre = draw.normal(0, 1, 60)
    total = np.zeros((len(BINS) - 1, 2))
    for _ in range(20):
        loss, draws = centre + draw.normal(0, 0.5, 60), centre + draw.normal(0, 0.5, (400, 60))
        one = judged({"x": Prediction(centre, True, draws)}, loss, Pairs(first, second))["x"]
        assert one is not None
        assert one.doubt is not None
        total += one.doubt.bins
    middle = (np.array(BINS[1:]) + np.array(BINS[:-1])) / 2
    assert total[:, 1] / total[:, 0] == pytest.approx(middle, abs=0.05)


def test_a_mute_table_counts_half_in_the_record() -> None:
    rule, laws = random_table(2), {"hw_codesign": load_law("hw_codesign")}
    bare = Table({name: rule.numbers[name] for name in ("parameters", "tokens", "loss")}, rule.lines)
    both = [
        table_record(GroupedTable(name, "", table, np.zeros(40)), laws) for name, table in (("a", rule), ("b", bare))
    ]
    mean = means(both)["equal tokens"]["deeper"]
    first = both[0].by["equal tokens"]["deeper"]
    assert first is not None
    assert (mean.tables, mean.mute, mean.order) == (2, 1, pytest.approx((first.order + 0.5) / 2))
    assert mean.priced == pytest.approx(0.5)


def test_a_table_of_dimensions_without_heads_gives_what_laws_read() -> None:
    """K at equal all else raises r = K · d_e/d and is not lost to a stand-in (FFN ratio of a derived column)."""
    routing = next(asked for asked in base() if asked.name == "Routing")
    record = table_record(routing, {"hw_codesign": load_law("hw_codesign")}, ["active"])
    one = record.by["active"]["hw_codesign"]
    assert one is not None
    assert one.order > 0.5
