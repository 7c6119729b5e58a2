"""What results show: ranks over studies on the way, whose values are carried forward, which of a pair leads."""

from dataclasses import replace

import numpy as np
import pytest

from nas.compare.anytime import MEASURES, TARGETS, Measured
from nas.compare.pictures import anytime_figure, strokes
from nas.compare.reference import exact_reference
from nas.compare.report import MANY, comparison_document, seeds_too_few, sentences, study_data
from nas.compare.result import NONE_SHOWN, StudyResult, course, pairs, rankings, same_starts
from nas.compare.tables import anytime_rows, anytime_table, rank_table
from nas.document.document import Table
from nas.problem.objective import Objective


def study_result(
    number: int, medians: dict[str, list[float]], held: dict[str, int], starts: dict[str, int] | None = None
) -> StudyResult:
    """A study in which every run of a strategy has the given gaps after 50, 100 and 200 designs; equal `starts` begin alike."""
    starts = starts or {}
    counts = np.array([50, 100, 200])
    reference = exact_reference((Objective("loss"),), np.array([[1.0], [1.0]]), np.arange(2))
    runs = tuple(
        Measured(
            name, f"s{seed}", seed, "" if held[name] >= 200 else "capped", held[name],
            {measure: np.array(gaps) for measure in MEASURES}, np.full(len(TARGETS), np.nan), np.zeros((0, 1)), np.arange(held[name]) + 1000 * seed + starts.get(name, 10_000 * i), None, None, None,
        )
        for i, (name, gaps) in enumerate(medians.items())
        for seed in range(3)
    )  # fmt: skip
    return StudyResult(f"s{number}", "", "", (Objective("loss"),), reference, counts, runs, {}, {})


def test_ranks_on_the_way_say_who_leads_when_and_who_had_ended() -> None:
    medians = {"slow": [0.1, 0.1, 0.1], "steady": [0.3, 0.2, 0.01], "random": [0.5, 0.4, 0.3]}
    held = {"slow": 60, "steady": 200, "random": 200}
    results = [study_result(i, medians, held) for i in range(10)]
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


def test_many_studies_are_folded_below_a_sentence_on_each() -> None:
    medians, held = {"slow": [0.1, 0.1, 0.1], "random": [0.5, 0.4, 0.3]}, {"slow": 200, "random": 200}

    def titles(studies: int) -> list[tuple[str, bool]]:
        results = [study_result(i, medians, held) for i in range(studies)]
        document = comparison_document("all", results, rankings(results), {}, pictures=False)
        explained = [
            part.notes for s in document.sections for part in s.parts if isinstance(part, Table) and part.notes
        ]
        assert len(explained) == 1
        return [(section.title, section.folded) for section in document.sections]

    assert titles(1) == [("s0", False), ("s0 on the way", True)]
    assert titles(MANY)[-1] == ("Over the studies", False)
    folded = [(f"s{i}", True) for i in range(MANY + 1)]
    assert titles(MANY + 1) == [("In short", False), ("Over the studies", False), *folded]


def test_a_pair_is_led_by_whom_its_test_speaks_for() -> None:
    """Better on 14 of 15 seeds by a little, and on one worse by far: A12, which knows no seeds, says otherwise."""
    second = np.arange(15.0)
    first = np.where(second == 0, 100.0, second - 0.01)
    runs = tuple(
        Measured(name, f"s{seed}", seed, "", 50, dict.fromkeys(MEASURES, np.array([gap])), np.full(len(TARGETS), np.nan), np.zeros((0, 1)), np.arange(20) + 100 * seed, None, None, None)
        for name, gaps in (("first", first), ("second", second))
        for seed, gap in enumerate(gaps)
    )  # fmt: skip
    empty = study_result(0, {}, {})
    (pair,) = pairs(replace(empty, runs=runs, counts=np.array([50])), "gap")
    assert pair.a12 < 0.5
    assert pair.p_holm < 0.05
    assert pair.better == "first"


def of_samples(
    seeds: int, samples: dict[str, np.ndarray], together: frozenset[str], *, each_seed: bool = True
) -> StudyResult:
    """A study whose runs have these gaps; the strategies `together` begin with the same 20 of 50 designs, others of their own."""
    own = {name: 0 if name in together else 10_000 * (i + 1) for i, name in enumerate(samples)}
    runs = tuple(
        Measured(
            name, f"s{seed}", seed, "", 50, dict.fromkeys(MEASURES, np.array([gap])), np.full(len(TARGETS), np.nan), np.zeros((0, 1)),
            np.concatenate([np.arange(20) + own[name] + 100 * seed * each_seed, 900_000 + 1000 * i + np.arange(30)]), None, None, None,
        )
        for i, (name, gaps) in enumerate(samples.items())
        for seed, gap in enumerate(gaps[:seeds])
    )  # fmt: skip
    return replace(study_result(0, {}, {}), runs=runs, counts=np.array([50]))


def separated(strategies: int) -> dict[str, np.ndarray]:
    """Gaps of strategies none of which overlaps another's, in no order of seeds."""
    draw = np.random.default_rng(1)
    return {chr(97 + i): i + 1 + draw.permutation(20) / 100 for i in range(strategies)}


def test_separated_samples_of_independent_runs_are_shown_to_differ() -> None:
    """Eight seeds of six strategies, every pair completely separated: 2 of 12,870 divisions, times 15."""
    found = pairs(of_samples(8, separated(6), frozenset()), "gap")
    assert {pair.test for pair in found} == {"Mann-Whitney"}
    assert [pair.p_holm for pair in found] == pytest.approx([15 * 2 / 12870] * 15)
    assert [pair.better for pair in found] == [pair.first for pair in found]
    assert {pair.a12 for pair in found} == {1.0}


@pytest.mark.parametrize(("strategies", "least"), [(2, 4), (4, 5)])
def test_too_few_seeds_are_named_before_the_runs_by_the_number_that_the_tests_need(strategies: int, least: int) -> None:
    said = f"{least - 1} seeds cannot show a difference between any two of {strategies} strategies: --seeds {least} or more can"
    assert seeds_too_few(strategies, least - 1) == [said]
    assert seeds_too_few(strategies, least) == seeds_too_few(1, 1) == []
    few, enough = (sentences(of_samples(seeds, separated(strategies), frozenset())) for seeds in (least - 1, least))
    assert any("cannot show" in line for line in few)
    assert not any("cannot show" in line for line in enough)


def test_strategies_that_begin_alike_are_tested_on_pairs_of_seeds_and_named() -> None:
    result = of_samples(8, separated(6), frozenset({"b", "d"}))
    tests = {(pair.first, pair.second): (pair.test, pair.shared_start) for pair in pairs(result, "gap")}
    assert tests.pop(("b", "d")) == ("Wilcoxon", 20)
    assert set(tests.values()) == {("Mann-Whitney", 0)}
    assert same_starts(result) == [(["b", "d"], 20)]
    said = sentences(result)
    assert (
        "A seed gives b, d the same first 20 designs: level until then, and tested on pairs of seeds (Wilcoxon)."
        in said
    )
    assert (
        "8 seeds cannot show a difference between any two of 6 strategies (15 pairs) that begin with the same designs: at least 10 are needed."
        in said
    )
    assert [result.level(name, 20) for name in ("b", "c")] == [True, False]
    assert not result.level("b", 21)


def shared_luck(size: float) -> dict[str, np.ndarray]:
    """Gaps of two strategies to which a seed's first designs give the same luck, ten times as large as the difference between them."""
    draw = np.random.default_rng(5)
    luck = 10 * draw.normal(size=15)
    return {"a": luck + 0.3 * draw.normal(size=15), "b": luck + size + 0.3 * draw.normal(size=15)}


def test_a_shared_start_gains_power_by_pairs() -> None:
    """A difference that pairs of seeds show and independent samples would not; without one neither shows it."""
    (pair,) = pairs(of_samples(15, shared_luck(1.0), frozenset({"a", "b"})), "gap")
    assert (pair.test, pair.better) == ("Wilcoxon", "a")
    (pair,) = pairs(of_samples(15, shared_luck(1.0), frozenset()), "gap")
    assert (pair.test, pair.better) == ("Mann-Whitney", NONE_SHOWN)
    (pair,) = pairs(of_samples(15, shared_luck(0.0), frozenset({"a", "b"})), "gap")
    assert (pair.test, pair.better) == ("Wilcoxon", NONE_SHOWN)


def test_runs_of_other_tools_are_paired_by_name_where_they_begin_alike() -> None:
    def unseeded(together: frozenset[str]) -> StudyResult:
        seeded = of_samples(15, shared_luck(1.0), together)
        return replace(seeded, runs=tuple(replace(run, seed=None) for run in seeded.runs))

    (pair,) = pairs(unseeded(frozenset({"a", "b"})), "gap")
    assert (pair.test, pair.shared_start, pair.better) == ("Wilcoxon", 20, "a")
    assert any(
        line.startswith("Runs of one name of a, b have the same first 20 designs")
        for line in sentences(unseeded(frozenset({"a", "b"})))
    )
    (pair,) = pairs(unseeded(frozenset()), "gap")
    assert (pair.test, pair.shared_start) == ("Mann-Whitney", 0)


def test_where_the_same_designs_end_is_in_pictures_page_and_rows() -> None:
    result = replace(of_samples(15, separated(3), frozenset({"a", "c"})), counts=np.array([10, 20, 25, 50]))
    result = replace(
        result,
        runs=tuple(
            replace(run, values=dict.fromkeys(MEASURES, np.full(4, run.values["gap"][0]))) for run in result.runs
        ),
    )
    figure = anytime_figure(result, strokes(result.strategies))
    for ax in figure.axes:
        assert [list(line.get_xdata()) for line in ax.lines if line.get_linestyle() == ":"] == [[20, 20]]
    assert [text.get_text() for text in figure.axes[1].texts] == ["a and c: the same until here"]
    assert study_data(result)["alike"] == [{"said": "a and c: the same until here", "count": 20}]
    marked = {(row["strategy"], row["evaluations"]) for row in anytime_rows([result]) if row["level"]}
    assert marked == {(name, count) for name in ("a", "c") for count in (10, 20)}
    alone = replace(of_samples(15, separated(3), frozenset()), counts=np.array([50]))
    assert study_data(alone)["alike"] == []


def test_a_start_that_is_the_same_for_every_seed_pairs_nothing() -> None:
    """Given designs are what all runs begin with: they say nothing of one seed."""
    result = of_samples(8, separated(3), frozenset({"a", "b"}), each_seed=False)
    assert {pair.test for pair in pairs(result, "gap")} == {"Mann-Whitney"}
    assert same_starts(result) == [(["a", "b"], 20)]
    assert "A seed gives a, b the same first 20 designs: level until then." in sentences(result)


@pytest.mark.parametrize(("strategies", "needed"), [(2, 4), (5, 6), (16, 8)])
def test_the_seeds_that_are_said_to_be_needed_are_enough_and_one_fewer_is_not(strategies: int, needed: int) -> None:
    enough = of_samples(needed, separated(strategies), frozenset())
    assert not any("cannot show" in line for line in sentences(enough))
    assert all(pair.better == pair.first for pair in pairs(enough, "gap"))
    fewer = of_samples(needed - 1, separated(strategies), frozenset())
    assert any(f"at least {needed} are needed" in line for line in sentences(fewer))
    assert all(pair.better == NONE_SHOWN for pair in pairs(fewer, "gap"))


def test_ranks_of_strategies_that_evaluated_the_same_are_marked() -> None:
    medians = {"a": [0.3, 0.2, 0.01], "b": [0.3, 0.2, 0.02], "random": [0.5, 0.4, 0.3]}
    held = {"a": 100, "b": 100, "random": 200}
    stages = course([study_result(i, medians, held, {"a": 0, "b": 0}) for i in range(10)], "")
    assert [sorted(stage.level) for stage in stages] == [["a", "b"], ["a", "b"], []]
    table = rank_table(stages)
    assert table.rows[0] == ("a", "1.50 =", "1.50 =", "1.00 *")
    assert table.title.endswith("(* ended before; = the same designs as another)")
    assert [row["level"] for row in stages[0].rows()] == [True, True, False]
