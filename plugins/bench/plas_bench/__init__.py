"""Frozen problems with exact frontiers, for any optimiser that searches architectures, and what scores it on them: PLAS-Bench.

What a problem is (`definition`), how it is evaluated (`instance`), its exact front (`fronts`), tables that were paid for (`tables`),
pymoo's form of it, traces read and written, scores, and the command. It stands above what it measures: strategies, solver, comparison.

    problem = plas_bench.problem("plas1-fine-loss-latency")
    values = problem.evaluate(problem.sample(100, seed=0))
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plas_bench.for_pymoo import BenchPymoo
    from plas_bench.instance import BenchProblem
    from plas_bench.logger import Logger as Logger


def names() -> list[str]:
    """Every problem of version 1, by name."""
    from plas_bench.definition import names as every

    return every()


def problem(name: str) -> "BenchProblem":
    """A problem by its name, checked against the values that it was frozen with.

    Examples:
        >>> plas_bench.problem("plas1-paper-loss-latency").size
        13120

    Raises:
        UsageError: no such problem, or its table is not there.
        PlasError: this code computes other values than those it was frozen with.
    """
    from plas_bench.instance import bench_problem

    return bench_problem(name)


def pymoo_problem(name: str, logger: "Logger | None" = None) -> "BenchPymoo":
    """A problem as pymoo's: `minimize(pymoo_problem(name), NSGA2(), ("n_gen", 10))`; what it evaluates goes to the logger.

    Examples:
        >>> plas_bench.pymoo_problem("plas1-paper-loss-latency").n_var
        6

    Raises:
        UsageError: no such problem.
    """
    from plas_bench.for_pymoo import BenchPymoo

    return BenchPymoo(problem(name), logger)


if not TYPE_CHECKING:  # a type checker would take any name for one of ours

    def __getattr__(name: str) -> Any:
        if name != "Logger":
            raise AttributeError(f"module 'plas_bench' has no attribute {name!r}")
        from plas_bench.logger import Logger

        return Logger
