"""Picks: the tie rules, blocks against the whole, and the model page's picks of the default study."""

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nas.problem.evaluations import Evaluations, frontier_rows
from nas.problem.objective import Budget
from nas.problem.picks import PickRule, answers
from nas.problem.problem import Problem

DECODE = Budget("decode_ms", 20.0)
BEYOND = 1 + 1e-14  # a change that 12 digits do not show


def picked(rows: Evaluations, budget: Budget | None = DECODE) -> int:
    """Key of the pick."""
    row = PickRule(budget).row(rows)
    assert row is not None
    return int(rows.keys[row])


@pytest.mark.parametrize(
    ("loss", "decode", "total", "expected"),
    [
        ([3.0, 2.0, 2.5], [1, 2, 3], [9, 9, 9], 1),
        ([2.0, 2.0, 2.5], [5, 4, 3], [1, 9, 9], 1),
        ([2.0, 2.0 * BEYOND, 2.5], [5, 4, 3], [1, 9, 9], 1),
        ([2.0, 2.0, 2.0], [4, 4 * BEYOND, 4], [9, 8, 9], 1),
        ([2.0, 2.0, 2.0], [4 * BEYOND, 4, 4], [8 * BEYOND, 8, 8], 0),
        ([1.0, 2.0, 2.5], [21, 20, 3], [1, 9, 9], 1),
        ([2.0, 2.0 + 1e-9, 2.5], [9, 1, 1], [9, 1, 1], 0),
    ],
    ids=["loss", "budgeted", "loss at 12 digits", "total_ms at 12 digits", "genotype", "within", "no tie"],
)
def test_ties_go_to_the_budgeted_metric_then_total_then_genotype(
    loss: list[float], decode: list[float], total: list[float], expected: int, rows_of: Callable[..., Evaluations]
) -> None:
    assert picked(rows_of({"loss": loss, "decode_ms": decode, "total_ms": total})) == expected


def test_without_a_budget_ties_go_to_total_then_genotype(rows_of: Callable[..., Evaluations]) -> None:
    rows = rows_of({"loss": [2.0] * 4, "decode_ms": [1, 2, 3, 4], "total_ms": [9, 7, 8, 7]}, keys=[1, 8, 3, 5])
    assert picked(rows, None) == 5


def test_the_studys_budgets_and_failures_count(rows_of: Callable[..., Evaluations]) -> None:
    metrics = {"loss": [1.0, math.nan, 2.0, 3.0], "decode_ms": [1, math.nan, 1, 1], "total_ms": [9, math.nan, 5, 5]}
    assert picked(rows_of(metrics, budgets={"total_ms": 5.0}, reasons=["", "broken", "", ""])) == 2


def test_nothing_feasible_has_no_pick(rows_of: Callable[..., Evaluations]) -> None:
    rows = rows_of({"loss": [1.0], "decode_ms": [21.0], "total_ms": [30.0]})
    assert PickRule(DECODE).row(rows) is None
    assert PickRule(DECODE).better(None, rows) is None


ROW = st.tuples(
    st.sampled_from([1.0, 2.0, 2.0 * BEYOND]), st.sampled_from([5.0, 19.0, 20.0, 21.0]), st.sampled_from([1.0, 2.0])
)


@given(
    st.lists(ROW, min_size=1, max_size=20),
    st.lists(st.integers(0, 20), max_size=6),
    st.sampled_from([None, DECODE]),
    st.randoms(),
)
def test_blocks_give_the_pick_of_the_whole(
    rows_of: Callable[..., Evaluations],
    rows: list[tuple[float, ...]],
    cuts: list[int],
    budget: Budget | None,
    random: "np.random.Generator",
) -> None:
    keys = list(range(len(rows)))
    random.shuffle(keys)  # type: ignore[arg-type]
    columns = dict(zip(("loss", "decode_ms", "total_ms"), zip(*rows, strict=True), strict=True))
    whole = rows_of(columns, keys=keys)
    edges = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    kept: Evaluations | None = None
    for start, end in itertools.pairwise(edges):
        kept = PickRule(budget).better(kept, whole[slice(start, end)])
    row = PickRule(budget).row(whole)
    assert (kept is None) == (row is None)
    if kept is not None and row is not None:
        assert kept.keys.tolist() == [whole.keys[row]]


OBJECTIVES = (("loss", "total_ms"), ("loss", "decode_ms"), ("loss", "decode_ms", "total_ms"))


@given(
    st.lists(st.tuples(ROW, st.sampled_from([20.0, 20.0 * BEYOND])), min_size=1, max_size=20),
    st.sampled_from([None, DECODE, Budget("total_ms", 1.0)]),
    st.sampled_from([(), (DECODE,)]),
    st.sampled_from(OBJECTIVES),
)
def test_a_pick_read_off_a_frontier_is_that_of_the_whole(
    rows_of: Callable[..., Evaluations],
    rows: list[tuple[tuple[float, ...], float]],
    budget: Budget | None,
    within: tuple[Budget, ...],
    objectives: tuple[str, ...],
) -> None:
    three = [(loss, at_limit if decode == 20.0 else decode, total) for (loss, decode, total), at_limit in rows]
    whole = rows_of(dict(zip(("loss", "decode_ms", "total_ms"), zip(*three, strict=True), strict=True)), objectives)
    front, rule = whole[frontier_rows(whole)], PickRule(budget, within)
    if not rule.read_off(front):
        return
    expected, found = rule.row(whole), rule.row(front)
    assert (found is None) == (expected is None)
    if found is not None and expected is not None:
        assert front.keys[found] == whole.keys[expected]


def test_a_pick_is_read_off_where_the_objectives_alone_order_designs(rows_of: Callable[..., Evaluations]) -> None:
    two = rows_of({"loss": [1.0, 2.0], "decode_ms": [20.0, 3.0], "total_ms": [30.0, 4.0]})
    total = PickRule(Budget("total_ms", 10.0))
    assert PickRule(None).read_off(two)
    assert total.read_off(two)
    assert not PickRule(DECODE).read_off(two)
    assert not PickRule(None, (DECODE,)).read_off(two)
    assert not PickRule(None, dense=True).read_off(two)
    three = rows_of({name: [1.0, 2.0] for name in ("loss", "decode_ms", "total_ms")}, OBJECTIVES[-1])
    assert PickRule(DECODE).read_off(three)
    assert not total.read_off(three)  # of ties in loss and total_ms one may have the lower decode_ms
    divided = rows_of({"loss": [1.0], "decode_ms": [1.0], "total_ms": [10.0 * BEYOND]})
    assert not total.read_off(divided)


@pytest.mark.parametrize(
    ("label", "shape", "loss", "metric", "value"),
    [
        ("embodied AI", (12, 1536, 16, 1, 1152, 1), 3.3098, "decode_ms", 19.71),
        ("autonomous driving", (16, 2304, 8, 1, 1152, 4), 3.1446, "total_ms", 98.86),
    ],
)
def test_the_default_studys_picks_are_the_model_pages(
    label: str,
    shape: tuple[int, ...],
    loss: float,
    metric: str,
    value: float,
    default_problem: Problem,
    default_evaluations: Evaluations,
) -> None:
    found = next(p.answer for p in answers(default_problem, default_evaluations) if p.question.label == label)
    assert found is not None
    assert shape_of(default_problem, found) == shape
    assert found.metrics["loss"][0] == pytest.approx(loss, abs=5e-5)
    assert found.metrics[metric][0] == pytest.approx(value, abs=5e-3)


def test_beside_the_baseline_equal_memory_is_a_third_of_the_headline(
    default_problem: Problem, default_evaluations: Evaluations
) -> None:
    """ERRATA: at equal latency and memory 7.3 %, dense 2.3 %, at twice the memory 21.4 %; here by hand."""
    theirs = {"total_ms": 93.41857807595295, "memory_gb": 0.715653120, "loss": 3.475358}
    m, picks = default_evaluations.metrics, answers(default_problem, default_evaluations)
    shapes = default_problem.architectures(default_evaluations.genotypes)
    for label, share, dense, gain, shape in (
        ("equal memory", 1, False, 0.073, (12, 1280, 8, 2, 640, 20)),
        ("equal memory, dense", 1, True, 0.023, None),
        ("twice the memory", 2, False, 0.214, None),
    ):
        fits = (m["total_ms"] <= theirs["total_ms"]) & (m["memory_gb"] <= share * theirs["memory_gb"])
        fits &= (shapes.n_experts == 1) | (not dense)
        found = next(p.answer for p in picks if p.question.label == f"Qwen2.5-0.5B, no LM head, {label}")
        assert found is not None
        assert found.metrics["loss"][0] == m["loss"][fits].min()
        assert 1 - math.exp(found.metrics["loss"][0] - theirs["loss"]) == pytest.approx(gain, abs=5e-4)
        assert shape in (None, shape_of(default_problem, found))


def shape_of(problem: Problem, found: Evaluations) -> tuple[int, ...]:
    """depth, width, E, K, m, n_kv of one row."""
    a = problem.architectures(found.genotypes)
    return tuple(int(c[0]) for c in (a.depth, a.width, a.n_experts, a.top_k, a.expert_size, a.n_kv_heads))


def test_the_pick_at_the_baselines_time_is_the_model_pages(
    default_problem: Problem, default_evaluations: Evaluations
) -> None:
    picks = {pick.question.label: pick for pick in answers(default_problem, default_evaluations)}
    alone, headed = (picks[f"Qwen2.5-0.5B, {which}"].question for which in ("no LM head", "LM head of 151,936"))
    assert alone.budget is not None
    assert headed.budget is not None
    assert alone.budget.limit == pytest.approx(93.42, abs=5e-3)
    assert headed.budget.limit == pytest.approx(116.06, abs=5e-3)
    found = picks[alone.label].answer
    assert found is not None
    assert shape_of(default_problem, found) == (16, 2048, 16, 1, 1024, 4)
    assert 1 - math.exp(found.metrics["loss"][0] - 3.475358) == pytest.approx(0.273, abs=5e-4)
    found = picks[headed.label].answer
    assert found is not None
    assert 1 - math.exp(found.metrics["loss"][0] - 3.475358) == pytest.approx(0.234, abs=5e-4)
    headed_problem = default_problem.with_vocabulary(151_936)
    alone_ms, headed_ms = (
        p.evaluate(found.genotypes).metrics["total_ms"][0] for p in (default_problem, headed_problem)
    )
    assert found.metrics["total_ms"][0] == headed_ms > alone_ms


def test_another_vocabulary_changes_metrics_and_no_loss(
    problem_of: Callable[..., Problem], evaluated: Callable[[Problem], Evaluations]
) -> None:
    problem = problem_of()
    found = evaluated(problem)
    for pick in answers(problem, found):
        question = pick.question
        variant = problem.with_vocabulary(question.vocabulary)
        expected = evaluated(variant)
        row = PickRule.for_query(question).row(expected)
        assert (pick.answer is None) == (row is None)
        if pick.answer is not None and row is not None:
            assert pick.answer.metrics["total_ms"][0] == expected.metrics["total_ms"][row]


def test_a_users_function_is_not_called_again_to_answer(
    problem_of: Callable[..., Problem], user_module: Callable[[str], str]
) -> None:
    name = user_module(
        "import numpy as np\nCALLS = []\ndef fn(a):\n    CALLS.append(len(a))\n    return np.asarray(a.depth, dtype=float)\n"
    )
    problem = problem_of(objectives=["loss", f"{name}:fn"])
    found = problem.evaluate(problem.space.genotypes(np.arange(100)))
    calls = __import__(name).CALLS
    assert sum(calls) == 100
    answers(problem, found)
    assert sum(calls) == 100, "answering a question evaluated architectures again"
