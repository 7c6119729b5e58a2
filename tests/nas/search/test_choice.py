"""auto: which strategy it picks, what it says of it, and that what it picked is what a run records."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import nas
from nas.files import yaml_source
from nas.search.assembly import assemble, study_of
from nas.search.discovery import strategy_module
from nas.search.reading import Asked, read
from nas.strategies._auto import RULES, Facts, facts_of
from nas.study import entry_points

OWN = '''"""A board of our own."""


def with_prior(a):
    return 1.0 * a.depth * a.width


def without(a):
    return 1.0 * a.depth * a.width


with_prior.PRIOR = "total_ms"
'''
FORMULAS = Facts(formulas=True, bound="", designs=13_120, objectives=2, asked=None)
PRIOR = replace(FORMULAS, formulas=False, priors=(("board:ms", "total_ms"),))
ALONE = replace(FORMULAS, formulas=False)
COMMON = {"default_budget": "none", "baselines": [], "applications": {}}


def picked(facts: Facts) -> tuple[str, dict[str, Any]]:
    """What the table takes."""
    rule = next(rule for rule in RULES if rule.holds(facts))
    assert rule.because(facts)
    return rule.algo, dict(rule.parameters(facts))


@pytest.mark.parametrize(
    ("facts", "algo", "parameters"),
    [
        (FORMULAS, "exact", {}),
        (replace(FORMULAS, designs=10**12, objectives=4, asked=50), "exact", {}),
        (replace(FORMULAS, designs=10**12, objectives=5), "local_search", {}),
        (replace(FORMULAS, objectives=10), "exact", {}),
        (replace(FORMULAS, bound="seed_from is given", asked=500), "local_search", {}),
        (replace(ALONE, designs=400, asked=400), "exact", {}),
        (replace(ALONE, designs=400, asked=399), "local_search", {}),
        (replace(PRIOR, designs=400, asked=400, bound="asynchronous is asked", priors=()), "local_search", {}),
        (PRIOR, "prior_guided", {}),
        (replace(PRIOR, asked=500, at_once=5), "prior_guided", {}),
        (replace(PRIOR, asked=500, at_once=8), "prior_guided", {"batch": 8}),
        (replace(PRIOR, asked=501), "local_search", {}),
        (replace(PRIOR, objectives=5), "local_search", {}),
        (replace(PRIOR, prior=False, at_once=4), "optuna_gp", {"batch": 4}),
        (replace(PRIOR, prior=False, gp=False), "optuna_tpe", {}),
        (replace(PRIOR, prior=False, asked=301), "local_search", {}),
        (ALONE, "local_search", {}),
        (replace(ALONE, costly=True), "optuna_gp", {}),
        (replace(ALONE, asked=150, at_once=4), "optuna_gp", {"batch": 4}),
        (replace(ALONE, asked=151, at_once=4), "optuna_tpe", {"batch": 4}),
        (replace(ALONE, asked=60, gp=False), "optuna_tpe", {}),
        (replace(ALONE, asked=301), "local_search", {}),
        (replace(ALONE, asked=60, objectives=5), "local_search", {}),
    ],
)
def test_the_table_takes(facts: Facts, algo: str, parameters: dict[str, Any]) -> None:
    assert picked(facts) == (algo, parameters)


def test_every_rule_is_taken_by_some_study_and_its_parameters_are_its_strategys() -> None:
    for rule in RULES:
        for at_once in (1, 64):
            parameters = rule.parameters(replace(ALONE, at_once=at_once))
            fields = (
                () if rule.algo in ("optuna_gp", "prior_guided") else strategy_module(rule.algo).Parameters.model_fields
            )
            assert set(parameters) <= {*fields, "batch"}
    taken = [
        next(i for i, rule in enumerate(RULES) if rule.holds(facts))
        for facts in (
            FORMULAS,
            replace(ALONE, designs=9, asked=9),
            PRIOR,
            replace(ALONE, asked=9),
            replace(ALONE, asked=200),
            ALONE,
        )
    ]
    assert taken == list(range(len(RULES)))


def test_what_is_not_installed_is_said() -> None:
    rule = next(rule for rule in RULES if rule.holds(replace(ALONE, asked=60, gp=False)))
    assert (
        rule.because(replace(ALONE, asked=60, gp=False)) == "60 evaluations are asked and the extra gp is not installed"
    )
    assert rule.because(replace(ALONE, asked=600, gp=False)) == "600 evaluations are asked without a prior"
    assert rule.because(replace(PRIOR, asked=600)) == "600 evaluations are asked, more than 500"
    for facts in (
        replace(PRIOR, asked=60, prior=False),
        replace(PRIOR, asked=60, prior=False, gp=False),
        replace(PRIOR, asked=60, prior=False, designs=10**12, costly=True),
    ):
        rule = next(rule for rule in RULES if rule.holds(facts))
        assert rule.because(facts) == "60 evaluations are asked and plas-prior is not installed"


def test_facts_are_what_the_study_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "board.py").write_text(OWN + "\n\nwithout.COST_S = 60.0\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    asked = {"algo": "random", **COMMON, "objectives": ["loss", "board:with_prior", "board:without"]}
    problem = study_of(read(asked, {}, frozenset(asked))).problem
    facts = facts_of(problem, Asked(None, 3))
    assert (facts.formulas, facts.priors, facts.costly, facts.at_once) == (
        False,
        (("board:with_prior", "total_ms"),),
        True,
        3,
    )
    assert facts.evaluations == 100
    assert facts_of(problem, Asked(7)).evaluations == 7
    large = study_of(read({**asked, "space": "fine"}, {}, frozenset(asked))).problem
    assert facts_of(large, Asked(None)).bound
    assert not facts_of(assemble({"algo": "random", "space": "fine"}, {}).problem, Asked(None)).bound


def test_where_evaluations_are_compared_nothing_is_solved() -> None:
    keys = read({"algo": "auto", **COMMON}, {})
    assert study_of(keys).config.algo == "exact"
    counted = study_of(keys, 500)
    assert counted.config.algo == "local_search"
    assert "evaluations are what is compared" in counted.config.auto


@pytest.mark.slow
@pytest.mark.parametrize("keys", [{"seed_from": "start.csv"}, {"constraints": "penalty"}])
def test_what_exact_refuses_is_searched(inside: Callable[..., Any], tmp_path: Path, keys: dict[str, str]) -> None:
    assert inside("run", "--algo", "random", "--evaluations", 30, "--out", "before", "--quiet").code == 0
    (tmp_path / "start.csv").write_bytes((tmp_path / "before" / "frontier.csv").read_bytes())
    flags = [word for key, value in keys.items() for word in ("--set", f"{key}={value}")]
    answer = inside("run", "--algo", "auto", "--evaluations", 310, *flags, "--verbose", "--out", "run")
    assert answer.code == 0, answer.err
    assert "\nlocal_search, seed 0" in answer.out


def test_a_run_records_what_was_picked_and_goes_on_with_it(inside: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "board.py").write_text(OWN)
    asked = ("--objectives", "loss,board:without", "--set", "baselines=[]")
    answer = inside("run", "--algo", "auto", *asked, "--evaluations", 310, "--out", "run")
    assert answer.code == 0, answer.err
    head = answer.out.splitlines()
    assert (
        " ".join(map(str.strip, head[2:4]))
        == "auto: local_search, since 310 evaluations are asked without a prior; docs/strategies.md#which-one"
    )
    recorded = yaml_source.read(tmp_path / "run" / "config.yaml")[0]
    assert (recorded["algo"], recorded["auto"]) == (
        "local_search",
        " ".join(map(str.strip, head[2:4])).removeprefix("auto: ").partition(";")[0],
    )
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["auto"] == recorded["auto"]
    more = inside("run", "--resume", "run", "--algo", "auto", "--evaluations", 350)
    assert more.code == 0, more.err
    assert more.out.splitlines()[:4] == head[:4]
    at_once = inside("run", "--algo", "local_search", *asked, "--evaluations", 350, "--out", "plain")
    assert "auto:" not in at_once.out
    assert "auto" not in yaml_source.read(tmp_path / "plain" / "config.yaml")[0]
    assert (tmp_path / "plain" / "frontier.csv").read_bytes() == (tmp_path / "run" / "frontier.csv").read_bytes()
    other = inside("run", "--config", "run", "--algo", "nsga2", "--evaluations", 20, "--out", "other")
    assert other.code == 0, other.err
    assert "auto:" not in other.out
    assert inside("run", "--resume", "plain", "--algo", "auto").code == 2


@pytest.mark.slow
def test_a_strategy_of_a_package_that_is_missing_names_the_package(
    inside: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entry_points, "read", lambda: entry_points.Read((), ()))
    (tmp_path / "board.py").write_text(OWN)
    asked = ("--objectives", "loss,board:with_prior", "--set", "baselines=[]", "--evaluations", 160, "--json")
    answer = inside("run", "--algo", "prior_guided", *asked)
    assert answer.code == 2
    assert answer.err == "--algo: expected an installed strategy, got prior_guided; pip install ./plugins/prior\n"
    answer = inside("run", "--algo", "auto", *asked, "--out", "run")
    assert answer.code == 0, answer.err
    assert (
        json.loads(answer.out)["auto"] == "optuna_tpe, since 160 evaluations are asked and plas-prior is not installed"
    )


def test_a_number_of_evaluations_is_no_fault_where_none_is_needed(inside: Callable[..., Any], tmp_path: Path) -> None:
    answer = inside("run", "--algo", "auto", "--evaluations", 50, "--out", "run")
    assert answer.code == 0, answer.err
    assert "auto: exact, since objectives and limits are shipped formulas" in answer.out
    assert "Exact:" in answer.out


def test_parameters_are_those_of_what_is_picked(inside: Callable[..., Any]) -> None:
    answer = inside("run", "--algo", "auto", "--param", "population=5")
    assert answer.code == 2
    assert "population" in answer.err


def test_in_python() -> None:
    study = nas.load_study(preset="paper", algo="auto", budgets={"total_ms": 100})
    assert study.search().exact


@pytest.mark.slow
def test_a_comparison_says_what_it_picked(inside: Callable[..., Any], tmp_path: Path) -> None:
    answer = inside(
        "compare",
        "--algos",
        "auto,nsga2",
        "--no-baselines",
        "--evaluations",
        160,
        "--seeds",
        2,
        "--workers",
        1,
        "--out",
        "c",
        "--no-plots",
    )
    assert answer.code == 0, answer.err
    assert "auto: optuna_tpe, since 160 evaluations are asked and evaluations are what is compared." in " ".join(
        answer.out.split()
    )
    recorded = yaml_source.read(tmp_path / "c" / "cells" / "paper" / "auto" / "s0-of-160" / "config.yaml")[0]
    assert recorded["algo"] == "optuna_tpe"
    assert inside("compare", "--resume", "c", "--quiet", "--no-plots", "--workers", 1).code == 0
    assert "auto" in yaml_source.read(tmp_path / "c" / "comparison.yaml")[0]["algos"]
