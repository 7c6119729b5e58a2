"""The claims recomputed: labels exist once in the page, verdicts are known, same bytes twice."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nas.problem.breakdown import explained
from plas_paper.reproduce import latency_claims, prediction_claims, search_claims, theory_claims
from plas_paper.reproduce import whole_spaces as spaces
from plas_paper.reproduce.claim import CONDITIONS, FAILS, HOLDS, UNKNOWN, VERDICTS, Claim, statements
from plas_paper.reproduce.reproduction_page import page, reproduction, verdicts

EXPECTED = {
    "1,942": (UNKNOWN, "13,120"),
    "INT8 gains": (HOLDS, "decode 1.93"),
    "100 %": (CONDITIONS, "prefill 93 %, decode 99 %, total 98 %"),
    "INT8 consistently": (HOLDS, "fp16 prefill 268, decode 181, total 202"),
    "about 8 experts": (FAILS, "1024 in / 16 out 45 %"),
    "leaves memory open": (
        CONDITIONS,
        "equal memory 7.3 % lower with 0.629 GB (12 layers, width 1,280, 8 experts top-2",
    ),
    "Four applications": (
        HOLDS,
        "16 layers, width 2,304, 8 experts top-1, FFN ratio 0.5 each, 36 heads (4 KV), loss 3.1446",
    ),
    "19.42": (UNKNOWN, "27.3 % lower at 93.4 ms"),
    "13,600": (HOLDS, "13,600"),
    "Memory-only: ρ*": (CONDITIONS, "0.1730 at d = 2048 and 0.3955 at 1024"),
    "ρ* ∝ d^−1.19": (CONDITIONS, "factor 2.286"),
    "by a quadratic": (FAILS, "0.2176, 0.4338, 0.6486"),
    "η much less": (FAILS, "η_lo = 0.1392, memory alone from η_hi = 0.3799"),
    "10 TOPS": (FAILS, "ρ* 0.0953"),
    "l* ∝": (FAILS, "+0.13 (D2, 4 GB)"),
    "Memory-only optima": (CONDITIONS, "35 at 131k"),
    "20 minutes": (UNKNOWN, "not published"),
    "align closely": (CONDITIONS, "At 5.39 ms of prefill they promise 0.91 nats too much"),
    "printed r*": (HOLDS, "r* is met to 1e-8, gqa* to 1e-8"),
    "saturates": (CONDITIONS, "at 400 ms of decoding l 32, and r 1.80 takes the rest"),
    "width gives more": (FAILS, "prefill 51 % of the faster half, 73 % of the slower"),
    "primarily compute-bound": (CONDITIONS, "scores in memory 12 %, fused attention 36 %"),
    "Kernel launches": (FAILS, "Qwen3-0.6B 73 % more prefill"),
    "K = 2, E = 16": (FAILS, "K/E = 0.125"),
    "K = 2, E = 10": (UNKNOWN, "E is 1, 8, 16"),
}


@pytest.fixture(scope="module")
def claims() -> list[Claim]:
    """Every claim, recomputed."""
    return [*search_claims.claims(), *latency_claims.claims(), *theory_claims.claims(), *prediction_claims.claims()]


@pytest.mark.slow
@pytest.mark.parametrize("words", list(EXPECTED))
def test_verdicts_and_numbers(claims: list[Claim], words: str) -> None:
    claim = next(c for c in claims if words in c.text)
    verdict, number = EXPECTED[words]
    assert claim.verdict == verdict
    assert number in claim.found


def test_the_share_of_compute_bound_time_is_that_of_explain() -> None:
    for study in ({}, {"attention": "fused"}, {"precision": "int8", "input_tokens": 4096}):
        made = spaces.problem(**study)
        rows = explained(made, made.headed(latency_claims.EXAMPLE)).operators["prefill"]
        bound = sum(row.ms for row in rows if row.bound == "compute") / sum(row.ms for row in rows)
        assert prediction_claims.compute_share(None, **study)[0] == pytest.approx(bound, rel=1e-9)


def test_returns_of_a_step_against_the_two_designs() -> None:
    every = spaces.whole()
    rows = every.frontier("total_ms")[::25]
    for gene, name in ((0, "depth"), (1, "width")):
        gained = prediction_claims.returns("total_ms", rows, gene)
        for row, found in zip(rows.tolist(), gained.tolist(), strict=True):
            shape = every.shapes[row : row + 1]
            values = getattr(every.problem.space, f"{name}s")
            later = values[values > getattr(shape, name)[0]]
            same = np.flatnonzero(
                (getattr(every.shapes, name) == (later[0] if len(later) else -1))
                & np.logical_and.reduce(
                    [
                        getattr(every.shapes, other) == getattr(shape, other)[0]
                        for other in ("depth", "width", "n_experts", "top_k", "n_kv_heads")
                        if other != name
                    ]
                )
                & np.isclose(every.shapes.expert_ffn_ratio, shape.expert_ffn_ratio[0])
            )
            if len(same) == 0 or shape.n_kv_heads[0] == shape.n_heads[0]:
                continue  # the end of the axis, KV heads that the next width has not, or all of them
            less = every.metrics["loss"][row] - every.metrics["loss"][same[0]]
            longer = every.metrics["total_ms"][same[0]] - every.metrics["total_ms"][row]
            assert found == pytest.approx(less / longer, rel=1e-12)


@pytest.mark.slow
def test_every_claim_names_its_place_and_its_command(claims: list[Claim]) -> None:
    assert len(claims) > 30
    assert {claim.verdict for claim in claims} == set(VERDICTS)
    assert all(
        claim.label and claim.found and claim.command.startswith(("plas ", "python benchmarks/")) for claim in claims
    )
    assert len({claim.text for claim in claims}) == len(claims)
    assert [claim.statement for claim in claims] == list(statements().values())


@pytest.mark.slow
def test_numbers_and_designs_of_claims(claims: list[Claim]) -> None:
    by_key = {claim.statement.key: claim for claim in claims}
    assert (by_key["int8-gain"].designs, by_key["int8-gain"].settings) == (2 * 13_120, 2)
    assert by_key["throughput"].designs == 50_000
    assert (by_key["weeks"].designs, by_key["memory-rate"].designs) == (0, 0)
    (rate, again) = (by_key[key].numbers for key in ("worked-rates", "moe-share"))
    assert [(n.printed, round(n.ours, 4)) for n in rate] == [(0.15, 0.1730), (0.25, 0.3955), (0.20, 0.3955)]
    assert [f"{n.ours:.0f}" for n in again] == ["93", "99", "98"]
    assert sum(len(claim.numbers) for claim in claims) > 30


def test_a_command_that_rows_share_is_said_once_above_them() -> None:
    stated = list(statements().values())[:3]
    alike = [Claim(one, HOLDS, "Ours.") for one in stated[:2]] + [Claim(stated[2], HOLDS, "Ours.", "plas run")]
    text = page({"Theory": alike, "Costs": alike[2:]})
    assert text.count("`plas reproduce`") == 1 + 1  # once in the head, once above the table
    assert text.count("| `plas run` |") == 2
    assert text.count("| Ours. |  |") == 2
    assert text.count("Command of a row that names none") == 1


@pytest.mark.slow
def test_the_command_writes_the_same_page_every_time(inside: Callable[..., Any], tmp_path: Path) -> None:
    said = inside("reproduce", "--out", "page.md")
    assert said.code == 0, said.err
    text = (tmp_path / "page.md").read_text(encoding="utf-8")
    spaces.evaluated.cache_clear()
    again = reproduction()
    assert text == page(again)
    numbers = json.loads(inside("reproduce", "--json").out)
    assert sum(numbers["verdicts"].values()) == len(numbers["claims"])
    assert numbers["verdicts"] == verdicts(again)
