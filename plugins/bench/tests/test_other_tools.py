"""Problems under pymoo's and Optuna's own algorithms, and an OptunaHub package that loads from its published layout."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import plas_bench
import pytest
import yaml
from plas_bench.logger import Logger
from plas_bench.scoring import scored
from plas_bench.traces import read_traces
from pymoo.algorithms.moo.nsga2 import NSGA2
from pymoo.algorithms.moo.nsga3 import NSGA3
from pymoo.algorithms.moo.sms import SMSEMOA
from pymoo.operators.crossover.sbx import SBX
from pymoo.operators.mutation.pm import PM
from pymoo.operators.repair.rounding import RoundingRepair
from pymoo.operators.sampling.rnd import IntegerRandomSampling
from pymoo.optimize import minimize
from pymoo.util.ref_dirs import get_reference_directions

REGISTRY = Path(__file__).resolve().parents[1] / "benchmarks" / "hub" / "package"
LICENSE = Path(__file__).resolve().parents[3] / "LICENSE"
PACKAGE = REGISTRY / "benchmarks" / "plas_bench"
OPERATORS = {
    "sampling": IntegerRandomSampling(),
    "crossover": SBX(prob=0.9, eta=15, vtype=float, repair=RoundingRepair()),
    "mutation": PM(prob=0.9, eta=5, vtype=float, repair=RoundingRepair()),
}


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Optuna without a line per trial."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    yield
    optuna.logging.set_verbosity(optuna.logging.INFO)


def algorithm(name: str, objectives: int) -> Any:
    """One of pymoo's, with integer operators."""
    if name == "nsga3":
        directions = get_reference_directions("das-dennis", objectives, n_partitions=20 if objectives == 2 else 5)
        return NSGA3(ref_dirs=directions, pop_size=21, **OPERATORS)
    return (NSGA2 if name == "nsga2" else SMSEMOA)(pop_size=20, **OPERATORS)


@pytest.mark.parametrize("name", ["plas1-paper-loss-tpot-budgets", "plas1-mixed-three", "plas1-kind-caches-1"])
@pytest.mark.parametrize("algo", ["nsga2", "nsga3", "smsemoa"])
def test_pymoo_searches_and_its_trace_is_what_it_was_given(name: str, algo: str, tmp_path: Path) -> None:
    bench = plas_bench.problem(name)
    with Logger(bench, tmp_path, algorithm=algo, seed=1) as log:
        problem = plas_bench.pymoo_problem(name, log)
        found = minimize(problem, algorithm(algo, len(bench.objectives)), ("n_gen", 6), seed=1)
    assert problem.vtype is int
    assert (problem.n_obj, problem.n_ieq_constr) == (len(bench.objectives), len(bench.constraints))
    (trace,) = read_traces(log.path, bench)
    assert len(trace.genotypes) == log.count >= 6 * 20 - 20
    if found.X is not None:
        values = bench.evaluate(found.X)
        assert np.allclose(values.objectives, found.F)
        assert (values.violations <= 0).all()
    gaps = scored(bench, [trace]).matrix(algo, "gap")[0]
    assert (np.diff(gaps) <= 1e-12).all()
    assert 0 < gaps[-1] <= 1


@pytest.fixture(scope="module")
def hub() -> Any:
    """The package, loaded as users of OptunaHub load one."""
    optunahub = pytest.importorskip("optunahub")
    return optunahub.load_local_module("benchmarks/plas_bench", registry_root=str(REGISTRY))


@pytest.mark.parametrize("sampler", [optuna.samplers.NSGAIISampler, optuna.samplers.TPESampler])
@pytest.mark.parametrize("name", ["plas1-paper-loss-tpot-budgets", "plas1-mixed-rare", "plas1-fine-loss-latency"])
def test_optuna_searches_with_constraints(hub: Any, sampler: Any, name: str, tmp_path: Path) -> None:
    bench = plas_bench.problem(name)
    with Logger(bench, tmp_path, algorithm=sampler.__name__, seed=0) as log:
        problem = hub.Problem(name, logger=log)
        study = optuna.create_study(sampler=sampler(seed=0), directions=problem.directions)
        study.optimize(problem, n_trials=60)
    assert log.count == len(study.trials) == 60
    for trial in study.trials[::20]:
        values = bench.evaluate([[trial.params[gene] for gene in bench.genes]])
        assert trial.values == values.objectives[0].tolist()
        assert trial.constraints == dict(zip(bench.constraints, values.violations[0].tolist(), strict=True))
    for trial in study.best_trials:
        assert all(violation <= 0 for violation in trial.constraints.values())
    if name != "plas1-fine-loss-latency":
        table = problem.score(study)
        assert table.index[-1] <= 60
        assert (np.diff(table["gap"]) <= 1e-12).all()


def test_the_hub_s_space_has_integers_and_categories(hub: Any) -> None:
    space = hub.Problem("plas1-mixed-rare").search_space
    assert isinstance(space["layers"], optuna.distributions.CategoricalDistribution)
    assert isinstance(space["width"], optuna.distributions.IntDistribution)
    assert hub.Problem.names() == plas_bench.names()
    assert hub.Problem("plas1-mixed-rare").metric_names == ["loss", "total_ms", "resident_gb"]


def test_the_package_has_the_published_layout() -> None:
    assert {path.name for path in PACKAGE.iterdir() if path.name != "__pycache__"} == {
        "__init__.py",
        "_plas_bench.py",
        "README.md",
        "LICENSE",
    }
    matter = re.match(r"---\n(.*?)\n---\n", (PACKAGE / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert matter is not None
    known = yaml.safe_load(matter[1])
    assert list(known) == ["author", "title", "description", "tags", "optuna_versions", "license"]
    assert "benchmark" in known["tags"]


@pytest.mark.skipif(not LICENSE.is_file(), reason="no checkout")
def test_the_package_s_licence_is_the_project_s() -> None:
    assert (PACKAGE / "LICENSE").read_bytes() == LICENSE.read_bytes()
