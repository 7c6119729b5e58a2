"""The page of PLAS-Bench holds what its definitions and its reference results say."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "benchmarks"))  # the scripts import one another as they do when they run

import bench_page  # noqa: E402
import bench_problems  # noqa: E402
import plas_bench  # noqa: E402
from plas_bench.definition import definition  # noqa: E402
from plas_bench.instance import bench_problem  # noqa: E402

PAGE = (ROOT / "docs" / "bench.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("section", [bench_page.problems, bench_page.kinds, bench_page.tables, bench_page.seeds])
def test_tables_are_those_of_the_definitions(section: object) -> None:
    assert section() in PAGE  # type: ignore[operator]


@pytest.mark.parametrize("family", ["analytic", "kind", "table"])
def test_reference_results_are_those_that_ship(family: str) -> None:
    assert bench_page.reference(family) in PAGE


def test_the_page_counts_the_problems() -> None:
    assert f"{len(plas_bench.names())} frozen problems" in PAGE


def test_every_problem_says_where_it_came_from() -> None:
    assert sorted(bench_problems.sources()) == sorted(plas_bench.names())


@pytest.mark.parametrize("name", ["plas1-mixed-rare", "plas1-kind-caches-2", "plas1-table-llama"])
def test_freezing_again_gives_the_same_figures(name: str) -> None:
    bench = bench_problem(name)
    assert bench_problems.check_of(bench) == definition(name).check
    assert bench_problems.front_figures(bench) == definition(name).front
