"""What is said of a slip: one line, the flag once, and the name or number that was meant."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import nas
from nas.files.faults import nearest, squashed
from nas.study.catalogue import load_device

Inside = Callable[..., Any]
AGX, NANO, SUPER = "jetson_agx_orin_64gb", "jetson_orin_nano_8gb_original", "jetson_orin_nano_super_8gb"
SLIPS: list[tuple[str, str, str]] = [
    ("run --device jetson_orin_nano", "--device: expected a device (", f"did you mean {NANO} or {SUPER}?"),
    ("run --device jetson_orin_nano_super", "--device: expected a device (", f"did you mean {SUPER}?"),
    (
        "run --device orin",
        "--device: expected a device (",
        f"did you mean {AGX}, {NANO}, {SUPER} or jetson_orin_nx_16gb?",
    ),
    ("run --device jetson_agx_orin", "--device: expected a device (", f"did you mean {AGX}?"),
    ("run --device rtx", "--device: expected a device (", "rtx_5070 or 2 more?"),
    ("run --device m4", "--device: expected a device (", "did you mean m4_10c or m4_max_40c?"),
    ("run --device rtx_4060", "'; write a YAML", "write a YAML file of name"),
    ("run --device hailo_8", "'; write a YAML", "write a YAML file of name"),
    ("run board.yaml", "got 'board.yaml'", "write --device board.yaml or --config board.yaml, or see"),
    ("run rpi5 --device a18", "got 'rpi5'", "write --device rpi5, or see"),
    ("run --precision 4bit", "(the 61 names of 'plas list formats')", "did you mean int4, w4a16, q4_k_m or mlx_4bit?"),
    ("run --config nowhere", "expected a file or a shipped study (the 13 names of 'plas list studies')", "choose one"),
    ("run --retry-failed", "--retry-failed: expected --resume with it, got none", "leave --retry-failed out"),
    ("explain --model qwen2.5_0.5b --index 2", "--index: expected RUN with it, got none", "leave --index out"),
    ("export x --out y --gguf q8_0", "--gguf: expected --to llama-bench with it, got none", "leave --gguf out"),
    ("explain run --index 3 --select knee", "--index: expected no --select with it, got both", "drop one"),
    ("watch run --once --every 5", "--once: expected no --every with it, got both", "drop one"),
    ("watch run --wait 1 --once", "--once: expected no --wait with it, got both", "drop one"),
    ("export --verify out --weights", "--verify: expected no --weights with it, got both", "drop one"),
    ("export --verify out --device rpi5", "--verify: expected no --device with it, got both", "drop one"),
    ("export --verify out --set batch=3", "--verify: expected no batch with it, got both", "drop one"),
    ("export run --verify out", "--verify: expected no source with it, got both", "drop one"),
    ("select run --json --rows 3", "--json: expected no --rows with it, got both", "drop one"),
    ("explain run --json --verbose", "--json: expected no --verbose with it, got both", "drop one"),
    ("select run --sweep a=1:2:1 --select best", "--sweep: expected no --select with it, got both", "drop one"),
    ("select run --sweep a=1:2:1 --expected-regret", "--sweep: expected no --expected-regret with it", "drop one"),
    ("run --resume run --out out", "--resume: expected no --out with it, got both", "drop one"),
    ("compare --interim", "--interim: expected --resume with it, got none", "leave --interim out"),
    ("compare --interim --resume out --seeds 3", "--interim: expected no --seeds with it, got both", "drop one"),
    ("compare --interim --resume out --set batch=2", "--interim: expected no batch with it, got both", "drop one"),
    ("compare --algos lhs --cap moead=9", "--cap moead: expected a strategy compared here (lhs, random)", "--algos"),
    ("list --schema study devices", "--schema: expected nothing to list with it", "leave one of them out"),
    ("run --only depth=8-24", "got 8-24", "write 8..24"),
    ("explain qwen2.5_0.5b", "explain: expected a run folder, got a model", "write --model qwen2.5_0.5b"),
    ("explain --architecture hidden=896", "got 'hidden'", "did you mean width?"),
    ("list devices banana", "expected words of devices, got banana", "drop one"),
    ("run --set devicess=h200", "--set devicess: unknown key", "did you mean devices?"),
    ("run --set params.populaton=5", "--set params.populaton: unknown key", "did you mean population?"),
    ("run --param populaton=5", "--param populaton: unknown key", "did you mean population?"),
    ("run --spac fine", "--spac: expected an option of", "did you mean --space?"),
    (
        "run --device jetson_orin_nx",
        "--device: expected a device (",
        "did you mean jetson_orin_nx_16gb? Or write a YAML",
    ),
    ("explain --model qwen3_0.6", "--model: expected a published model (", "did you mean qwen3_0.6b?"),
    ("list devicess", "kind: expected one (", "did you mean devices?"),
    ("run --evaluations 1.5", "--evaluations: expected an integer, got '1.5'", "correct it"),
    ("run --evaluations 5,5", "--evaluations: expected an integer, got '5,5'", "correct it"),
    ("run --time-limit 0,5", "--time-limit: expected a number, got '0,5'", "correct it"),
    ("run --time-limit 10m", "--time-limit: expected a number, got '10m'", "correct it"),
    ("run --evaluations many", "--evaluations: expected an integer, got 'many'", "correct it"),
    ("run --evaluations", "--evaluations: expected a value, got nothing", "add it"),
    ("run --quiet=yes", "--quiet: expected no value, got one", "drop it"),
    ("run more", "got 'more'", "see python -m nas.run --help"),
    ("run --workers 0", "--workers: expected at least 1, got 0", "correct it"),
    ("select", "run: expected a value, got nothing", "see python -m nas.select --help"),
    ("select . --rows 0", "--rows: expected at least 1, got '0'", "correct it"),
    ("run --budget total_ms<50", "--budget: expected metric<=limit", "write 'total_ms<=50'"),
    ("run --budget total_ms>=50", "--budget total_ms: expected total_ms<=limit", "only rates have a lower limit"),
    ("run --budget total_ms", "--budget: expected metric=limit, got 'total_ms'", "write for example decode_ms=20"),
    (
        "run --budget width=1000",
        "--budget width: expected a metric, got width, which is an axis",
        "--only width=..1000",
    ),
    (
        "run --set serving.phases=x",
        "--set serving.phases: expected prefill=DEVICE or link=RATE, got 'x'",
        "prefill=rk3588_npu,link=10GB/s",
    ),
    (
        "run --set serving.acceptance=mtp=",
        "--set serving.acceptance: expected mtp=SHARE or draft=SHARE, got 'mtp='",
        "mtp=0.8,draft=0.6",
    ),
    ("run --set known_as=x", "--set known_as: expected METRIC=COLUMN, got 'x'", "board:latency_ms=measured"),
    ("run --budget decode_ms=12,5", "--budget decode_ms: expected a time", "write the decimals with a point"),
    ("run --budget decode_ms=fast", "--budget decode_ms: expected a time", "write a number and a unit"),
    (
        "explain --architecture depth=16,width=1000,n_experts=16,top_k=1,expert_size=1024,n_kv_heads=4",
        "n_heads: expected a positive integer, got 15.625 from the other columns",
        "correct the architecture",
    ),
    (
        "explain --architecture depth=4,width=1024,n_experts=0,top_k=2,expert_size=1024,n_kv_heads=4",
        "n_experts: expected a positive integer, got 0",
        "correct the architecture",
    ),
]


@pytest.mark.parametrize(("line", "said", "remedy"), SLIPS, ids=[line for line, _, _ in SLIPS])
def test_a_slip_is_one_line_that_names_what_was_meant(line: str, said: str, remedy: str, inside: Inside) -> None:
    answer = inside(*line.split(" "))
    assert answer.code == 2, answer
    assert answer.out == ""
    (only,) = answer.err.splitlines()
    assert said in only
    assert remedy in only.split("; ", 1)[1]
    flag = only.partition(":")[0]
    assert not only.removeprefix(f"{flag}: ").startswith(flag.lstrip("-").partition(" ")[0] + ":"), "the name twice"


def test_a_file_keeps_its_paths(inside: Inside, tmp_path: Any) -> None:
    (tmp_path / "study.yaml").write_text("algo: nsga9\nbudgets: {width: 5}\n")
    said = inside("run", "--config", "study.yaml").err.splitlines()
    assert said[0].startswith("study.yaml:1: algo: expected a strategy")
    assert said[1].startswith("study.yaml:2: budgets.width: expected a metric")
    assert len(said) == 2


@pytest.mark.parametrize(
    ("name", "choices", "expected"),
    [
        ("x", ["depth", "width"], "choose one"),
        ("", ["depth", "width"], "choose one"),
        ("dept", ["depth", "width"], "did you mean depth?"),
        ("!!!", ["depth", "width"], "choose one"),
        ("abc", ["xabc", "abcx"], "did you mean abcx or xabc?"),
    ],
)
def test_the_nearest_name(name: str, choices: list[str], expected: str) -> None:
    assert nearest(name, choices) == expected


@pytest.mark.parametrize(
    ("name", "plain"), [("NSGA-II", "nsga2"), ("nsga_iii", "nsga3"), ("Jetson-AGX", "jetsonagx"), ("hawaii", "hawa2")]
)
def test_names_are_compared_without_case_signs_and_roman_numerals(name: str, plain: str) -> None:
    assert squashed(name) == plain


def test_a_list_is_filtered_by_words(inside: Inside) -> None:
    rows = json.loads(inside("list", "devices", "jetson", "Orin", "--json").out)
    assert {row["name"] for row in rows} == {AGX, NANO, SUPER, "jetson_orin_nx_16gb"}


def test_a_device_goes_by_its_printed_name_and_aliases(inside: Inside) -> None:
    for name, device in {
        "rpi5": "Raspberry Pi 5",
        "Snapdragon 8 Elite": "Qualcomm Snapdragon 8 Elite",
        "NVIDIA GeForce RTX 3080 10 GB": "NVIDIA GeForce RTX 3080 10 GB",
        "RTX 4090": "NVIDIA GeForce RTX 4090",
        "Apple M4 (10-core GPU)": "Apple M4 (10-core GPU)",
        "MacBook Pro M3 Max": "Apple M3 Max (40-core GPU)",
        "iPhone 16": "Apple A18 (iPhone 16, 5-core GPU)",
        "iPhone 16 Pro Max": "Apple A18 Pro (iPhone 16 Pro, 6-core GPU)",
        "Samsung Galaxy S25": "Qualcomm Snapdragon 8 Elite",
        "Google Pixel 9": "Google Tensor G4 (Pixel 9, CPU)",
    }.items():
        assert load_device(name).name == device


def test_a_strategy_and_a_metric_may_be_named_by_their_files(inside: Inside, tmp_path: Path) -> None:
    (tmp_path / "lab").mkdir()
    assert inside("init", "lab/climb.py").code == 0
    (tmp_path / "lab" / "heat.py").write_text("def warmth(a):\n    return a.depth * 1.0\n")
    own = ("--algo", "./lab/climb.py", "--objectives", "loss,lab/heat.py:warmth")
    answer = inside("run", *own, "--evaluations", "20", "--out", "run", "--quiet")
    assert answer.code == 0, answer
    assert inside("run", "--resume", "run", *own[:2], "--evaluations", "30", "--quiet").code == 0
    assert nas.load_study(algo=str(tmp_path / "lab" / "climb.py")).assembled.config.algo == "lab.climb"
    for name in ("class.py", "lab/for.py"):
        assert "expected a module name of your own" in inside("init", name).err


@pytest.mark.parametrize("content", ["", "# only a comment\n", "---\n", "{}\n"])
def test_an_empty_study_is_refused(content: str, inside: Inside, tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text(content)
    for command in ("run", "compare", "explain --model qwen2.5_0.5b"):
        answer = inside(*command.split(), "--config", "study.yaml")
        assert (answer.code, "study.yaml:1: expected keys and values, got an empty file" in answer.err) == (2, True)
