"""The conformance suite of the core's strategies."""

import pytest
from core_tests import loaded

core = loaded("nas/strategies/test_conformance.py")
made, searched = core.made, core.searched
globals().update({name: value for name, value in vars(core).items() if name.startswith("test_")})
pytestmark = pytest.mark.parametrize("algo", ["prior_guided"])
del test_exact_above_its_limit_asks_for_the_frontier_and_the_picks_alone  # type: ignore[name-defined]  # noqa: F821
