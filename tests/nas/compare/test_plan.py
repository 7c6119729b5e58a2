"""What a comparison is asked for: files, flags, studies, variants; who takes part and who is left out."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nas.compare import configuration as plan_module
from nas.compare.configuration import Plan, comparison_studies, competing, parameters_by_strategy, planned
from nas.errors import UsageError
from nas.search.discovery import strategy_module
from nas.study import entry_points
from objectives.plugins import documents, importable

PlanOf = Callable[..., Plan]


def test_cells_are_studies_by_seeds_by_strategies_with_the_baselines(plan_of: PlanOf) -> None:
    plan = plan_of()
    assert plan.strategies == ("nsga2", "sobol", "random", "lhs")
    cells = list(plan.cells(Path("x")))
    assert len(cells) == 2 * 3 * 4
    assert len({cell.folder for cell in cells}) == len(cells)
    assert cells[0].folder == Path("x/cells/loose/nsga2/s0")
    assert cells[0].setup.parameters.model_dump()["population"] == 10
    study = cells[0].setup
    assert (study.limit, study.config.seed, study.config.name) == (40, 0, "loose")


def test_baselines_can_be_refused(plan_of: PlanOf) -> None:
    assert plan_of({"baselines": False}).strategies == ("nsga2", "sobol")


def test_all_is_every_strategy_that_searches_without_knowing_formulas(plan_of: PlanOf) -> None:
    names = plan_of({"algos": "all"}).strategies
    assert set(names) == set(importable("nas.strategies")) - {"exact"}
    assert set(competing()) == set(names)


def test_a_missing_package_is_skipped_by_name(plan_of: PlanOf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entry_points, "read", lambda: entry_points.Read((), ()))
    plan = plan_of({"algos": "prior_guided,nsga2"})
    assert "pip install ./plugins/prior" in plan.skipped["loose", "prior_guided"]


def test_a_cap_ends_a_run_early(plan_of: PlanOf) -> None:
    cell = next(plan_of({"algos": "optuna_tpe", "evaluations": 3000}).cells(Path("x")))
    assert (cell.limit, cell.cap) == (2000, 2000)


def test_a_schedule_with_a_horizon_has_a_folder_per_limit(plan_of: PlanOf, monkeypatch: pytest.MonkeyPatch) -> None:
    module = strategy_module("sobol")
    monkeypatch.setattr(module, "TRAITS", type(module.TRAITS)(horizon=True))
    places = [c.folder.name for c in plan_of().cells(Path("x")) if c.strategy == "sobol" and c.study == "loose"]
    assert places == ["s0-of-40", "s1-of-40", "s2-of-40"]


def test_a_variant_is_a_strategy_with_parameters_of_its_own(plan_of: PlanOf) -> None:
    plan = plan_of(variants={"few": "nsga2"}, params={"few": {"population": 4}}, algos=["nsga2", "few"])
    cell = next(cell for cell in plan.cells(Path("x")) if cell.strategy == "few")
    assert cell.setup.config.algo == "nsga2"
    assert cell.setup.parameters.model_dump()["population"] == 4


def test_the_folder_holds_the_same_plan(plan_of: PlanOf, tmp_path: Path) -> None:
    plan = plan_of(variants={"few": "nsga2"}, algos=["few"])
    plan.write(tmp_path)
    again = planned(comparison_studies({}, {}, [], str(tmp_path), None))
    assert again.content() == plan.content()
    assert list(again.cells(tmp_path)) == list(plan.cells(tmp_path))


def test_a_missing_extra_is_skipped_by_name(plan_of: PlanOf, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(algo: str) -> Any:
        if algo == "sobol":
            raise UsageError(
                "expected the package torch for sobol, got none installed; pip install 'plas-codesign[gp]'"
            )
        return strategy_module(algo)

    monkeypatch.setattr(plan_module, "strategy_module", missing)
    plan = plan_of()
    assert {cell.strategy for cell in plan.cells(Path("x"))} == {"nsga2", "random", "lhs"}
    assert "plas-codesign[gp]" in plan.skipped["loose", "sobol"]


def test_a_strategy_that_cannot_take_a_study_is_skipped_there(plan_of: PlanOf, monkeypatch: pytest.MonkeyPatch) -> None:
    module = strategy_module("sobol")
    monkeypatch.setattr(module, "TRAITS", type(module.TRAITS)(objectives=2))
    plan = plan_of(studies={"two": {}, "three": {"objectives": ["loss", "total_ms", "memory_gb"]}})
    assert list(plan.skipped) == [("three", "sobol")]
    assert "at most 2 with sobol" in plan.skipped["three", "sobol"]


def test_given_designs_leave_out_those_that_cannot_start_from_them(plan_of: PlanOf, tmp_path: Path) -> None:
    (tmp_path / "start.csv").write_text(
        "depth,width,n_experts,top_k,expert_ffn_ratio,n_kv_heads\n8,768,1,1,1,2\n", encoding="utf-8"
    )
    plan = plan_of(studies={"given": {"seed_from": "start.csv"}})
    assert {cell.strategy for cell in plan.cells(Path("x"))} == {"nsga2"}
    assert "starts from given designs" in plan.skipped["given", "random"]
    assert len(next(plan.cells(Path("x"))).setup.start) == 1


def test_studies_are_chosen_added_and_grouped(plan_of: PlanOf) -> None:
    plan = plan_of(names=["tight", "robot_int8"], studies={"tight": {"group": "hard"}, "loose": None})
    assert list(plan.studies) == ["tight", "robot_int8"]
    assert plan.groups == {"tight": "hard", "robot_int8": ""}


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"algos": ["nsga"]}, "did you mean nsga2"),
        ({"algos": ["exact"]}, "expected strategies that search, got exact"),
        ({"algoss": ["nsga2"]}, "small.yaml:.*unknown key"),
        ({"seeds": 0}, "small.yaml:.*seeds"),
        ({"params": {"nsga2": {"popsize": 4}}}, "params.nsga2.popsize: unknown key"),
        ({"params": {"nsgaii": {}}}, "did you mean nsga2|params: expected a strategy"),
        ({"caps": {"nsgaii": 5}}, "caps: expected a strategy .*did you mean nsga"),
        ({"caps": {"nsga2": 0}}, "small.yaml:.*caps.nsga2"),
        ({"variants": {"few": "nothing"}}, "variants.few: expected a strategy"),
        ({"studies": {"odd": {"budgets": {"total_s": 1}}}}, r"small.yaml:\d+: budgets.total_s"),
        ({"studies": {"odd": {"group": 3}}}, "studies.odd.group"),
        ({"studies": {"..": {}}}, "expected up to 60 letters"),
        ({"variants": {"..": "nsga2"}}, "expected up to 60 letters"),
        ({"studies": {"odd": {"device": "orin"}}}, "device"),
    ],
)
def test_faults_are_named(plan_of: PlanOf, keys: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        plan_of(**keys)


def test_a_slow_strategy_stops_at_its_own_cap_or_a_lower_one(plan_of: PlanOf) -> None:
    caps = {"optuna_tpe": 7, "nsga2": 5000}
    plan = plan_of(algos=["nsga2", "optuna_tpe", "sobol"], caps=caps, evaluations=40)
    limits = {cell.strategy: (cell.limit, cell.cap) for cell in plan.cells(Path("x"))}
    assert limits == {
        "nsga2": (40, 5000),
        "optuna_tpe": (7, 7),
        "sobol": (40, None),
        "random": (40, None),
        "lhs": (40, None),
    }
    assert next(cell.cap for cell in plan_of(algos=["optuna_tpe"], caps={"optuna_tpe": 9999}).cells(Path("x"))) == 2000
    assert plan.content()["caps"] == caps


def test_two_studies_of_one_name_are_refused(plan_of: PlanOf) -> None:
    with pytest.raises(UsageError, match="robot_int8 twice"):
        plan_of(names=["robot_int8", "robot_int8"])


def test_parameters_belong_to_a_strategy() -> None:
    assert parameters_by_strategy(["nsga2.population=50", "nsga2.mutation=0.5"]) == {
        "nsga2": {"population": 50, "mutation": 0.5}
    }
    with pytest.raises(UsageError, match=r"nsga2\.population"):
        parameters_by_strategy(["population=50"])


@pytest.mark.slow
@pytest.mark.parametrize(("name", "together", "seeds"), [("compare_paper", 12, 15), ("compare_hard", 0, 10)])
def test_the_shipped_comparisons_hold(name: str, together: int, seeds: int) -> None:
    plan = planned(comparison_studies({}, {}, [], name, None))
    assert sum(group == "" for group in plan.groups.values()) == together
    assert plan.config.seeds == seeds


def test_no_other_comparison_is_shipped() -> None:
    assert [name for name in documents("configs") if name.startswith("compare")] == ["compare_hard", "compare_paper"]


@pytest.mark.slow
def test_the_shipped_comparison_can_be_copied_and_edited(inside: Callable[..., Any], tmp_path: Path) -> None:
    answer = inside("init", "mine.yaml", "--from", "compare_paper")
    assert (answer.code, "python -m nas.compare --config mine.yaml" in answer.err) == (0, True)
    assert len(planned(comparison_studies({}, {}, [], str(tmp_path / "mine.yaml"), None)).studies) >= 12
