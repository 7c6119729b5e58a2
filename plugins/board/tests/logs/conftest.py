"""Files as the tests of `calibrate` read them, and samples, written by hand from the formats' sources."""

from collections.abc import Callable
from pathlib import Path

import pytest

from plugins.board.tests.calibrate.conftest import brief, log, rows

__all__ = ["brief", "log", "rows"]


@pytest.fixture(scope="session")
def sample() -> Callable[[str], Path]:
    """A sample's path."""
    return lambda name: Path(__file__).parent / "samples" / name
