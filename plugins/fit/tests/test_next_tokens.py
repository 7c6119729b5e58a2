"""Tokens of the next trainings: counts that a form sees, and the file of candidates."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nas.search.assembly import assemble
from objectives.loss_law.law import Law
from plas_fit.command import execute
from plas_fit.next_designs import counts_of, on_counts
from plas_fit.request import FitRequest
from tests.made_up_law import law_with


def test_a_form_with_tokens_is_trained_on_several_counts() -> None:
    law = Law.model_validate(
        {
            "form": "chinchilla",
            "coefficients": {"a": 400.0, "alpha": 0.34, "b": 2000.0, "beta": 0.37, "e": 1.8},
            "tokens": 8e6,
        }
    )
    assert counts_of(law, None) is not None
    assert counts_of(law, None).tolist() == [8e6, 4e6, 2e6]  # type: ignore[union-attr]
    assert counts_of(law, np.array([1e6, 1e6, 4e6])).tolist() == [8e6, 4e6, 1e6]  # type: ignore[union-attr]
    dense = law_with((), 0.01)
    assert counts_of(dense, np.array([1e6, 4e6])).tolist() == [1e10]  # type: ignore[union-attr]
    problem = assemble({}, {}).problem
    two = problem.architectures(problem.space.genotypes(np.array([0, 5000])))
    every = on_counts(two, counts_of(law, None))
    assert len(every) == 6
    np.testing.assert_allclose(every.flops[2:4] / every.flops[:2], 0.5)
    np.testing.assert_allclose(every.losses(law)[:2], law.loss(two))
    assert (every.losses(law)[2:4] > every.losses(law)[:2]).all()


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Thirty trained models, each on one of two counts of tokens."""
    generator = np.random.default_rng(1)
    problem = assemble({}, {}).problem
    a = problem.architectures(problem.space.genotypes(generator.choice(problem.space.size, 30, replace=False)))
    tokens = np.where(np.arange(30) % 3, 10e9, 2e9)
    loss = law_with((), 0.01).loss(a) + 100 / tokens**0.3 + generator.normal(0, 0.01, 30)
    names = ("depth", "width", "n_kv_heads", "n_experts", "top_k", "expert_size")
    path = tmp_path / "runs.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*names, "tokens", "loss"])
        columns = [getattr(a, name).tolist() for name in names]
        writer.writerows(zip(*columns, tokens.tolist(), loss.tolist(), strict=True))
    return path


def quick(runs: Path, **changes: Any) -> FitRequest:
    return FitRequest((runs,), **({"starts": 4, "bootstraps": 40, "next": 6, "where": ("tokens=10e9",)} | changes))


@pytest.mark.slow
def test_token_counts_are_proposed_where_the_form_has_them_and_doubted_where_not(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "next.csv"
    execute(quick(runs, where=(), form="chinchilla", candidates=out, next=12))
    rows = list(csv.DictReader(out.open()))
    assert {float(row["tokens"]) for row in rows} == {10e9, 2e9}
    said = capsys.readouterr().out
    assert "tokens vary" not in said
    execute(quick(runs, where=(), quiet=True))
    said = " ".join(capsys.readouterr().out.split())
    assert "the rows differ in tokens" in said
    assert "--where tokens=10000000000 keeps 20 of 30 rows of one count" in said
