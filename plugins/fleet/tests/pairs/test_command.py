"""Pairs of target and draft through the command, as a user types it."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SPACE = """name: tiny_targets
axes:
  depth: [8, 16, 24, 32]
  width: [1024, 2048, 3072]
  n_experts: [1, 8]
  top_k: [1, 2]
  expert_ffn_ratio: [1, 2, 4]
  n_kv_heads: [1, n_heads]
"""
DRAFTS = """name: tiny_drafts
axes:
  depth: [2, 4, 8]
  width: [256, 512, 1024]
  n_experts: [1]
  top_k: [1]
  expert_ffn_ratio: [2, 4]
  n_kv_heads: [1]
"""
MEASURED = "qwen3_1.7b=0.8,smollm2_135m=0.6"
STUDY = ("--space", "space.yaml", "--preset", "device", "--device", "jetson_agx_orin_64gb", "--precision", "q4_k_m")
LINE = (*STUDY, "--draft-space", "small.yaml", "--output-tokens", "128", "--drafted", "1,3")


@pytest.fixture(autouse=True)
def _spaces(tmp_path: Path) -> None:
    (tmp_path / "space.yaml").write_text(SPACE)
    (tmp_path / "small.yaml").write_text(DRAFTS)


def rows(path: str) -> list[dict[str, str]]:
    """A CSV's rows."""
    with Path(path).open(newline="") as file:
        return list(csv.DictReader(file))


def test_pairs_are_written_and_priced_as_explain_prices_them(inside: Callable[..., Any]) -> None:
    ran = inside("pairs", *LINE, "--acceptance", MEASURED, "--budget", "tpot_ms=20", "--out", "found", "--quiet")
    assert ran.code == 0, ran.err
    pairs, both = rows("found/pairs.csv"), rows("found/frontier.csv")
    assert pairs
    assert {row["drafted"] for row in pairs} <= {"1", "3"}
    assert {row["drafted"] for row in rows("found/alone.csv")} == {"0"}
    one = next(row for row in both if row["drafted"] != "0")
    assert float(one["nats_below_alone"]) > 0.0
    assert int(one["draft_params"]) < int(one["params"])
    again = explained(inside, one)
    assert again["total_ms"] == pytest.approx(float(one["total_ms"]), rel=1e-9)
    assert again["resident_gb"] == pytest.approx(float(one["resident_gb"]), rel=1e-9)


def explained(inside: Callable[..., Any], row: dict[str, str]) -> dict[str, float]:
    """Metrics of a row's target with its draft, as `explain` has them."""
    columns = ("depth", "width", "n_experts", "top_k", "expert_size", "n_kv_heads", "n_heads", "head_dim")
    target = ",".join(f"{name}={row[name]}" for name in columns)
    draft = {name: int(float(row[f"draft_{name}"])) for name in columns}
    asked = (
        "--set",
        f"serving.speculation=draft:{row['drafted']}",
        "--set",
        f"serving.acceptance=draft={row['first_accepted']}",
    )
    asked += ("--set", f"serving.draft={json.dumps(draft)}")
    ran = inside("explain", "--architecture", target, *STUDY, *asked, "--output-tokens", "128", "--json")
    assert ran.code == 0, ran.err
    found: dict[str, float] = json.loads(ran.out)["metrics"]
    return found


def test_the_written_study_gives_the_same_tables(inside: Callable[..., Any]) -> None:
    assert inside("pairs", *LINE, "--acceptance", MEASURED, "--out", "a", "--quiet").code == 0
    repeated = ("--config", "a", "--draft-space", "a/drafts.yaml", "--drafted", "1,3", "--acceptance", MEASURED)
    assert inside("pairs", *repeated, "--out", "b", "--quiet").code == 0
    for name in ("frontier.csv", "pairs.csv", "alone.csv"):
        assert Path("a", name).read_bytes() == Path("b", name).read_bytes()


def test_json_holds_both_picks_and_their_difference(inside: Callable[..., Any]) -> None:
    ran = inside("pairs", *LINE, "--acceptance", MEASURED, "--budget", "tpot_ms=20", "--json", "--quiet")
    found = json.loads(ran.out)
    pair, alone = found["pick"]["pair"], found["pick"]["alone"]
    assert found["nats"] == pytest.approx(pair["loss"] - alone["loss"])
    assert pair["tpot_ms"] <= 20
    assert alone["tpot_ms"] <= 20
    assert found["considered"] == 216 * 18 * 2


def test_the_answer_says_what_it_rests_on(inside: Callable[..., Any]) -> None:
    ran = inside("pairs", *LINE, "--acceptance", MEASURED)
    assert "Acceptance of a draft's first token by its perplexity" in ran.out
    assert "Exact: the frontier of all" in ran.out
    assert "given this acceptance" in ran.out
    one = inside("pairs", *LINE, "--acceptance", "0.7", "--vocabulary", "0")
    assert "one number for every draft makes the smallest the best" in one.err
    assert "vocabulary: 0 leaves out the LM head" in one.err


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ((), "acceptance: expected the probability that a draft's first token is accepted, got none"),
        (("--acceptance", "1.2"), "acceptance: expected a share between 0 and 1, got '1.2'"),
        (("--acceptance", "20=0.5,40=0.8"), "of which the better is accepted no less"),
        (("--acceptance", "20=0.5"), "acceptance: expected two drafts or more"),
        (("--acceptance", "0.5=0.5,40=0.3"), "acceptance: expected a perplexity above 1"),
        (("--acceptance", "qwen9=0.5,40=0.3"), "acceptance: "),
        (("--acceptance", "0.7", "--drafted", "0,2"), "drafted: expected numbers from 1 to"),
        (("--acceptance", "0.7", "--draft-space", "nowhere"), "draft-space: "),
        (("--acceptance", "0.7", "--objectives", "total_ms"), "objectives: expected loss and other metrics"),
        (("--acceptance", "0.7", "--budget", "params_total=5e9"), "params_total: expected a metric of pairs"),
        (("--acceptance", "0.7", "--set", "serving.speculation=mtp:1"), "serving: expected its figures alone"),
        (("--acceptance", "0.7", "--vocabulary", "8k,16k"), "expected one vocabulary for target and draft"),
        (("--acceptance", "0.7", "--set", "precisions=int8,int4"), "expected one precision for target and draft"),
    ],
)
def test_what_cannot_be_asked_is_refused_by_name(inside: Callable[..., Any], typed: tuple[str, ...], said: str) -> None:
    ran = inside("pairs", *LINE, *typed)
    assert ran.code == 2
    assert said in ran.err


def test_nothing_within_the_budgets_ends_with_three(inside: Callable[..., Any]) -> None:
    ran = inside("pairs", *LINE, "--acceptance", "0.7", "--budget", "total_ms=0.01")
    assert ran.code == 3
    assert "neither a pair nor a target alone" in ran.err
