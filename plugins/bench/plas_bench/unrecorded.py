"""A search whose run nobody keeps: its log is gone when it ends."""

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from nas.problem.evaluations import Evaluations
from nas.problem.problem import Problem
from nas.search.lifecycle import store_columns, store_of
from nas.search.loop import Limits, Search
from nas.search.strategy import Strategy


def unrecorded(
    problem: Problem,
    strategy: Strategy,
    evaluations: int,
    shown: Callable[[Evaluations], Evaluations] = lambda found: found,
) -> Search:
    """Search by at most so many distinct evaluations, and what was found; `shown` is what the strategy is told of it."""
    with TemporaryDirectory() as folder:
        store = store_of(problem, Path(folder))
        try:
            store.create({}, store_columns(problem))
            search = Search(problem, strategy, store, shown=shown)
            search.run(Limits(evaluations))
        finally:
            store.close()
    return search
