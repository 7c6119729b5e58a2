"""`calibrate` on rows with experts in host memory and with heads that draft: the device's own profile first, then one number of each."""

import json
from pathlib import Path
from typing import Any

import pytest

from nas.study.catalogue import load_device
from tests.nas.pages.told import words

SAMPLES = Path(__file__).parents[1] / "calibrate" / "samples"
CARD = (
    "name: Card\nfp16: 51 TFLOP/s\nint8: 102 TOP/s\nbandwidth: 360 GB/s\nmemory: 12 GB\nchip: gpu\n"
    "slow_memory: {bandwidth: 51.2 GB/s, capacity: 64 GB}\n"
)
HEADER = "device,engine,model,precision,batch,prompt_len,gen_len,metric,value,slow_share,drafted,accepted\n"
PLAIN = "".join(
    f"card,server,{model},q4_k_m,1,1024,128,{metric},{value},,,\n"
    for model, prefill, step in (("Qwen3-0.6B", 60.0, 3.1), ("Qwen3-1.7B", 130.0, 6.0), ("Qwen3-4B", 290.0, 11.9))
    for metric, value in (("prefill_ms", prefill), ("tpot_ms", step))
)
SERVED = "".join(
    f"card,server,{line}\n"
    for line in (
        "Qwen3-1.7B,q4_k_m,1,1024,128,tpot_ms,4.4,,2,0.75",
        "Qwen3-4B,q4_k_m,1,1024,128,tpot_ms,8.2,,2,0.75",
        "Qwen3-4B,q4_k_m,1,1024,128,prefill_ms,300,,2,0.75",
        "Qwen3-30B-A3B,q4_k_m,1,1024,128,tpot_ms,44,1.0,,",
        "Qwen3-30B-A3B,q4_k_m,1,1024,128,tpot_ms,44,1.0,2,0.7",
        "Qwen3-30B-A3B,q4_k_m,1,1024,128,tpot_ms,44,1.5,,",
        "Qwen3-4B,q4_k_m,1,1024,128,tpot_ms,8.2,,2,",
        "Qwen3-4B,q4_k_m,1,1024,128,tpot_ms,8.2,,40,0.7",
    )
)


@pytest.fixture
def folder(commands: Any) -> Path:
    """A card with host memory, measurements and a table from an issue."""
    commands.write("card.yaml", CARD)
    commands.write("plain.csv", HEADER + PLAIN)
    commands.write("served.csv", HEADER + PLAIN + SERVED)
    commands.write("only.csv", HEADER + SERVED)
    commands.write("offload.md", (SAMPLES / "offload.md").read_text())
    found: Path = commands.folder
    return found


def test_the_devices_own_profile_is_that_of_plain_rows(folder: Path, inside: Any) -> None:
    """Other rows move nothing of it, and every one of them is counted."""
    for name in ("plain", "served"):
        answer = inside("calibrate", f"{name}.csv", "--device", "card.yaml", "--out", f"{name}.yaml", "--json")
        assert answer.code == 0, answer.err
    report = json.loads(answer.out)
    (own,), (also,) = (load_device(f"{name}.yaml").profiles for name in ("plain", "served"))
    fitted = {"slow_bandwidth_efficiency": 1.0, "position_cost": None, "source": own.source}
    assert also.model_copy(update=fitted) == own
    by_name = {group["coefficient"]: group for group in report["served"]}
    assert by_name["position_cost"]["value"] == also.position_cost
    assert by_name["slow_bandwidth_efficiency"]["value"] == also.slow_bandwidth_efficiency
    assert by_name["position_cost"]["errors"]["held_out"]["rows"] == 2
    reasons = [row["reason"] for row in report["left_out"]]
    for part in ("what drafts reads it too", "together: no formula", "slow_share: expected a share", "accepted: expected the share", "drafted: expected at most 16"):  # fmt: skip
        assert sum(part in reason for reason in reasons) == 1
    assert report["rows_used"] + len(reasons) == len((PLAIN + SERVED).splitlines())


@pytest.mark.slow
def test_it_is_used_by_a_study(folder: Path, inside: Any) -> None:
    """Times of a design that drafts, or whose experts are slow, change with the coefficient."""
    assert inside("calibrate", "served.csv", "--device", "card.yaml", "--out", "served.yaml").code == 0
    assert inside("calibrate", "plain.csv", "--device", "card.yaml", "--out", "plain.yaml").code == 0
    for model, flags in (
        ("qwen3_4b", ("--set", "serving.speculation=mtp:2")),
        ("qwen3_30b_a3b", ("--set", "serving.experts_in=slow:100%")),
    ):
        ms = [
            json.loads(inside("explain", "--model", model, "--device", f"{name}.yaml", "--preset", "device", "--precision", "q4_k_m", *flags, "--json").out)["metrics"]["decode_ms"]
            for name in ("plain", "served")
        ]  # fmt: skip
        assert ms[0] != pytest.approx(ms[1], rel=0.01)


def test_rows_without_plain_ones_say_what_is_missing(folder: Path, inside: Any) -> None:
    """They are fitted to the profile of a file that calibrate wrote before, and to nothing else."""
    answer = inside("calibrate", "only.csv", "--device", "card.yaml", "--out", "only.yaml")
    assert answer.code == 1
    assert "no profile of server at batch 1" in answer.err
    assert inside("calibrate", "plain.csv", "--device", "card.yaml", "--out", "card_own.yaml").code == 0
    (folder / "only.csv").write_text((HEADER + SERVED).replace("card,", "both,"))
    (folder / "both.yaml").write_text((folder / "card_own.yaml").read_text())
    answer = inside("calibrate", "only.csv", "--device", "both.yaml", "--out", "more.yaml")
    assert answer.code == 0, answer.err
    assert load_device("more.yaml").profiles[0].position_cost is not None


def test_a_table_from_an_issue_and_its_page(folder: Path, inside: Any) -> None:
    answer = inside("calibrate", "offload.md", "--device", "card.yaml", "--out", "own.yaml", "--report", "told")
    assert answer.code == 0, answer.err
    assert "experts in slow memory: 3 rows, 1 models" in answer.out
    assert "slow bandwidth efficiency" in answer.out
    said = words(folder / "told" / "report.html")
    assert "How models are served" in said
    assert "67 %" in said
    assert "a prompt with experts in slow memory" in said


def test_without_slow_memory_it_is_said_what_to_write(folder: Path, inside: Any) -> None:
    (folder / "bare.yaml").write_text(CARD.partition("slow_memory")[0])
    answer = inside("calibrate", "offload.md", "--device", "bare.yaml", "--out", "own.yaml")
    assert answer.code == 0, answer.err
    assert "write slow_memory: {bandwidth: 80 GB/s, capacity: 64 GB}" in " ".join(answer.out.split())
