"""Fixtures of the packages' tests: those of the core's tests, over whatever core is installed."""

from core_tests import loaded

for place in ("conftest.py", "nas/conftest.py"):
    fixtures = vars(loaded(place))
    globals().update({name: value for name, value in fixtures.items() if not name.startswith(("_", "pytest_cmdline"))})
