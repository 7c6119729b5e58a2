"""What a law cannot say, typed as a user would: a variable that the space lacks, designs out of its range, losses of two laws."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.nas.commands.test_formats import SPACE

EXPERTS = SPACE.replace("[1, 8]", "[4, 8]")
EXACT = ("run", "--preset", "paper", "--algo", "exact", "--space", "space.yaml", "--no-plots")
Inside = Callable[..., Any]


@pytest.fixture(autouse=True)
def _spaces(tmp_path: Path) -> None:
    (tmp_path / "space.yaml").write_text(SPACE)
    (tmp_path / "experts.yaml").write_text(EXPERTS)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--tokens", "20B"), "tokens: expected a law that depends on them, got hw_codesign"),
        (("--tokens", "2B,20B"), "tokens: expected laws that see them beside an axis of tokens, got hw_codesign"),
        (
            ("--law", "chinchilla", "--set", "laws=routed", "--tokens", "2B,20B"),
            "tokens: expected laws that see them beside an axis of tokens, got routed",
        ),
        (("--set", "unique_tokens=5B"), "unique_tokens: expected a law of repeated text, got hw_codesign"),
        (("--set", "laws=no_such_law"), "--set laws: expected a law"),
        (("--law", "own.yaml"), "form.terms.own: expected quantities among"),
    ],
)
def test_a_variable_that_a_law_or_a_space_lacks_is_refused_by_name(
    flags: tuple[str, ...], said: str, inside: Inside
) -> None:
    form = "{terms: {own: {scale: a, powers: {n_layers: b}}}}"
    Path("own.yaml").write_text(f"name: own\nform: {form}\ncoefficients: {{a: 1, b: -1}}\n")
    ran = inside(*EXACT, *flags, "--out", "run")
    assert ran.code == 2
    assert said in " ".join(ran.err.split())
    assert not Path("run").exists()


def test_a_law_that_prices_no_design_of_a_space_says_which_it_would(inside: Inside) -> None:
    line = ("run", "--algo", "exact", "--space", "experts.yaml", "--no-plots")
    ran = inside(*line, "--law", "chinchilla_epoch", "--out", "dense")
    assert ran.code == 2
    assert "law chinchilla_epoch prices designs of n_experts 1 alone" in ran.err
    rival = inside(*line, "--set", "laws=chinchilla_epoch", "--out", "rival")
    assert rival.code == 0
    assert "chinchilla_epoch prices nothing here (designs of n_experts 1 alone)" in " ".join(rival.out.split())
    few = inside(*line, "--precisions", "w4a16,int4", "--set", "precision_law=qat", "--out", "few")
    assert few.code == 0, few.err
    assert "n_experts 1 alone" not in few.err


def test_a_precision_law_without_few_bits_to_price_says_so(inside: Inside) -> None:
    ran = inside(*EXACT, "--set", "precision_law=qat", "--out", "run")
    assert (ran.code, "got one without: no format has few bits; drop it" in ran.err) == (2, True)


def test_designs_beyond_a_laws_range_are_marked_and_named(inside: Inside) -> None:
    ran = inside(*EXACT, "--verbose", "--out", "run")
    assert "lie outside (*)" in " ".join(ran.out.split())
    explained = inside("explain", "--architecture", "depth=200,width=8192,n_kv_heads=8,expert_size=8192")
    assert "layers 200 (trained: " in explained.out
    assert "outside of what law hw_codesign was fitted on" in explained.out
    tokens = inside(*EXACT, "--law", "joint_moe", "--tokens", "1T", "--out", "tokens")
    assert "law joint_moe was fitted on 5e+08 to 8e+10 tokens; at 1e+12 it extrapolates (*)" in tokens.err
    small = ("--precisions", "fp16,int4", "--set", "precision_law=qat")
    assert inside(*EXACT, *small, "--budget", "memory_gb=0.01", "--out", "small").code == 0
    few = inside("explain", "small", "--select", "best")
    assert (
        "what its format costs extrapolates: precision law qat was fitted on parameters 7.4e+07 to 5.95e+08" in few.out
    )


def test_losses_of_two_laws_are_compared_nowhere(inside: Inside) -> None:
    assert inside(*EXACT, "--set", "laws=sparsity_iso", "--out", "first").code == 0
    with Path("first/laws.csv").open(encoding="utf-8") as lines:
        columns = next(csv.reader(lines))
    assert [name for name in columns if "loss" in name] == []
    nothing = inside("select", "first", "--laws", ",")
    assert (nothing.code, "--laws: expected other laws than the run's, got ','" in nothing.err) == (2, True)
    chosen = json.loads(inside("select", "first", "--select", "best", "--laws", "routed,sparsity_iso", "--json").out)[0]
    assert {name for name in chosen if "loss" in name} == {"loss"}
    assert {"regret_routed", "regret_sparsity_iso"} <= set(chosen)
