"""Designs with formats of their own, and what few bits cost, through the commands as a user types them."""

import csv
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nas.errors import UsageError
from nas.problem.evaluations import frontier_rows
from nas.problem.law_caveats import blind_axes
from nas.problem.objective import Budget
from nas.problem.picks import PickRule
from nas.search.assembly import assemble
from objectives.plugins import importable
from search_spaces import formats

SPACE = """name: tiny
axes:
  depth: [4, 8, 12]
  width: [512, 1024]
  n_experts: [1, 8]
  top_k: [1, 2]
  expert_ffn_ratio: [0.5, 1, 2, 4]
  n_kv_heads: [1, 4, n_heads]
"""
LINE = ("--space", "space.yaml", "--quiet", "--seed", 3, "--preset", "paper")
EXACT = ("run", "--algo", "exact", "--preset", "paper", "--verbose", *LINE[:2])
FORMATS = ("--precisions", "fp16,int8,int4")


@pytest.fixture(autouse=True)
def _space(tmp_path: Path) -> None:
    (tmp_path / "space.yaml").write_text(SPACE)


def rows(path: str) -> list[dict[str, str]]:
    """A CSV's rows."""
    with Path(path).open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
def test_formats_are_searched_chosen_explained_and_repeated(inside: Callable[..., Any]) -> None:
    kumar = ("--set", "precision_law=kumar")
    ran = inside("run", "--algo", "nsga2", *LINE, *FORMATS, *kumar, "--evaluations", 60, "--out", "run")
    assert ran.code == 0
    assert {row["precision"] for row in rows("run/evaluations.csv")} == {"fp16", "int8", "int4"}
    first = Path("run/evaluations.csv").read_bytes()
    assert inside("run", "--config", "run", "--quiet", "--out", "again").code == 0
    assert Path("again/evaluations.csv").read_bytes() == first
    assert inside("run", "--resume", "run", "--evaluations", 90, "--quiet").code == 0
    assert len(rows("run/evaluations.csv")) == 90
    chosen = inside("select", "run", "--select", "best", "--out", "best.csv")
    assert chosen.code == 0
    best = rows("best.csv")[0]
    explained = json.loads(inside("explain", "run", "--select", "best", "--json").out)
    assert explained["metrics"]["total_ms"] == float(best["total_ms"])
    assert explained["metrics"]["loss"] == float(best["loss"])
    told = inside("watch", "run", "--once")
    assert told.code == 0


def test_bigger_at_int4_or_smaller_at_int8_is_one_exact_frontier(inside: Callable[..., Any]) -> None:
    free = inside(*EXACT, *FORMATS, "--out", "free")
    assert "the loss does not see precision: int8 and int4 look free; name a --set precision_law=LAW" in free.err
    assert {row["precision"] for row in rows("free/picks.csv")} == {"int4"}
    assert "precision" in json.loads(Path("free/summary.json").read_text())["law_does_not_see"]
    both = ("--set", "precision_law=post_training,kumar")
    ran = inside(*EXACT, *FORMATS, *both, "--budget", "total_ms=10", "--out", "costly")
    assert ran.code == 0
    assert "prices every design" not in ran.err
    frontier = rows("costly/frontier.csv")
    assert {row["precision"] for row in frontier} >= {"int4", "int8"}
    assert any(row["n_experts"] != "1" for row in frontier if row["precision"] != "fp16")
    assert json.loads(Path("costly/summary.json").read_text())["law_does_not_see"] == []


def test_a_study_of_one_format_pays_what_it_costs(inside: Callable[..., Any]) -> None:
    for law in ("none", "qat"):
        settings = ("--set", "int4_group_size=32", "--precision", "int4", "--set", f"precision_law={law}")
        assert inside("run", "--algo", "exact", *LINE, *settings, "--out", law).code == 0
    by_shape = {tuple(row.values())[:12]: float(row["loss"]) for row in rows("none/evaluations.csv")}
    paid = [(row, float(row["loss"])) for row in rows("qat/evaluations.csv") if row["state"] == "ok"]
    assert len(paid) == len(by_shape)
    for row, loss in paid:
        assert loss > by_shape[tuple(row.values())[:12]]


OF_EXPERTS = r", as of a dense model: of experts nobody measured it\)"


@pytest.mark.slow
def test_the_answer_says_what_its_format_costs_and_with_what_doubt(inside: Callable[..., Any]) -> None:
    for law, format_, said in (
        (
            "post_training",
            "q4_k_m",
            r"; q4_k_m costs 0\.0\d{3} of it, 90 % 0\.00\d+ to 0\.\d+, by post_training" + OF_EXPERTS,
        ),
        ("qat", "int4", r"; int4 costs 0\.0\d{3} of it, error unknown, by qat" + OF_EXPERTS),
    ):
        line = (*EXACT, "--precision", format_, "--set", f"precision_law={law}")
        ran = inside(*line, "--budget", "memory_gb=2", "--out", law)
        assert ran.code == 0
        assert re.search(said, " ".join(ran.out.split())), ran.out
    free = inside(*EXACT, "--precision", "q4_k_m", "--out", "free")
    assert ", as if in 16 bits)" in " ".join(free.out.split())


def test_what_cannot_be_asked_is_refused_by_name(inside: Callable[..., Any]) -> None:
    for asked, said in (
        (
            ("run", "--algo", "exact", "--precisions", "int9"),
            "--precisions: expected a format (the 61 names of 'plas list formats')",
        ),
        (("run", "--algo", "exact", "--precision", "int4_kv2"), "--precision: expected a format (the"),
        (
            ("run", "--algo", "exact", "--set", "precision_law=foo"),
            "--set precision_law: expected qat, kumar or post_training",
        ),
        (("run", "--algo", "exact", "--precisions", "fp16,nvfp4_down8"), "expected a device with an fp4 peak"),
        (
            ("theory", "--set", "precisions=[fp16,int4]", "--budget", "decode_ms=20"),
            "expected a space of one precision",
        ),
        (
            ("run", "--algo", "nsga2", "--precision", "int4", "--set", "precision_law=qat,kumar"),
            "expected --algo exact",
        ),
        (
            ("run", "--algo", "exact", "--precision", "q4_k_m", "--set", "precision_law=qat"),
            "precision: expected formats that precision law qat prices (fp16, fp32, int4, nvfp4, nvfp4_down8, w4a16), got q4_k_m; "
            "drop it or give --set precision_law=post_training",
        ),
        (
            ("run", "--algo", "exact", "--precisions", "fp16,q8_0,q2_k", "--set", "precision_law=post_training"),
            "mlx_6bit, mlx_8bit), got q2_k; drop it",
        ),
        (
            ("run", "--algo", "exact", "--precisions", "int4,int8", "--set", "precision_law=kumar,qat"),
            "precision law qat prices (fp16, fp32, int4, nvfp4, nvfp4_down8, w4a16), got int8; drop it",
        ),
    ):
        found = inside(*asked)
        assert found.code == 2
        assert said in found.err
    with pytest.raises(UsageError, match=r"precision law kumar prices .*, got q8_0"):
        assemble({"space": "space.yaml", "precision": "q8_0", "precision_law": "kumar"}, {})
    Path("own.yaml").write_text(SPACE + "  precision: [fp16, int4]\n")
    devices = inside("devices", "--devices", "rtx_4090", "--space", "own.yaml")
    assert devices.code == 2
    assert "leave the axis out and name --precisions" in devices.err


@pytest.mark.slow
def test_each_format_keeps_its_own_profile_when_a_run_is_read_again(inside: Callable[..., Any]) -> None:
    board = ("--preset", "device", "--device", "jetson_orin_nano_super_8gb", "--precisions", "fp16,q8_0,int4")
    ran = inside("run", "--algo", "random", *LINE, *board, "--evaluations", 40, "--out", "run")
    assert ran.code == 0
    assert inside("run", "--config", "run", "--quiet", "--out", "again").code == 0
    assert Path("again/evaluations.csv").read_bytes() == Path("run/evaluations.csv").read_bytes()
    assert inside("run", "--resume", "run", "--evaluations", 50, "--quiet").code == 0
    found = [row for row in rows("run/evaluations.csv") if row["state"] == "ok"]
    by_format = {row["precision"]: index for index, row in enumerate(found)}
    assert set(by_format) == {"fp16", "q8_0", "int4"}
    for name, index in by_format.items():
        told = json.loads(inside("explain", "run", "--index", index, "--json").out)
        assert told["metrics"]["decode_ms"] == float(found[index]["decode_ms"]), name
    assert "times are extrapolated: contexts of 1,040 tokens" in inside("select", "run", "--select", "best").err


LONG = ("--set", "input_tokens=30000", "--set", "vocabulary=0")
CACHES = ("--precisions", "int4,int4_kv8,int4_kv4")


def test_a_kv_cache_of_few_bits_takes_less_time_and_memory_and_what_it_costs_is_said(
    inside: Callable[..., Any],
) -> None:
    line = (*EXACT, *CACHES, *LONG)
    refused = inside(*line, "--set", "precision_law=kumar,qat", "--out", "refused")
    assert refused.code == 2
    assert "got int4_kv8 and int4_kv4; drop them or give --set precision_law=kumar" in refused.err
    ran = inside(*line, "--set", "precision_law=kumar", "--out", "run")
    assert ran.code == 0
    assert "precision law kumar has no constants" not in ran.err
    found = [row for row in rows("run/evaluations.csv") if row["state"] == "ok"]
    by_format = {name: [row for row in found if row["precision"] == name] for name in CACHES[1].split(",")}
    for wide, *fewer in zip(*by_format.values(), strict=True):
        cache = 2 * int(wide["depth"]) * 30016 * int(wide["n_kv_heads"]) * int(wide["head_dim"]) / 1e9
        for row, bytes_ in zip(fewer, (1.0, 0.5), strict=True):
            assert float(wide["resident_gb"]) - float(row["resident_gb"]) == pytest.approx(
                (2 - bytes_) * cache, rel=1e-9
            )
            assert row["memory_gb"] == wide["memory_gb"]
            assert float(row["decode_ms"]) < float(wide["decode_ms"])
            assert float(row["loss"]) > float(wide["loss"])


def test_down_projections_with_inputs_of_8_bits_are_a_format(inside: Callable[..., Any]) -> None:
    board = (
        "--device",
        "jetson_agx_thor",
        "--precisions",
        "nvfp4,nvfp4_down8",
        "--set",
        "precision_law=qat,kumar",
    )
    ran = inside(*EXACT, *board, "--out", "run")
    assert ran.code == 0
    assert "precision law kumar has no constants for nvfp4_down8: taken as nvfp4, which costs more" in ran.err
    found = [row for row in rows("run/evaluations.csv") if row["state"] == "ok"]
    pairs = list(zip(found[::2], found[1::2], strict=True))
    assert pairs
    for four, eight in pairs:
        assert (four["precision"], eight["precision"]) == ("nvfp4", "nvfp4_down8")
        if float(four["params_total"]) > 74e6:  # what qat was fitted on
            assert float(eight["loss"]) < float(four["loss"])
        assert float(eight["prefill_ms"]) > float(four["prefill_ms"])
        assert eight["memory_gb"] == four["memory_gb"]


def solved(**study: Any) -> tuple[Any, Any]:
    """A study's problem and its whole space evaluated."""
    problem = assemble({"space": "space.yaml", **study}, {}).problem
    return problem, problem.evaluate(problem.space.genotypes(np.arange(problem.space.size)))


def test_select_asks_a_run_anew_in_formats_and_under_rivals(inside: Callable[..., Any]) -> None:
    assert inside("run", "--algo", "random", *LINE, "--evaluations", 20, "--out", "run").code == 0
    refused = inside("select", "run", "--select", "best", *FORMATS, "--precision-law", "qat")
    assert refused.code == 2
    assert "precision law qat prices (fp16, fp32, int4, nvfp4, nvfp4_down8, w4a16), got int8; drop it" in refused.err
    asked = ("select", "run", "--select", "budget:total_ms=10", *FORMATS, "--precision-law", "post_training,kumar")
    told = inside(*asked)
    assert told.code == 0
    problem, whole = solved(precisions="fp16,int8,int4", precision_law="post_training")
    said = " ".join(told.out.split())
    assert f"1 chosen, solved exactly over all {problem.space.size:,} architectures" in said
    assert "Least worst regret" in said
    (pick,) = json.loads(inside(*asked, "--json", "--quiet").out)
    row = PickRule(Budget("total_ms", 10.0)).row(whole)
    assert row is not None
    assert pick["loss"] == whole.metrics["loss"][row]
    (format_, _), *_ = problem.architectures(whole.genotypes[[row]]).in_formats()
    assert pick["precision"] == format_
    assert pick["regret_hw_codesign"] == 0.0
    assert pick["regret_hw_codesign+kumar"] == 0.0  # both take it
    kept = json.loads(inside(*asked[:2], *FORMATS, "--json", "--quiet").out)
    free, every = solved(precisions="fp16,int8,int4")
    members = every[frontier_rows(every)]
    assert [(each["loss"], each["total_ms"]) for each in kept] == list(
        zip(members.metrics["loss"].tolist(), members.metrics["total_ms"].tolist(), strict=True)
    )
    assert {each["precision"] for each in kept} == {"int4"}
    assert free.space.size == problem.space.size


def test_select_replaces_the_precision_law_of_a_run(inside: Callable[..., Any]) -> None:
    laws = "post_training,kumar"
    named = ("--set", f"precision_law={laws}")
    ran = inside("run", "--algo", "exact", *LINE, *FORMATS, *named, "--budget", "total_ms=12", "--out", "run")
    assert ran.code == 0
    for law in ("kumar", "none"):
        (best,) = json.loads(
            inside("select", "run", "--select", "best", "--precision-law", law, "--json", "--quiet").out
        )
        named = {} if law == "none" else {"precision_law": law}
        _, whole = solved(precisions="fp16,int8,int4", budgets={"total_ms": 12}, **named)
        row = PickRule(None).row(whole)
        assert row is not None
        assert best["loss"] == whole.metrics["loss"][row]
        assert not any(name.startswith("regret") for name in best)
    again = json.loads(inside("select", "run", "--select", "best", "--precision-law", laws, "--json", "--quiet").out)
    assert again == json.loads(
        inside("select", "run", "--select", "best", "--json", "--quiet", "--precision-law", laws).out
    )
    assert {"regret_hw_codesign", "regret_hw_codesign+kumar"} <= set(again[0])
    refused = inside("select", "run", "--precisions", "int9")
    assert refused.code == 2
    assert "precisions: " in refused.err


@pytest.mark.slow
def test_select_and_explain_solve_anew_over_formats_and_tokens(
    inside: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nas.strategies.exact.SMALL", 0)  # first: an import copies the other
    monkeypatch.setattr("nas.exact.solution.SMALL", 0)
    study = {"law": "chinchilla_epoch", "tokens": [2e9, 2e10], "precisions": "fp16,int8,int4", "precision_law": "kumar"}
    flags = ("--law", "chinchilla_epoch", "--tokens", "2B,20B", *FORMATS, "--set", "precision_law=kumar")
    training = ("--set", "training.device=h100_sxm", "--budget", "train_hours=5")
    ran = inside(*EXACT, *flags, *training, "--quiet", "--out", "run")
    assert ran.code == 0
    _, whole = solved(**study, training={"device": "h100_sxm"}, budgets={"train_hours": 5})
    assert len(rows("run/evaluations.csv")) < len(whole.keys)
    for how, budget in (
        ("budget:total_ms=9", Budget("total_ms", 9.0)),
        ("budget:memory_gb=0.1", Budget("memory_gb", 0.1)),
    ):
        (pick,) = json.loads(inside("select", "run", "--select", how, "--json", "--quiet").out)
        row = PickRule(budget).row(whole)
        assert row is not None
        assert pick["loss"] == whole.metrics["loss"][row]
    swept = json.loads(inside("select", "run", "--sweep", "train_hours=1:5:1", "--json", "--quiet").out)
    for each in swept:
        within = PickRule(Budget("train_hours", each["limit"]), whole.budgets).row(replace(whole, budgets=()))
        assert within is not None
        assert each["loss"] == whole.metrics["loss"][within]
    hopeless = inside("select", "run", "--budget", "total_ms=0.01", "--quiet")
    assert hopeless.code == 3
    least = replace(whole, budgets=(Budget("train_hours", 5.0),))
    fastest = float(whole.metrics["total_ms"][least.feasible].min())
    assert f"{fastest:.4g}"[:4] in hopeless.err + hopeless.out
    explained = json.loads(inside("explain", "run", "--select", "best", "--json").out)
    (gain,) = [each for each in explained["gains"]["budgets"] if each["metric"] == "train_hours"]
    others = replace(whole, budgets=tuple(b for b in whole.budgets if b.metric != "train_hours")).feasible
    better = others & (whole.metrics["loss"] <= explained["gains"]["loss"] * (1 - 1e-11))
    assert gain["relaxed"]["at"] == pytest.approx(whole.metrics["train_hours"][better].min(), rel=1e-11)


def test_formats_and_precision_laws_are_listed(inside: Callable[..., Any]) -> None:
    laws = {row["name"]: row for row in json.loads(inside("list", "precision-laws", "--json").out)}
    assert {name: row["prices"] for name, row in laws.items()} == {
        "qat": "int4, nvfp4, nvfp4_down8, w4a16",
        "kumar": "int8, int4, nvfp4, w4a16, kv8, kv4",
        "post_training": "int8, int4, w4a16, q4_0, q4_k_m, q5_k_m, q6_k, q8_0, mxfp4, q4_k_s, iq4_xs, fp8, mlx_4bit, mlx_6bit, mlx_8bit",
    }
    found = {row["name"]: row for row in json.loads(inside("list", "formats", "--json").out)}
    assert tuple(found) == formats.FORMATS
    assert (found["int4_kv8"]["weight bits"], found["int4_kv8"]["KV bits"]) == (4.0, 8.0)
    assert (found["q4_k_m"]["types"], found["q4_k_m"]["head bits"]) == (
        "Q4_K, values Q4_K/Q6_K, down Q4_K/Q6_K",
        6.5625,
    )
    assert (found["nvfp4_down8"]["down input bits"], found["nvfp4_down8"]["down peak"]) == (8.0, "int8")
    assert "2505.14302" in inside("list", "precision-laws").out


def test_designs_that_a_law_says_nothing_of_make_no_axis_blind() -> None:
    study = assemble({"precisions": "int8,int4", "precision_law": "kumar"}, {})
    assert blind_axes(study.problem.space, study.problem.scenario.law) == ()


@pytest.mark.slow
@pytest.mark.parametrize("algo", [name for name in importable("nas.strategies") if name not in ("exact", "optuna_gp")])
def test_every_strategy_searches_formats_to_the_same_bytes_again(algo: str, inside: Callable[..., Any]) -> None:
    for out in ("first", "second"):
        ran = inside("run", "--algo", algo, *LINE, *FORMATS, "--evaluations", 60, "--out", out)
        if ran.code == 2 and "install" in ran.err:
            pytest.skip(f"{algo}: {ran.err}")
        assert ran.code == 0, ran.err
    assert Path("first/evaluations.csv").read_bytes() == Path("second/evaluations.csv").read_bytes()
    assert len({row["precision"] for row in rows("first/evaluations.csv")}) > 1
