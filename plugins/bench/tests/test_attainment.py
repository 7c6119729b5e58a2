"""What half of the runs attain, and whom the best algorithm is set beside."""

import numpy as np
from plas_bench.attainment import opponents, surface

from nas.compare.anytime import Trace, checkpoints, measured
from nas.compare.reference import union
from nas.compare.result import StudyResult
from nas.problem.objective import Objective


def result(*names: str) -> StudyResult:
    """Three made-up runs of each algorithm."""
    generator, objectives = np.random.default_rng(0), (Objective("loss"), Objective("total_ms", "ms", True))
    traces = [
        Trace(name, f"s{run}", run, 1 + generator.random((40, 2)), np.ones(40, bool), generator.permutation(40))
        for name in names
        for run in range(3)
    ]
    reference = union(objectives, [(t.values, np.arange(40) + 100 * i) for i, t in enumerate(traces)])
    counts = checkpoints(40)
    runs = tuple(measured(trace, reference, counts) for trace in traces)
    return StudyResult("made", "", "made up", objectives, reference, counts, runs, {}, {})


def test_the_difference_is_with_random_search_where_it_can_be() -> None:
    made = result("nsga2", "random", "sobol")
    best, other = opponents(made)
    assert best == made.ranking()[0]
    assert other == ("random" if best != "random" else made.ranking()[1])


def test_a_surface_is_what_a_share_of_the_runs_attain() -> None:
    points = np.array([[1.0, 3.0], [2.0, 1.0], [2.0, 2.0], [3.0, 1.0]])
    sets = np.array([1, 1, 2, 2])
    assert surface(points, sets, 50).tolist() == [[1.0, 3.0], [2.0, 1.0]]
    assert surface(points, sets, 100).tolist() == [[2.0, 2.0], [3.0, 1.0]]
