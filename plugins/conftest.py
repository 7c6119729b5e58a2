"""Fixtures of the packages' tests: those of the core's tests, over whatever core is installed."""

import importlib.util
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1] / "tests"

for number, path in enumerate((TESTS / "conftest.py", TESTS / "nas" / "conftest.py")):
    spec = importlib.util.spec_from_file_location(f"core_fixtures_{number}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    globals().update(
        {name: value for name, value in vars(module).items() if not name.startswith(("_", "pytest_cmdline"))}
    )
