"""Simulated trained models of the paper's space, and tables as files."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from objectives.loss_law.law import Law
from plas_fit.fitting.trained_models import Table
from search_spaces.architectures import Architectures
from search_spaces.columns import SHAPE
from tests.objectives import conftest as of_objectives

law, paper_architectures = of_objectives.law, of_objectives.paper_architectures
Simulate = Callable[..., Table]


@pytest.fixture(scope="session")
def simulated(law: Law, paper_architectures: Architectures) -> Simulate:
    """`(n, sd, seed, outliers=share, rows=chosen, truth=losses)`: n random architectures with noisy losses."""

    def draw(
        n: int, sd: float, seed: int, *, outliers: float = 0.0, rows: np.ndarray | None = None,  # type: ignore[type-arg]
        truth: Callable[[Architectures], np.ndarray] | None = None,  # type: ignore[type-arg]
    ) -> Table:  # fmt: skip
        generator = np.random.default_rng(seed)
        chosen = paper_architectures[
            generator.choice(len(paper_architectures), n, replace=False) if rows is None else rows
        ]
        loss = (truth or law.loss)(chosen) + generator.normal(0.0, sd, len(chosen))
        wrong = generator.choice(len(chosen), int(outliers * len(chosen)), replace=False)
        loss[wrong] += generator.normal(0.2, 0.05, len(wrong))
        shape = {name: np.asarray(getattr(chosen, name), dtype=np.float64) for name in SHAPE}
        return Table({**shape, "loss": loss}, np.arange(2, len(chosen) + 2))

    return draw


@pytest.fixture
def csv(tmp_path: Path) -> Callable[[str], Path]:
    """A CSV file with the given text."""

    def write(text: str) -> Path:
        path = tmp_path / "runs.csv"
        path.write_text(text, encoding="utf-8")
        return path

    return write
