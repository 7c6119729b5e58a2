"""Real trainings in worker processes: the loss of `plas train` to the last bit."""

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.mark.slow
def test_the_loss_is_that_of_plas_train(folder: Path, inside: Callable[..., Any]) -> None:
    """Two designs on two workers, and the same candidates trained by the command."""
    space = "{name: s, head_dim: 16, axes: {depth: [1, 2], width: [32], expert_ffn_ratio: [2], n_kv_heads: [1]}}"
    (folder / "study.yaml").write_text(
        f"space: {space}\nobjectives: [train, total_ms]\ntrain: {{data: text.txt, tokens: 4096}}\nalgo: exact\n"
        "default_budget: none\napplications: {}\nbaselines: []\nworkers: 2\n"
    )
    answer = inside("run", "--config", "study.yaml", "--out", "out")
    assert answer.code == 0, answer
    found = {row["depth"]: float(row["train"]) for row in csv.DictReader((folder / "out" / "evaluations.csv").open())}
    usual = ("--data", "text.txt", "--tokens", "4096", "--threads", "1", "--out", "trained", "--quiet")
    answer = inside("train", "out/evaluations.csv", *usual)
    assert answer.code == 0, answer
    trained = {
        row["depth"]: float(row["loss"]) for row in csv.DictReader((folder / "trained" / "trainings.csv").open())
    }
    assert found == trained
    assert set(found) == {"1", "2"}
