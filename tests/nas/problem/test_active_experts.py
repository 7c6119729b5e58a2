"""Whether a law, and not the cost, keeps few experts active: at equal E, expert size and shape."""

import csv
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nas.problem.law_caveats import MEASURED, active_experts_lines, more_active
from nas.study.catalogue import load_law
from search_spaces.architectures import Architectures

LIVES = {"depth": 16, "width": 1536, "n_kv_heads": 4, "n_experts": 8, "expert_size": 1536}


def designs(**columns: list[int]) -> Architectures:
    """Designs like the one whose K is in question."""
    n = len(next(iter(columns.values())))
    return Architectures.from_columns({name: [value] * n for name, value in LIVES.items()} | columns)


def test_the_default_law_puts_four_active_experts_above_one() -> None:
    law = load_law("hw_codesign")
    found = more_active(law, designs(top_k=[1, 2, 4]))
    np.testing.assert_array_equal(found.more[0], law.loss(designs(top_k=[2, 4])))
    assert found.own[0] < found.more[0, 1]
    assert np.isnan(found.more[1]).tolist() == [False, True]
    assert found.priced.tolist() == [True, True, False]
    (line,) = active_experts_lines(law, designs(top_k=[1]), "picks")
    assert line.startswith(
        "Few active experts are the law's choice: hw_codesign predicts no lower loss with more of them"
    )
    assert f"1 active {found.own[0]:.4f} nats, 4 active {found.more[0, 1]:.4f} nats" in line
    assert MEASURED in line


@pytest.mark.parametrize("name", ["sparsity_iso", "joint_moe", "chinchilla_epoch"])
def test_laws_that_lower_the_loss_or_price_no_such_design_say_nothing(name: str) -> None:
    assert active_experts_lines(load_law(name), designs(top_k=[1, 2]), "picks") == []


def test_dense_designs_have_no_k_to_speak_of() -> None:
    dense = designs(n_experts=[1], top_k=[1])
    assert not more_active(load_law("hw_codesign"), dense).priced.any()
    assert active_experts_lines(load_law("hw_codesign"), dense, "picks") == []


@pytest.mark.slow
def test_run_select_explain_and_theory_say_it(
    inside: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = "Few active experts are the law's choice: hw_codesign"
    answer = inside("run", "--algo", "exact", "--no-plots", "--verbose", "--out", "r")
    assert said in answer.out
    assert said in Path("r/summary.json").read_text()
    assert said in inside("select", "r", "--select", "best").out
    assert said in inside("explain", "r", "--select", "best").out
    assert said in inside("explain", "r", "--select", "best", "--json").out
    assert said in inside("theory", "--budget", "total_ms=2000").out


def test_the_published_steps_are_what_is_said_of_them(external_data: Path) -> None:
    with (external_data / "loss" / "deepmind_routing.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["step"] == "249000" and row["router_type"] == "S-Base"]
    same = ("num_experts", "d_model", "num_blocks", "num_heads", "kqv_size", "routing_frequency", "flop_increase")
    losses: dict[tuple[str, ...], dict[int, float]] = {}
    for row in rows:
        losses.setdefault(tuple(row[name] for name in same), {})[int(row["k"])] = float(row["loss_validation"])
    drops = [of[a] - of[b] for of in losses.values() for a, b in pairwise(sorted(of))]
    assert len(drops) == 12
    assert (f"{min(drops):.3f}", f"{max(drops):.3f}") == ("0.016", "0.046")
