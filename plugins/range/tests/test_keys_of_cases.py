"""Which keys a case may have for itself: each is priced as a study of its own is, every other is refused by name."""

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from nas.study.configuration import StudyConfig
from plas_range.configuration import CASE_KEYS

DEVICE = "jetson_orin_nano_super_8gb"
OTHER: dict[str, Any] = {
    "precision": "fp16", "int4_group_size": 32, "batch": 2, "input_tokens": 300, "output_tokens": 64, "latency": "closed_form",
    "attention": "fused", "causal": True, "complete": True, "head_bytes": 1.0, "engine": "llama.cpp", "vocabulary": 32_000, "tied": False,
    "input_text": "2 kB", "output_text": 300.0, "sustained": 0.6, "prefill_chunk": 100,
}  # fmt: skip
STUDY = {"precision": "int4", "vocabulary": 151_936, "budgets": {"total_ms": 4000}, "as_fast_as": "none"}
CLOSED = {"preset": "paper", "precision": "fp16", "vocabulary": 0}  # which is all that closed forms cover
OF_THE_STUDY = sorted({*StudyConfig.model_fields} - {*CASE_KEYS, "device", "budgets", "applications"})


def answers(inside: Callable[..., Any], cases: list[dict[str, Any]], out: str) -> list[dict[str, str]]:
    """The pick of each case, a column but its number in the study."""
    study = {**STUDY, **(CLOSED if any("latency" in case for case in cases) else {}), "cases": cases}
    Path("study.yaml").write_text(yaml.safe_dump(study))
    answer = inside(
        "devices", "--config", "study.yaml", "--models", "qwen2.5_0.5b", "--no-plots", "--json", "--out", out
    )
    assert answer.code == 0, answer
    with (Path(out) / "picks.csv").open(encoding="utf-8") as file:
        picks = {row["case"]: row for row in csv.DictReader(file)}
    return [
        {name: picks[case["case"]][name] for name in ("loss", "total_ms", "resident_gb", "depth", "width")}
        for case in cases
    ]


def test_every_key_has_another_value_here() -> None:
    assert set(OTHER) == set(CASE_KEYS)
    assert not [key for key, value in OTHER.items() if value == STUDY.get(key, StudyConfig.model_fields[key].default)]


@pytest.fixture(scope="module")
def known() -> dict[str, dict[str, str]]:
    """Picks of cases alone, by the case: most keys are tried beside the same one."""
    return {}


@pytest.mark.parametrize(
    "key",
    [
        pytest.param(key, marks=() if key in {"precision", "batch", "latency"} else pytest.mark.slow)
        for key in CASE_KEYS
    ],
)
def test_a_case_is_priced_with_its_own_keys(
    key: str, inside: Callable[..., Any], known: dict[str, dict[str, str]]
) -> None:
    """Beside another case on the same device as alone."""
    plain, own = {"case": "plain", "device": DEVICE}, {"case": "own", "device": DEVICE, key: OTHER[key]}
    plain |= {"latency": "operator"} if key == "latency" else {}
    together = answers(inside, [plain, own], "together")
    if str(plain) not in known:
        known[str(plain)] = answers(inside, [plain], "first")[0]
    assert together[0] == known[str(plain)]
    assert together[1] == answers(inside, [own], "second")[0]


@pytest.mark.slow
@pytest.mark.parametrize("key", [*OF_THE_STUDY, "made_up"])
def test_a_key_that_all_cases_share_is_refused_in_one(key: str, inside: Callable[..., Any]) -> None:
    Path("study.yaml").write_text(yaml.safe_dump({"cases": [{"device": DEVICE}, {"device": DEVICE, key: 1}]}))
    answer = inside("devices", "--config", "study.yaml", "--no-plots", "--out", "out")
    assert answer.code == 2
    assert f"cases.1.{key}: expected a key of a case" in answer.err


@pytest.mark.slow
def test_what_few_bits_cost_in_one_case_is_refused(inside: Callable[..., Any]) -> None:
    """Designs are compared by one loss in all cases; of formats of the law's own bits the key changes nothing."""
    flags = ("devices", "--devices", DEVICE, "--set", "precision_law=qat", "--no-plots", "--out", "out")
    assert "precision_law: expected a key that has an effect" in inside(*flags, "--precisions", "fp16").err
    answer = inside(*flags[:-1], "other", "--precisions", "fp16,int4")
    assert answer.code == 2
    assert "precision_law: expected one loss of a design in all cases, got qat beside int4" in answer.err
    assert "plas run --precision int4 --set precision_law=qat" in answer.err
