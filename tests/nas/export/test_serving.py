"""How a design is served, in each stack's launch lines, config.json and manifest; what a class or a stack has not is named."""

import csv
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nas.export.checkpoint import read_headers, tensors
from nas.export.model import Served
from nas.export.stack_files import parsed
from plas_board.calibrate.inputs import bench_lines
from search_spaces.architectures import one
from tests.nas.export.kinds import HELD
from tests.sources import ROOT

Inside = Callable[..., Any]
SAMPLES = ROOT / "plugins/board/tests/calibrate/samples"
SPARSE = {
    "id": "sparse",
    "depth": 12,
    "width": 128,
    "n_kv_heads": 1,
    "expert_size": 96,
    "n_experts": 4,
    "vocabulary": 16_384,
}
DENSE = {"id": "dense", "depth": 12, "width": 128, "n_kv_heads": 2, "expert_size": 128, "vocabulary": 16_384}
NEXT = {**HELD["deltanet, even"][1], "tied": False, "id": "next"}
CARD = "name: Card\nfp16: 40 TFLOP/s\nint8: 80 TOP/s\nbandwidth: 448 GB/s\nmemory: 8 GB\nslow_memory: {bandwidth: 33 GB/s, capacity: 32 GB}\n"
DRAFTING = (
    "--set",
    "serving.draft=qwen3_0.6b",
    "--set",
    "serving.speculation=draft:3",
    "--set",
    "serving.acceptance=draft=0.7",
)


@pytest.fixture
def made(inside: Inside, tmp_path: Path) -> Callable[..., Any]:
    """An export of rows to `out`."""
    (tmp_path / "card.yaml").write_text(CARD)

    def run(rows: list[dict[str, Any]], *flags: str) -> Any:
        (tmp_path / "some.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        return inside("export", "some.jsonl", "--preset", "device", "--device", "card.yaml", "--out", "out", *flags)

    return run


def flags_of(script: str, program: str) -> dict[str, Any]:
    """The flags of a program's first call in a script."""
    return parsed(Path(script).read_text().replace(" > llama-bench/result.json", ""), program)[0]


def test_plain_designs_are_as_before(made: Callable[..., Any]) -> None:
    assert made([DENSE, SPARSE], "--to", "vllm,llama-bench").code == 0
    assert "serving" not in json.loads(Path("out/export.json").read_text())
    assert not Path("out/dense/llama-bench/serve.sh").exists()
    assert "spec" not in Path("out/dense/vllm/bench.sh").read_text()


def test_experts_in_slow_memory(made: Callable[..., Any], inside: Inside) -> None:
    """A design's own share of layers, as llama.cpp counts them; of a dense design the FFN."""
    rows = [{**SPARSE, "experts_in": "slow:50%"}, {**DENSE, "experts_in": "slow:25%"}, {**DENSE, "id": "fast"}]
    result = made(rows, "--to", "llama-bench,vllm", "--weights")
    assert result.code == 0, result.err
    for script, program in (("bench.sh", "llama-bench"), ("serve.sh", "llama-server")):
        assert flags_of(f"out/sparse/llama-bench/{script}", program)["--n-cpu-moe"] == "6"
        placed = flags_of(f"out/dense/llama-bench/{script}", program)["--override-tensor"]
        assert placed == r"blk\.(0|1|2)\.ffn_(gate|up|down)\.weight=CPU"
    assert not Path("out/fast/llama-bench/serve.sh").exists()
    assert "which is not experts slow:50%" in " ".join(result.out.split())
    assert "experts slow:25%" in Path("out/README.md").read_text()
    content = json.loads(Path("out/export.json").read_text())
    assert [each["experts_in"] for each in content["serving"]] == ["slow:50%", "slow:25%", "fast"]
    checked = inside("export", "--verify", "out")
    assert checked.code == 0, checked.out
    script = Path("out/sparse/llama-bench/serve.sh")
    script.write_text(script.read_text().replace("--n-cpu-moe 6", "--n-cpu-moe 7"))
    wrong = inside("export", "--verify", "out")
    assert wrong.code == 1
    assert "--n-cpu-moe" in wrong.out


def test_a_draft_model(made: Callable[..., Any], inside: Inside) -> None:
    result = made([DENSE], "--to", "llama-bench,vllm", *DRAFTING)
    assert result.code == 0, result.err
    server = flags_of("out/dense/llama-bench/serve.sh", "llama-server")
    assert {name: server[name] for name in ("--spec-type", "--spec-draft-n-max", "--spec-draft-model")} == {
        "--spec-type": "draft-simple",
        "--spec-draft-n-max": "3",
        "--spec-draft-model": "draft.gguf",
    }
    config = json.loads(flags_of("out/dense/vllm/bench.sh", "vllm bench latency")["--speculative-config"])
    assert config == {"method": "draft_model", "model": "draft", "num_speculative_tokens": 3}
    assert inside("export", "--verify", "out").code == 0
    script = Path("out/dense/vllm/bench.sh")
    script.write_text(script.read_text().replace('tokens": 3', 'tokens": 4'))
    assert "speculation" in inside("export", "--verify", "out").out


def test_heads_that_draft(made: Callable[..., Any], inside: Inside) -> None:
    result = made([{**NEXT, "speculation": "mtp:2"}], "--to", "llama-bench,vllm")
    assert result.code == 0, result.err
    assert json.loads(Path("out/next/hf/config.json").read_text())["num_nextn_predict_layers"] == 1
    config = json.loads(flags_of("out/next/vllm/bench.sh", "vllm bench latency")["--speculative-config"])
    assert config == {"method": "mtp", "num_speculative_tokens": 2}
    server = flags_of("out/next/llama-bench/serve.sh", "llama-server")
    assert (server["--spec-type"], server["--spec-draft-n-max"]) == ("draft-mtp", "2")
    assert "--spec-draft-model" not in server
    assert "do not count the head that drafts" in " ".join(result.out.split())
    checked = inside("export", "--verify", "out")
    assert checked.code == 0, checked.out


def test_weights_of_a_head(made: Callable[..., Any], inside: Inside, exported: Callable[..., Any]) -> None:
    """A projection, a layer of full attention and four norms under the names that vLLM reads."""
    assert made([NEXT], "--set", "serving.speculation=mtp:1", "--weights").code == 0
    held = read_headers(Path("out/next/hf"))
    head = {name: shape for name, (_, shape) in held.items() if name.startswith("mtp.")}
    width = int(NEXT["width"])
    assert head["mtp.fc.weight"] == (width, 2 * width)
    outer = {
        "mtp.fc.weight",
        *(f"mtp.{name}.weight" for name in ("norm", "pre_fc_norm_hidden", "pre_fc_norm_embedding")),
    }
    assert outer <= {*head}
    layer = {name.removeprefix("mtp.layers.0."): shape for name, shape in head.items() if name not in outer}
    plain = {
        tensor.name: tensor.shape for tensor in tensors(exported(one({k: v for k, v in NEXT.items() if k != "id"})))
    }
    full = next(name.split(".")[2] for name in plain if "q_proj" in name)
    start = f"model.layers.{full}."
    assert layer == {name.removeprefix(start): shape for name, shape in plain.items() if name.startswith(start)}
    assert {name for name in held if not name.startswith("mtp.")} == {*plain}
    assert inside("export", "--verify", "out").code == 0


@pytest.mark.parametrize(
    ("row", "flags", "message"),
    [
        (DENSE, ("--set", "serving.speculation=mtp:2"), "dense: speculation: expected a class of transformers with a head .* got Qwen3ForCausalLM"),
        (NEXT, ("--set", "serving.speculation=mtp:2", "--weights", "--to", "llama-bench"), "llama-bench: expected --set serving.speculation=none with --weights"),
        ({**SPARSE, "experts_in": "slow:50%"}, DRAFTING, "whose time no formula gives"),
        ({**DENSE, "speculation": "draft:2"}, (), "acceptance: expected the share of drafted tokens that draft:2 has accepted"),
        ({**SPARSE, "experts_in": "slow:50%"}, ("--device", "l4"), "experts_in: expected a device with slow memory"),
    ],
)  # fmt: skip
def test_what_cannot_be_served(
    row: dict[str, Any], flags: tuple[str, ...], message: str, made: Callable[..., Any]
) -> None:
    result = made([row], *flags)
    assert result.code == 2
    assert re.search(message, " ".join(result.err.split()))
    assert not Path("out").exists()


def test_a_flag_is_of_all_designs(made: Callable[..., Any]) -> None:
    """It takes the place of what a design says itself."""
    assert made([{**DENSE, "speculation": "mtp:2"}], "--set", "serving.speculation=none").code == 0
    assert "serving" not in json.loads(Path("out/export.json").read_text())
    with Path("out/candidates.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert row.get("speculation", "") in ("", "none")


def test_results_say_how_they_were_served(made: Callable[..., Any]) -> None:
    """llama-bench's with the share of slow layers; vLLM's with drafts are left out."""
    assert made([{**SPARSE, "experts_in": "slow:50%"}], "--to", "llama-bench").code == 0
    entries = json.loads((SAMPLES / "llama_bench.json").read_text())[:1]
    Path("out/sparse/llama-bench/result.json").write_text(json.dumps([entries[0] | {"n_cpu_moe": 6}]))
    (row,) = csv.DictReader(bench_lines(Path("out")))
    assert float(row["slow_share"]) == 0.5
    shutil.rmtree("out")
    assert made([DENSE], "--to", "vllm", *DRAFTING).code == 0
    for tokens in (1, 17):
        Path(f"out/dense/vllm/latency-{tokens}.json").write_text(json.dumps({"latencies": [0.1 * tokens] * 3}))
    assert all("tokens drafted ahead" in row["left_out"] for row in csv.DictReader(bench_lines(Path("out"))))


def test_layers_of_a_share() -> None:
    """Dense layers stand first and count, since llama.cpp counts blocks."""
    design = one({**{k: v for k, v in SPARSE.items() if k != "id"}, "n_dense": 2, "dense_size": 256})
    assert Served(experts_in="slow:30%").slow_layers(design) == 2 + 3
    assert Served().slow_layers(design) == 0
