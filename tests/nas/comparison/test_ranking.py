"""What results show: ranks over studies on the way, whose values are carried forward, which of a pair leads."""

from dataclasses import replace

import numpy as np

from nas.comparison.anytime import MEASURES, TARGETS, Measured
from nas.comparison.ranking import course, rankings
from nas.comparison.reference import exact_reference
from nas.comparison.result import StudyResult, pairs
from nas.comparison.tables import anytime_table, rank_table
from nas.problem.objective import Objective


def of_study(number: int, medians: dict[str, list[float]], held: dict[str, int]) -> StudyResult:
    """A study in which every run of a strategy has the given gaps after 50, 100 and 200 designs."""
    counts = np.array([50, 100, 200])
    reference = exact_reference((Objective("loss"),), np.array([[1.0], [1.0]]), np.arange(2))
    runs = tuple(
        Measured(
            name, f"s{seed}", seed, "" if held[name] >= 200 else "capped", held[name],
            {measure: np.array(gaps) for measure in MEASURES}, np.full(len(TARGETS), np.nan), None, np.zeros((0, 1)), None, None, None,
        )
        for name, gaps in medians.items()
        for seed in range(3)
    )  # fmt: skip
    return StudyResult(f"s{number}", "", "", (Objective("loss"),), reference, counts, np.zeros(0), runs, {}, {})


def test_ranks_on_the_way_say_who_leads_when_and_who_had_ended() -> None:
    medians = {"slow": [0.1, 0.1, 0.1], "steady": [0.3, 0.2, 0.01], "random": [0.5, 0.4, 0.3]}
    held = {"slow": 60, "steady": 200, "random": 200}
    results = [of_study(i, medians, held) for i in range(10)]
    stages = course(results, "")
    assert [stage.evaluations for stage in stages] == [50, 100, 200]
    assert [stage.ordered()[0][0] for stage in stages] == ["slow", "slow", "steady"]
    assert [stage.ended for stage in stages] == [frozenset(), {"slow"}, {"slow"}]
    assert rank_table(stages).rows == (
        ("steady", "2.00", "2.00", "1.00"), ("slow", "1.00", "1.00 *", "2.00 *"), ("random", "3.00", "3.00", "3.00"),
    )  # fmt: skip
    assert anytime_table(results[0]).rows[1] == ("slow", "10 %", "10 % *", "10 % *")
    assert rankings(results)[0].ordered() == stages[-1].ordered()
    assert [row["ended"] for row in stages[1].rows()] == [True, False, False]


def test_a_pair_is_led_by_whom_its_test_speaks_for() -> None:
    """Better on 14 of 15 seeds by a little, and on one worse by far: A12, which knows no seeds, says otherwise."""
    second = np.arange(15.0)
    first = np.where(second == 0, 100.0, second - 0.01)
    runs = tuple(
        Measured(name, f"s{seed}", seed, "", 50, dict.fromkeys(MEASURES, np.array([gap])), np.full(len(TARGETS), np.nan), None, np.zeros((0, 1)), None, None, None)
        for name, gaps in (("first", first), ("second", second))
        for seed, gap in enumerate(gaps)
    )  # fmt: skip
    empty = of_study(0, {}, {})
    (pair,) = pairs(replace(empty, runs=runs, counts=np.array([50])), "gap")
    assert pair.a12 < 0.5
    assert pair.p_holm < 0.05
    assert pair.better == "first"
