"""Tokens as an axis and what training costs, through the commands as a user types them."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from objectives.plugins import importable

SPACE = """name: tiny_tokens
axes:
  depth: [4, 8, 12]
  width: [512, 768]
  n_experts: [1, 8]
  top_k: [1, 2]
  expert_ffn_ratio: [0.5, 1, 2]
  n_kv_heads: [1, n_heads]
"""
TOKENS = "1e9,3B,1e10"
LINE = ("--space", "space.yaml", "--quiet", "--no-plots")
HOURS = ("--set", "training.device=h100_sxm", "--set", "training.utilisation=0.4", "--budget", "train_hours=3")


@pytest.fixture(autouse=True)
def _space(tmp_path: Path) -> None:
    (tmp_path / "space.yaml").write_text(SPACE)


def rows(path: str) -> list[dict[str, str]]:
    """A CSV's rows."""
    with Path(path).open(newline="") as file:
        return list(csv.DictReader(file))


def test_hours_are_answered_with_a_model_and_its_tokens(inside: Callable[..., Any]) -> None:
    ran = inside(
        "run",
        "--algo",
        "exact",
        *LINE,
        "--law",
        "joint_moe",
        "--tokens",
        TOKENS,
        *HOURS,
        "--vocabulary",
        32000,
        "--out",
        "run",
    )
    assert ran.code == 0, ran.err
    found = rows("run/evaluations.csv")
    assert {row["tokens"] for row in found} == {"1000000000", "3000000000", "10000000000"}
    able = [row for row in found if row["state"] == "ok" and float(row["train_hours"]) <= 3]
    best = min(able, key=lambda row: (float(row["loss"]), float(row["total_ms"])))
    (pick,) = (row for row in rows("run/picks.csv") if row["question"].startswith("your budgets"))
    assert all(pick[name] == best[name] for name in ("tokens", "depth", "width", "loss", "train_hours"))
    assert 0 < len({row["tokens"] for row in able}) < len(able)
    said = json.loads(Path("run/summary.json").read_text())
    assert said["law"]["tokens"] == [1e9, 3e9, 1e10]


def test_the_axis_of_a_space_is_the_flags(inside: Callable[..., Any]) -> None:
    Path("axis.yaml").write_text(SPACE + "  tokens: [1e9, 3e9, 10e9]\n")
    law = ("--law", "joint_moe", "--quiet", "--no-plots")
    assert inside("run", "--algo", "exact", *LINE, "--law", "joint_moe", "--tokens", TOKENS, "--out", "flag").code == 0
    assert inside("run", "--algo", "exact", "--space", "axis.yaml", *law, "--out", "file").code == 0
    assert inside("run", "--config", "flag", "--quiet", "--no-plots", "--out", "again").code == 0
    first = Path("flag/evaluations.csv").read_bytes()
    assert Path("file/evaluations.csv").read_bytes() == first == Path("again/evaluations.csv").read_bytes()
    one = inside("run", "--algo", "exact", "--space", "axis.yaml", *law, "--tokens", "3B", "--out", "one")
    assert one.code == 0
    assert "tokens" not in rows("one/evaluations.csv")[0]


def test_a_search_over_tokens_is_resumed_selected_and_explained(inside: Callable[..., Any]) -> None:
    asked = (*LINE, "--law", "sparsity_iso", "--tokens", TOKENS, "--seed", 3)
    assert inside("run", "--algo", "nsga2", *asked, "--evaluations", 90, "--out", "whole").code == 0
    assert inside("run", "--algo", "nsga2", *asked, "--evaluations", 40, "--out", "run").code == 0
    assert inside("run", "--resume", "run", "--evaluations", 90, "--quiet").code == 0
    assert len(rows("run/evaluations.csv")) == 90
    assert len({row["tokens"] for row in rows("run/evaluations.csv")}) == 3
    chosen = inside("select", "run", "--select", "best", "--out", "best.csv")
    assert chosen.code == 0, chosen.err
    assert "tokens" in chosen.out
    explained = inside("explain", "run", "--select", "best")
    assert explained.code == 0, explained.err
    assert "tokens" in explained.out
    again = inside(
        "run", "--algo", "nsga2", *asked, "--evaluations", 50, "--set", "seed_from=best.csv", "--out", "again"
    )
    assert again.code == 0, again.err
    best, first = rows("best.csv")[0], rows("again/evaluations.csv")[0]
    assert all(first[name] == best[name] for name in ("tokens", "depth", "width", "loss"))


def test_a_killed_search_over_tokens_goes_on_to_the_same_bytes(inside: Callable[..., Any]) -> None:
    asked = (*LINE, "--law", "chinchilla_epoch", "--tokens", TOKENS, "--seed", 1, "--algo", "random")
    assert inside("run", *asked, "--evaluations", 60, "--out", "whole").code == 0
    assert inside("run", *asked, "--evaluations", 25, "--out", "run").code == 0
    assert inside("run", "--resume", "run", "--evaluations", 60, "--quiet").code == 0
    assert Path("run/evaluations.csv").read_bytes() == Path("whole/evaluations.csv").read_bytes()


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (
            ("--tokens", TOKENS),
            "tokens: expected laws that see them beside an axis of tokens, got hw_codesign, fitted at 1e+10, to which more cost",
        ),
        (("--tokens", "3B"), "tokens: expected a law that depends on them, got hw_codesign, which is of 1e+10 tokens"),
        (
            ("--law", "joint_moe", "--tokens", TOKENS, "--set", "laws=routed"),
            "tokens: expected laws that see them beside an axis of tokens, got routed, fitted at 1.3e+11",
        ),
        (
            ("--law", "chinchilla", "--set", "unique_tokens=1B"),
            "unique_tokens: expected a law of repeated text, got chinchilla",
        ),
        (("--law", "joint_moe", "--tokens", "1B,0"), "--tokens: expected a positive quantity"),
        (("--law", "joint_moe", "--tokens", "many"), "--tokens: expected a quantity like \"10B\", got 'many'"),
        (("--law", "joint_moe", "--tokens", "1B,1e9"), "--tokens: expected distinct values"),
        (("--law", "joint_moe", "--tokens", "1.5,2"), "--tokens: "),
        (
            ("--budget", "train_hours=500"),
            "train_hours: expected a device that trains, got none; add --set training.device=h100_sxm",
        ),
        (("--budget", "train_hours=2 weeks"), 'expected hours like "500 h", got unit'),
        (("--set", "training.device=h100"), "--set training.device: expected a device"),
        (("--set", "training.utilisation=1.5"), "--set training.utilisation: "),
        (("--set", "training.served_tokens=-1"), "--set training.served_tokens: expected a positive quantity"),
    ],
)
def test_mistakes_are_said_by_name(flags: tuple[Any, ...], said: str, inside: Callable[..., Any]) -> None:
    ran = inside("run", "--algo", "exact", *LINE, *flags, "--out", "run")
    assert ran.code == 2
    assert said in ran.err
    assert "Traceback" not in ran.err
    assert not Path("run").exists()


def test_what_a_law_cannot_know_of_tokens_is_said(inside: Callable[..., Any]) -> None:
    line = ("--algo", "exact", "--space", "space.yaml", "--no-plots")
    beyond = inside("run", *line, "--law", "joint_moe", "--tokens", "1B,1T", "--out", "beyond")
    assert "law joint_moe was fitted on 5e+08 to 8e+10 tokens; at 1e+12 it extrapolates (*)" in beyond.err
    assert "Qwen2.5-0.5B left out of the comparison: tokens are an axis" in beyond.err
    unsaid = inside("run", *line, "--law", "sparsity_iso", "--tokens", "1B,1T", "--out", "unsaid")
    assert "law sparsity_iso does not say which tokens it was fitted on" in unsaid.err
    epochs = ("--law", "data_limited", "--set", "unique_tokens=5B", "--tokens", "5B,20B")
    repeated = inside("run", *line, *epochs, "--out", "repeated")
    assert "law data_limited: 5e+09 tokens of text are distinct; epochs: 4 at 2e+10 tokens" in repeated.err
    blind = inside("run", *line, "--objectives", "loss,train_flops", "--out", "blind")
    assert "train_flops: of the 1e+10 tokens of law hw_codesign, which it cannot see" in blind.err
    assert "train_flops: without an LM head" in blind.err
    unserved = inside("run", *line, "--objectives", "loss,lifetime_flops", "--out", "unserved")
    assert "lifetime_flops: of no tokens served" in unserved.err


def test_the_theory_asks_for_one_number_of_tokens(inside: Callable[..., Any]) -> None:
    Path("axis.yaml").write_text(SPACE + "  tokens: [1e9, 3e9]\n")
    asked = inside("theory", "--space", "axis.yaml", "--law", "sparsity_iso", "--budget", "decode_ms=20")
    assert asked.code == 2
    assert "theory: expected one value of tokens" in asked.err


@pytest.mark.slow
@pytest.mark.parametrize("algo", [name for name in importable("nas.strategies") if name not in ("exact", "optuna_gp")])
def test_every_strategy_searches_tokens_to_the_same_bytes_again(algo: str, inside: Callable[..., Any]) -> None:
    asked = (*LINE, "--law", "sparsity_iso", "--tokens", TOKENS, "--evaluations", 60, *HOURS)
    for out in ("first", "second"):
        ran = inside("run", "--algo", algo, *asked, "--out", out)
        if ran.code == 2 and "install" in ran.err:
            pytest.skip(f"{algo}: {ran.err}")
        assert ran.code == 0, ran.err
    assert Path("first/evaluations.csv").read_bytes() == Path("second/evaluations.csv").read_bytes()
    assert len({row["tokens"] for row in rows("first/evaluations.csv")}) == 3
