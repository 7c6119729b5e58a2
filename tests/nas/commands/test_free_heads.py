"""A space whose n_heads and head_dim are free of width, through the commands as a user types them."""

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from objectives.plugins import importable

SPACE = """name: tiny_heads
axes:
  depth: [4, 8, 12]
  width: [512, 1024]
  head_dim: [64, 128]
  n_heads: [4, 8, 16, 32]
  n_experts: [1, 8]
  top_k: [1, 2]
  expert_ffn_ratio: [0.5, 1, 2]
  n_kv_heads: [1, 4, n_heads]
conditions: {min_query_ratio: 0.5, max_query_ratio: 2}
"""
LINE = ("--space", "space.yaml", "--quiet", "--seed", 3)


@pytest.fixture(autouse=True)
def _space(tmp_path: Path) -> None:
    (tmp_path / "space.yaml").write_text(SPACE)


def rows(path: str) -> list[dict[str, str]]:
    """A CSV's rows."""
    with Path(path).open(newline="") as file:
        return list(csv.DictReader(file))


def narrowest(row: dict[str, str]) -> int:
    """The fewest heads that a design of its width, head size and KV heads may have in the space."""
    width, size, kv = (int(row[name]) for name in ("width", "head_dim", "n_kv_heads"))
    fitting = [n for n in (4, 8, 16, 32) if 0.5 * width <= n * size <= 2 * width]
    return min(n for n in fitting if kv == n or (kv in (1, 4) and n % kv == 0))


def test_a_run_is_searched_shown_chosen_and_explained(inside: Callable[..., Any]) -> None:
    assert inside("run", "--algo", "nsga2", *LINE, "--evaluations", 80, "--out", "run").code == 0
    found = rows("run/evaluations.csv")
    assert len(found) == 80
    queries = {(row["width"], int(row["n_heads"]) * int(row["head_dim"])) for row in found}
    assert {int(width) < query for width, query in queries} == {True, False}
    assert all(0.5 <= query / int(width) <= 2 for width, query in queries)
    assert inside("run", "--resume", "run", "--evaluations", 120, "--quiet").code == 0
    assert [row["index"] for row in rows("run/evaluations.csv")] == [str(i) for i in range(120)]
    told = inside("watch", "run", "--once")
    assert ", heads " in told.out
    assert ", head size " in told.out
    chosen = inside("select", "run", "--select", "best", "--out", "best.csv")
    assert "Law hw_codesign does not see n_heads: the cheapest was taken." in chosen.out
    explained = inside("explain", "run", "--select", "best")
    assert explained.code == 0
    assert re.search(r"^  heads \d+ -> \d+", explained.out, flags=re.MULTILINE)
    again = inside(
        "run", "--algo", "nsga2", *LINE, "--evaluations", 50, "--set", "seed_from=best.csv", "--out", "again"
    )
    assert again.code == 0
    best, first = rows("best.csv")[0], rows("again/evaluations.csv")[0]
    assert all(first[name] == best[name] for name in ("n_heads", "head_dim", "loss"))


def test_exact_takes_the_narrowest_queries_under_a_law_that_does_not_see_them_and_not_under_one_that_does(
    inside: Callable[..., Any],
) -> None:
    wider = {}
    for law in ("hw_codesign", "conditional"):
        ran = inside("run", "--algo", "exact", *LINE, "--law", law, "--out", law)
        assert ran.code == 0
        frontier = rows(f"{law}/frontier.csv")
        wider[law] = [int(row["n_heads"]) > narrowest(row) for row in frontier]
        blind = json.loads(Path(law, "summary.json").read_text())["law_does_not_see"]
        assert ("n_heads" in blind) == (law == "hw_codesign")
    assert not any(wider["hw_codesign"])
    assert any(wider["conditional"])


def test_what_assumes_queries_as_wide_as_the_layers_refuses_by_name(inside: Callable[..., Any]) -> None:
    theory = inside("theory", "--space", "space.yaml", "--budget", "decode_ms=20")
    assert theory.code == 2
    assert "theory: expected a space of one head size" in theory.err
    assert "tiny_heads with head_dim and n_heads as axes" in theory.err
    closed = inside("run", "--algo", "random", *LINE, "--set", "latency=closed_form", "--out", "closed")
    assert closed.code == 2
    assert "latency: expected operator for query_dim other than width, got closed_form" in closed.err
    law = inside("theory", "--law", "conditional", "--budget", "decode_ms=20")
    assert law.code == 2
    assert "conditional prices designs of n_experts 1 and ffn_attention_ratio 0.5 to 5 alone" in law.err


@pytest.mark.slow
@pytest.mark.parametrize("algo", [name for name in importable("nas.strategies") if name not in ("exact", "optuna_gp")])
def test_every_strategy_searches_heads_to_the_same_bytes_again(algo: str, inside: Callable[..., Any]) -> None:
    for out in ("first", "second"):
        ran = inside("run", "--algo", algo, *LINE, "--evaluations", 60, "--out", out)
        if ran.code == 2 and "install" in ran.err:
            pytest.skip(f"{algo}: {ran.err}")
        assert ran.code == 0, ran.err
    assert Path("first/evaluations.csv").read_bytes() == Path("second/evaluations.csv").read_bytes()
    heads = {(row["n_heads"], row["head_dim"]) for row in rows("first/evaluations.csv")}
    assert len(heads) > 4
