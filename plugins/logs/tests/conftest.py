"""Files as the core's tests of logs read them, and this package's samples, written by hand from the formats' sources."""

import importlib.util
from collections.abc import Callable
from pathlib import Path

import pytest

LOGS = Path(__file__).resolve().parents[3] / "tests" / "nas" / "calibrate" / "conftest.py"
spec = importlib.util.spec_from_file_location("core_log_fixtures", LOGS)
assert spec is not None
assert spec.loader is not None
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
log, rows, brief = module.log, module.rows, module.brief


@pytest.fixture(scope="session")
def sample() -> Callable[[str], Path]:
    """A sample's path."""
    return lambda name: Path(__file__).parent / "samples" / name
