"""Fixtures for every test: the scalar reference, the shipped documents, public data."""

import gc
import importlib.util
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings

from nas.files import yaml_source
from objectives.plugins import documents

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is there: on matrices this small others only wait
busy = [HealthCheck.too_slow]  # on a machine with other work drawing takes as long as it takes
phases = (
    Phase.explicit,
    Phase.generate,
)  # a case that fails is shown as it was drawn: to look for a smaller one takes minutes
for profile, draws in (("repeatable", 25), ("thorough", 100)):
    settings.register_profile(
        profile, deadline=None, derandomize=True, max_examples=draws, phases=phases, suppress_health_check=busy
    )
settings.register_profile("explore", deadline=None, print_blob=True, max_examples=400, suppress_health_check=busy)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


#: Formulas fail here first: values by hand, and forty rows of every kind beside the oracle.
CHECK_VALUES = {"test_golden", "test_published_laws", "test_conditional", "test_differences", "test_precision_cost"}
FEW_ROWS = "test_mixed_architectures_are_the_oracles[options0]"


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """The whole suite on every core, up to eight; what the command line names, and debuggers and coverage, in this process."""
    option = config.option
    whole = config.args_source is pytest.Config.ArgsSource.TESTPATHS
    alone = option.usepdb or option.trace or option.collectonly or getattr(option, "cov_source", None)
    undecided = getattr(option, "numprocesses", 0) is None  # pytest-xdist is there, and no -n was given
    if whole and undecided and not alone and not hasattr(config, "workerinput"):
        option.numprocesses, option.maxprocesses, option.dist = "auto", 8, "worksteal"
    gc.disable()  # thousands of tests are collected and none is garbage


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Collect garbage again, but seldom, and look through the tests and modules no more."""
    gc.freeze()
    gc.set_threshold(50_000)
    gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish() -> None:
    """Collect what the tests left once; pytest looks ten times more, and all the rest is alive."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What reads public data or needs a browser is of that tier by its fixture, so that no mark can be forgotten. Formulas are tried by their check values first."""
    items.sort(key=costly)
    for item in items:
        fixtures = getattr(item, "fixturenames", ())
        if "external_data" in fixtures and not item.get_closest_marker("extended"):
            item.add_marker(pytest.mark.public_data)
        if "driver" in fixtures:
            item.add_marker(pytest.mark.browser)


def costly(item: pytest.Item) -> int:
    """The place of a test of `objectives` in the order: check values before others, what is drawn or held against the oracle last; of any other the middle."""
    if "objectives" not in item.path.parts:
        return 1
    if item.path.stem in CHECK_VALUES or item.name.startswith(FEW_ROWS):
        return 0
    drawn = getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
    return 2 if drawn or "reference" in getattr(item, "fixturenames", ()) else 1


@pytest.fixture(scope="session")
def reference() -> ModuleType:
    """`tests/reference.py`, loaded by its path: no package of another project can stand in for it."""
    name = "scalar_reference"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name("reference.py"))
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


@pytest.fixture(scope="session")
def shipped() -> Callable[[str, str], dict[str, Any]]:
    """Content of a shipped YAML document, by folder and name, read as the product reads it."""

    def read(folder: str, name: str) -> dict[str, Any]:
        content, _ = yaml_source.read(documents(folder)[name])
        assert isinstance(content, dict)
        return content

    return read


@pytest.fixture(scope="session")
def external_data() -> Path:
    """The folder of public data; a test that needs it is skipped where it is not given."""
    folder = os.environ.get("PLAS_EXTERNAL_DATA")
    if not folder:
        pytest.skip("PLAS_EXTERNAL_DATA is not set: not compared with the public data")
    return Path(folder)
