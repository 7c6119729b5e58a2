"""Fixtures of the comparison's tests: a file over the tiny space, and comparisons run in this process without pictures."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nas.compare import command as work
from nas.compare.configuration import Plan, comparison_studies, planned
from nas.compare.request import CompareRequest
from nas.files import yaml_source
from nas.strategies.conformance.laws import AXES

SPACE: dict[str, Any] = {"name": "tiny", "axes": AXES}


def content(**keys: Any) -> str:
    """A comparison over the tiny space as YAML; keys over the two studies of its own."""
    return yaml_source.dump(
        {
            "name": "small",
            "algos": ["nsga2", "sobol"],
            "params": {"nsga2": {"population": 10}},
            "seeds": 3,
            "evaluations": 40,
            "study": {"preset": "paper", "space": SPACE, "baselines": []},
            "studies": {"loose": {}, "tight": {"budgets": {"total_ms": 40}}},
            **keys,
        }
    )


@pytest.fixture(scope="session")
def comparison_text() -> Callable[..., str]:
    """The text of a comparison over the tiny space; keys over its own."""
    return content


@pytest.fixture
def comparison_file(tmp_path: Path) -> Callable[..., str]:
    """A comparison over the tiny space in a file; keys over its own."""

    def write(**keys: Any) -> str:
        path = tmp_path / "small.yaml"
        path.write_text(content(**keys), encoding="utf-8")
        return str(path)

    return write


@pytest.fixture(scope="session")
def small_comparison(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The finished comparison of the file as it is, to be copied and not to be changed."""
    folder = tmp_path_factory.mktemp("comparison")
    (folder / "small.yaml").write_text(content(), encoding="utf-8")
    request = CompareRequest(config=str(folder / "small.yaml"), workers=1, out=folder / "made", quiet=True)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(work, "draw", lambda *_: None)
        work.execute(request)
    return folder / "made"


@pytest.fixture
def plan_of(comparison_file: Callable[..., str]) -> Callable[..., Plan]:
    """The plan of a comparison file with other keys, under flags of the command."""

    def build(given: dict[str, Any] | None = None, names: list[str] | None = None, **keys: Any) -> Plan:
        return planned(comparison_studies(given or {}, {}, [], comparison_file(**keys), names))

    return build


@pytest.fixture
def compare(monkeypatch: pytest.MonkeyPatch, inside: Callable[..., Any]) -> Callable[..., Any]:
    """The command in this process: one worker, no pictures."""
    monkeypatch.setattr(work, "draw", lambda *_: None)
    return lambda *arguments: inside("compare", "--workers", 1, *arguments)
