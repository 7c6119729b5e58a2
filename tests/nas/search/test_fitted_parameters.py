"""Parameters that follow from the evaluations asked for: what is given wins, what is recorded stays, and a comparison knows."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nas.compare.configuration import comparison_studies, planned
from nas.files import yaml_source
from nas.problem.problem import Problem
from nas.search.assembly import Study, assemble
from nas.search.discovery import strategy_module
from nas.search.strategy import StrategyContext
from nas.study.layers import layered

BRED = ["nsga2", "nsga3", "spea2", "smsemoa", "rvea", "moead", "optuna_nsga2", "optuna_nsga3"]


def study(algo: str, evaluations: int | None = None, *params: str) -> Study:
    """The default study with a strategy."""
    keys = {"algo": algo, "params": list(params)} | ({"evaluations": evaluations} if evaluations else {})
    return assemble(*layered(keys, [], None))


def population(of: Study) -> int:
    """The population that a study's strategy is built with."""
    return int(of.parameters.model_dump()["population"])


@pytest.mark.parametrize("algo", BRED)
def test_a_population_fits_the_evaluations_and_one_that_is_given_wins(algo: str) -> None:
    assert [population(study(algo, n)) for n in (10, 300, 500, 1000, 2000)] == [16, 16, 25, 50, 100]
    assert population(study(algo).asking(500, seed=1)) == 25
    fine = assemble({"algo": algo, "space": "fine", "evaluations": 2000}, {})
    assert population(fine) == 40
    given = study(algo, 300, "population=100")
    assert given.parameters == strategy_module(algo).Parameters()
    assert study(algo).parameters == study(algo, 5000).parameters == strategy_module(algo).Parameters()


def test_short_searches_of_nsga2_take_larger_steps_and_smaller_broods() -> None:
    def varied(*given: Any) -> tuple[float, int]:
        parameters = study("nsga2", *given).parameters.model_dump()
        return parameters["mutation_eta"], parameters["offspring"]

    assert [varied(n) for n in (300, 500, 1000)] == [(3, 16), (3, 20), (5, 20)]
    assert varied(300, "mutation_eta=9", "offspring=10") == (9, 10)
    assert varied(300, "population=16") == (5, 20)


def test_optuna_tpe_sees_categories_where_evaluations_are_many_and_designs_few() -> None:
    def chosen(*given: Any, space: str = "paper") -> dict[str, Any]:
        keys = {"algo": "optuna_tpe", "space": space, "evaluations": given[0], "params": list(given[1:])}
        return assemble(*layered(keys, [], None)).parameters.model_dump()

    def encoding(*given: Any, space: str = "paper") -> str:
        return str(chosen(*given, space=space)["encoding"])

    assert [encoding(n) for n in (100, 299, 300, 1000)] == ["integers", "integers", "categories", "categories"]
    assert encoding(1000, space="fine") == "integers"
    assert encoding(1000, "encoding=integers") == "integers"
    assert encoding(100, "encoding=categories") == "categories"
    assert study("optuna_tpe").parameters.model_dump()["encoding"] == "categories"
    assert [chosen(n)["repeats"] for n in (299, 300)] == ["redraw", "neighbour"]
    assert chosen(300, "repeats=redraw")["repeats"] == "redraw"


@pytest.mark.parametrize("algo", ["nsga3", "rvea", "moead", "optuna_nsga3"])
def test_divisions_that_are_given_have_their_population(algo: str) -> None:
    given = study(algo, 300, "divisions=90")
    assert population(given) == 100
    given.strategy()


def test_a_run_keeps_the_population_that_it_began_with(inside: Callable[..., Any], tmp_path: Path) -> None:
    line = ("run", "--algo", "nsga2", "--set", "baselines=[]", "--out", "run")
    assert inside(*line, "--evaluations", 60).code == 0
    assert inside("run", "--resume", "run", "--evaluations", 90).code == 0
    params = yaml_source.read(tmp_path / "run" / "config.yaml")[0]["params"]
    assert params["population"] == 16
    given = [f"--param={name}={value}" for name, value in params.items()]
    assert inside(*line[:-1], "whole", *given, "--evaluations", 90).code == 0
    assert (tmp_path / "run" / "frontier.csv").read_bytes() == (tmp_path / "whole" / "frontier.csv").read_bytes()


def test_a_run_of_a_release_that_had_one_population_goes_on_with_it(inside: Callable[..., Any], tmp_path: Path) -> None:
    """Its folder records all parameters, as one with every parameter given does."""
    given = [f"--param={name}={value}" for name, value in strategy_module("nsga2").Parameters().model_dump().items()]
    line = ("run", "--algo", "nsga2", "--set", "baselines=[]", "--out", "old", *given)
    assert inside(*line, "--evaluations", 110).code == 0
    assert inside("run", "--resume", "old", "--evaluations", 130).code == 0
    assert yaml_source.read(tmp_path / "old" / "config.yaml")[0]["params"]["population"] == 100


@pytest.mark.parametrize(
    ("algo", "kept"), [("nsga2", "population, offspring"), ("spea2", "population"), ("random", "")]
)
def test_an_extended_run_says_what_a_longer_one_would_have_had(
    algo: str, kept: str, inside: Callable[..., Any]
) -> None:
    line = ("run", "--algo", algo, "--set", "baselines=[]", "--no-plots", "--out", "run")
    assert inside(*line, "--evaluations", 300).code == 0
    said = inside("run", "--resume", "run", "--evaluations", 400, "--no-plots").err
    assert (f"{algo} was laid out for 300 evaluations and stays so ({kept}" in said) == bool(kept)


def test_where_few_are_feasible_nsga2_keeps_few_and_takes_larger_steps_until_more_are() -> None:
    rare = assemble({"algo": "nsga2", "budgets": {"loss": 3.2, "total_ms": 200}}, {}).problem
    usual = assemble({"algo": "nsga2"}, {}).problem

    def kept(problem: Problem, **params: float) -> list[int]:
        module = strategy_module("nsga2")
        none = problem.space.genotypes(np.zeros(0, dtype=np.int64))
        strategy = module.build(StrategyContext(problem, 0, none, 1000), module.Parameters(population=50, **params))
        sizes = []
        for _ in range(40):
            strategy.tell(problem.evaluate(strategy.ask(problem.space.size)))
            sizes.append(len(strategy.kept))
        return sizes

    assert kept(usual) == kept(rare, rare=0) == [50] * 40
    few = kept(rare)
    assert few[0] == 20
    assert few[-1] == 50
    assert few == sorted(few)


@pytest.mark.parametrize("algo", ["nsga2", "nsga3", "spea2", "smsemoa", "rvea", "moead"])
def test_steps_that_are_given_or_recorded_hold_throughout(algo: str) -> None:
    usual = study(algo, 300).resolved()["params"]
    assert usual["rare"] == 0.2
    assert "rare" not in study(algo, 300, "mutation_eta=9").resolved()["params"]
    assert study(algo, 300, "mutation_eta=9", "rare=0.1").parameters.model_dump()["rare"] == 0.1
    again = assemble({"algo": algo, "evaluations": 900, "params": usual}, {})
    assert again.resolved()["params"] == usual
    older = {name: value for name, value in usual.items() if name not in ("rare", "as_results")}  # of a release before
    assert assemble({"algo": algo, "evaluations": 900, "params": older}, {}).resolved()["params"] == older


@pytest.mark.parametrize("algo", ["nsga3", "spea2", "smsemoa", "rvea"])
def test_the_family_keeps_few_where_few_are_feasible(algo: str) -> None:
    problem = assemble({"algo": algo, "budgets": {"loss": 3.2, "total_ms": 200}}, {}).problem
    none = problem.space.genotypes(np.zeros(0, dtype=np.int64))
    module, sizes = strategy_module(algo), []
    for rare in (0.0, 0.2):
        strategy = module.build(StrategyContext(problem, 0, none, 1000), module.Parameters(population=50, rare=rare))
        for _ in range(2):
            strategy.tell(problem.evaluate(strategy.ask(problem.space.size)))
        sizes.append(len(strategy.algorithm.pop))
    assert sizes == [50, 20]


def test_a_comparison_of_other_lengths_has_other_runs_where_parameters_differ(
    comparison_of: Callable[[dict[str, Any]], str],
) -> None:
    def places(evaluations: int, **params: Any) -> list[str]:
        keys = {"algos": ["nsga2"], "baselines": False, "seeds": 1, "evaluations": evaluations, "params": params}
        plan = planned(comparison_studies({}, {}, [], comparison_of(keys), None))
        return [cell.folder.name for cell in plan.cells(Path("x"))]

    assert places(300) == ["s0-of-300"]
    assert places(5000) == places(9000) == places(300, nsga2={"population": 100}) == ["s0"]


@pytest.fixture
def comparison_of(tmp_path: Path) -> Callable[[dict[str, Any]], str]:
    """A comparison of the default study in a file."""

    def write(keys: dict[str, Any]) -> str:
        path = tmp_path / "comparison.yaml"
        path.write_text(yaml_source.dump({"studies": {"paper": {}}, **keys}), encoding="utf-8")
        return str(path)

    return write
