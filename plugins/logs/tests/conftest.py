"""Files as the core's tests of logs read them, and this package's samples, written by hand from the formats' sources."""

from collections.abc import Callable
from pathlib import Path

import pytest
from core_tests import loaded

module = loaded("nas/calibrate/conftest.py")
log, rows, brief = module.log, module.rows, module.brief


@pytest.fixture(scope="session")
def sample() -> Callable[[str], Path]:
    """A sample's path."""
    return lambda name: Path(__file__).parent / "samples" / name
