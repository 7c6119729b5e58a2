"""`fit` on tables typed as a command: sweeps, every fault at once."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

Inside = Callable[..., Any]
QUICK = ("--form", "chinchilla", "--bootstraps", 20, "--starts", 4, "--quiet")


@pytest.fixture
def swept(tmp_path: Path) -> Path:
    """16 designs at five learning rates and two batches, under names that others use."""
    rows, generator = ["n_layer,n_params,tokens,lr,bs,random_note,val_loss"], np.random.default_rng(0)
    for size in (100, 200, 400, 800):
        for tokens in (1, 2, 4, 8):
            best = 1.8 + 480 / (size * 1e6) ** 0.35 + 2000 / (tokens * 1e9) ** 0.37
            rows += [
                f"8,{size}e6,{tokens}e9,{rate},{batch},{k},{best + 0.2 * abs(k - 2) + 0.01 * j + generator.normal(0, 0.003)}"
                for k, rate in enumerate((1e-4, 3e-4, 1e-3, 3e-3, 1e-2))
                for j, batch in enumerate((64, 128))
            ]
    path = tmp_path / "sweep.csv"
    path.write_text("\n".join(rows))
    return path


@pytest.mark.slow
def test_a_sweep_is_noticed_and_reduced(swept: Path, inside: Inside, tmp_path: Path) -> None:
    answer = inside("fit", swept, *QUICK, "--json")
    assert answer.code == 0, answer.err
    whole = json.loads(answer.out)
    assert "Do not rely on its picks yet: the rows are a sweep;" in whole["verdict"][0]
    assert "--best-of learning_rate,batch keeps the lowest loss of each design" in whole["data"]["sweep"]
    assert whole["quality"]["residual_sd"] > 0.1
    report = tmp_path / "report"
    answer = inside("fit", swept, *QUICK, "--best-of", "lr,batch", "--json", "--report", report)
    assert answer.code == 0, answer.err
    best = json.loads(answer.out)
    assert best["data"]["sweep"] is None
    assert (
        "144 rows left out by --best-of learning_rate,batch: the lowest loss of each of 16 designs is kept"
        in best["data"]["notes"]
    )
    assert best["quality"]["residual_sd"] < 0.01
    assert "--best-of lr,batch" in best["command"]
    assert next(iter(best["baselines"]["predictors"])) == "chinchilla"
    said = (report / "report.html").read_text()
    assert "Simple baselines on the same unseen rows" in said
    assert "144 rows left out by " in said
    assert "Simple baselines on the same unseen rows" in (report / "report.md").read_text()


def test_all_faults_come_in_one_message_and_exit_code_2(inside: Inside, tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text("hiden_size,depth,n_expert,top_k,final_loss\n512,8,8,1,3.1\n512,x,0,2,3.2\n,y,8,z,3.0\n")
    answer = inside("fit", path, "--quiet")
    assert answer.code == 2
    for line in (
        "expected a column loss, got hiden_size, depth, n_expert, top_k, final_loss; rename one with --rename OLD=loss",
        "3: depth: expected a number, got 'x', wrong in 2 rows (lines 3, 4)",
        "4: top_k: expected a number, got 'z'",
    ):
        assert line in answer.err


def test_what_the_form_lacks_comes_with_faults_of_cells(inside: Inside, tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text("L,loss\n512,x\n512,3.2\n")
    answer = inside("fit", path, "--form", "chinchilla")
    assert answer.code == 2
    assert "2: loss: expected a number, got 'x'" in answer.err
    assert "tokens: expected a column of training tokens, got none" in answer.err
    assert "columns that no law reads: L; --rename OLD=NEW" in answer.err


def test_tokens_that_are_none_are_refused_before_anything_is_read(inside: Inside, tmp_path: Path) -> None:
    answer = inside("fit", tmp_path / "nowhere.csv", "--tokens", "1e400")
    assert answer.code == 2
    assert answer.err.strip() == "tokens: expected a positive number, got inf; write 10e9"
