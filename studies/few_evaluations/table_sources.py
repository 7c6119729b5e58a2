"""Tables that somebody paid for, as cases to search: the tables of PLAS-Bench, and the laws that come close to each."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from plas_bench.instance import bench_problem

from nas.problem.problem import Problem
from nas.study.catalogue import load_law
from objectives.loss_law.law import Law
from search_spaces.arrays import FloatArray

PUBLIC = {
    "translators on xeon": ("plas1-table-translators-xeon", ("decode_ms", "loss")),
    "translators on raspberrypi": ("plas1-table-translators-pi", ("decode_ms", "loss")),
    "gemstones": ("plas1-table-gemstones", ("loss", "train_flops")),
    "morph": ("plas1-table-morph", ("loss", "train_flops")),
}
OF_TRAININGS = ("gemstones", "morph")


@dataclass(frozen=True, eq=False)
class Case:
    """A table: a problem over its rows, the metric whose regret counts, the one that has limits; values by name, (n,), in key order."""

    name: str
    problem: Problem
    least: str
    limited: str
    values: Mapping[str, FloatArray]
    rivals: tuple[Law, ...] = ()

    @property
    def unit(self) -> str:
        """Of the regret."""
        return "ms" if self.least.endswith("_ms") else "nats"


def cases(folder: Path | None) -> Iterator[Case]:
    """Every table: the project's own, and those of the folder of public data where there is one."""
    yield own()
    for name, (problem, pair) in PUBLIC.items() if folder is not None else ():
        yield _case(name, problem, pair, (load_law("hw_codesign"),) if name in OF_TRAININGS else ())


def own() -> Case:
    """The project's own trainings at 307,200 bytes, with times measured on a processor; seeds of one architecture are averaged."""
    return _case("own", "plas1-table-trained", ("loss", "total_ms"), ())


def _case(name: str, problem_name: str, pair: tuple[str, str], rivals: tuple[Law, ...]) -> Case:
    """A case of a frozen problem."""
    problem = bench_problem(problem_name).problem
    known = problem.evaluate(problem.space.genotypes(np.arange(problem.space.size))).metrics
    least, limited = (_named(problem, metric) for metric in pair)
    return Case(name, problem, least, limited, {metric: known[metric] for metric in (least, limited)}, rivals)


def _named(problem: Problem, metric: str) -> str:
    """The table's own metric where it was measured, else the formula."""
    return next((f.name for f in problem.functions if f.prior == metric), metric)
