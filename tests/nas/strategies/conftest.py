"""Problems for strategies."""

from collections.abc import Callable

import pytest

from nas.problem.problem import Problem


@pytest.fixture(scope="module")
def bare(problem_of: Callable[..., Problem]) -> Callable[..., Problem]:
    """Problems without the default budget, over the tiny space unless another is given."""
    return lambda **raw: problem_of(**{"default_budget": "none", "baselines": [], "applications": {}, **raw})
