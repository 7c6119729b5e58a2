"""Loads files of the core's tests by their place, so that the packages' tests use them over whatever core is installed."""

import importlib.util
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[1]


@cache
def loaded(place: str) -> ModuleType:
    """The module of a file below `tests/`, such as `nas/pages/geometry.py`."""
    name = f"core_tests_{place.removesuffix('.py').replace('/', '_')}"
    spec = importlib.util.spec_from_file_location(name, ROOT / "tests" / place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # where dataclasses look their module up
    spec.loader.exec_module(module)
    return module
