"""A problem for pymoo's algorithms, with integer variables."""

from nas.api.own_loops import PymooProblem
from nas.problem.evaluations import Evaluations
from plas_bench.instance import BenchProblem, Values
from plas_bench.logger import Logger
from search_spaces.arrays import FloatArray, IntArray


class BenchPymoo(PymooProblem):
    """Integer genes from 0 to `upper`; objectives minimised; violations, feasible at ≤ 0; floats are rounded, and all repaired."""

    def __init__(self, bench: BenchProblem, logger: Logger | None = None) -> None:
        super().__init__(bench.problem, vtype=int, can_fail=False)
        self.bench, self.logger = bench, logger

    def exact(self) -> tuple[IntArray, FloatArray]:
        """Genotypes and values of the exact front."""
        front = self.bench.exact_front()
        return front.genotypes, front.values

    def evaluated(self, genotypes: IntArray) -> Evaluations:
        """What pymoo is given, logged."""
        found = self.bench.evaluated(genotypes)
        if self.logger is not None:
            self.logger.log(genotypes, Values(found.values, found.violations))
        return found
