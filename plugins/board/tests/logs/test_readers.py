"""Every format read from a sample: which figures, of what, and why the others are not."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from plas_board.calibrate.figure import document
from plas_board.calibrate.log import READERS, readers

Rows = Callable[..., list[dict[str, str]]]
Brief = Callable[[dict[str, Any]], tuple[Any, ...]]
Sample = Callable[[str], Path]


def test_llmfit(rows: Rows, brief: Brief, sample: Sample) -> None:
    """Rates of decoding, or of whole requests, which the engine says; what no single GPU ran, and what scatters."""
    found = rows(sample("llmfit.json"), precision="bf16")
    assert [brief(row) for row in found] == [
        ("Llama-3.2-1B", "decode_tok_s", 301.5, 1, 25, 210, "q4_k_m"),
        ("Qwen3-1.7B", "decode_tok_s", 221.0, 1, 25, 300, "q4_k_m"),
        ("Qwen3-4B", "decode_tok_s", 88.0, 1, 25, 300, "q8_0"),
        ("time to first token of prompts whose length is not stated",),
        ("Qwen3-32B: 19.6 GB of weights, where the GPU has 17.1: some layers ran on the CPU",),
        ("repetitions scatter by more than 20 %: others had the machine, or it throttled",),
        ("Qwen3-0.6B", "decode_tok_s", 400.0, 1, 25, 300, "bf16"),
        ("an output of fewer than 32 tokens",),
    ]  # fmt: skip
    assert {row["engine"] for row in found if not row.get("left_out")} == {
        "llama-server, whole requests, llmfit 1.1.3", "Ollama, llmfit 1.1.3", "vLLM, whole requests, llmfit 1.1.3"
    }  # fmt: skip


def of_model(name: str, provider: str = "ollama") -> dict[str, Any]:
    """A result of llmfit's of a model, in a submission's place of all."""
    rates = {"avgTps": 20.0, "minTps": 20.0, "maxTps": 20.0, "avgOutputTokens": 300.0}
    return {"results": [{"model": name, "provider": provider, **rates}]}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"hardware": {"hwClass": "DISCRETE_GPU", "gpuCount": 2}}, "several GPUs"),
        ({"schemaVersion": 2}, "a submission of another version than 1"),
        ({"results": ["x"]}, "avgTps: expected a number, got none that can be used"),
        (
            of_model("qwen3.6:27b-mtp-q8_0"),
            "a model that drafts tokens ahead (MTP): how many were accepted is not stated",
        ),
        (of_model("laguna-xs-2.1:mxfp8"), "weights in 'mxfp8': no profile is of that format"),
        (of_model("gemma4:12b-mlx"), "the weights' format is not stated: give it with --precision"),
        (
            of_model("ai21labs_AI21-Jamba2-3B-Q4_K_M.gguf", "llamacpp"),
            "ai21labs_AI21-Jamba2-3B: a model with Mamba of the first kind, which no columns hold",
        ),
    ],
)
def test_llmfit_that_is_left_out(
    change: dict[str, Any], reason: str, rows: Rows, sample: Sample, tmp_path: Path
) -> None:
    (tmp_path / "log.json").write_text(json.dumps(json.loads(sample("llmfit.json").read_text()) | change))
    given = "" if "results" in change else "bf16"
    assert reason in {row.get("left_out") for row in rows(tmp_path / "log.json", precision=given)}


def test_edge_llm_bench(rows: Rows, brief: Brief, sample: Sample) -> None:
    """Prefill and decoding of records that state their prompt; the size of LiteRT-LM's cache; failures, heat, other tasks."""
    found = rows(sample("edge_llm_bench.json"), precision="int4")
    assert [brief(row) for row in found] == [
        ("Qwen3-0.6B", "prefill_tok_s", 186.0, 1, 20, 0, "int4"),
        ("Qwen3-0.6B", "decode_tok_s", 122.5, 1, 20, 128, "int4"),
        ("Qwen3-0.6B", "prefill_tok_s", 86.6, 1, 512, 0, "q4_k_m"),
        ("Qwen3-0.6B", "decode_tok_s", 20.7, 1, 512, 128, "q4_k_m"),
        ("tokens of the prompt are not stated",),
        ("a device that was throttled by heat",),
        ("a run that failed",),
        ("no rates of a language model",),
    ]  # fmt: skip
    assert {row["engine"] for row in found if not row.get("left_out")} == {
        "litert-lm-gpu v1.2.3, cache of 672 tokens, edge-llm-bench", "llama.cpp v1.2.3, edge-llm-bench"
    }  # fmt: skip


def test_ai_hub(rows: Rows, brief: Brief, sample: Sample) -> None:
    """128 tokens that attend to the whole context; a largest time that is computed is left out, one that is not is a prefill."""
    found = rows(sample("perf.yaml"))
    assert [brief(row) for row in found] == [
        ("Llama-3.2-1B", "prefill_ms", 40.0, 1, 128, 0, "w4a16"),
        ("the largest time to first token is the least times context / 128: derived, not measured",),
        ("Llama-3.2-1B", "decode_tok_s", 50.0, 1, 4096, 1, "w4a16"),
        ("Llama-3.2-1B", "prefill_ms", 225.0, 1, 128, 0, "w4a16"),
        ("Llama-3.2-1B", "prefill_ms", 6000.0, 1, 4096, 0, "w4a16"),
        ("Llama-3.2-1B", "decode_tok_s", 11.0, 1, 4096, 1, "w4a16"),
        *[("weights in 'float': no profile is of that format",)] * 3,
        ("no figures of a language model",),
    ]
    assert [row["device"] for row in found] == [
        *["snapdragon_8_elite"] * 3,
        *["SA8295P ADP"] * 3,
        *["snapdragon_8_elite"] * 4,
    ]
    assert {row["attended_len"] for row in found if row["metric"] == "prefill_ms"} == {"4096"}


def test_ai_hub_without_a_length(rows: Rows, sample: Sample, tmp_path: Path) -> None:
    """One time for least and largest does not say of how many tokens."""
    (tmp_path / "perf.yaml").write_text(sample("perf.yaml").read_text().replace("float:", "w4:"))
    assert sum("without the length of its prompt" in row["left_out"] for row in rows(tmp_path / "perf.yaml")) == 2


def test_a_step_whose_only_time_is_unusable_is_left_out_with_its_reason(
    rows: Rows, brief: Brief, sample: Sample, tmp_path: Path
) -> None:
    """No median is asked of no times."""
    place = tmp_path / "steps.csv"
    place.write_text(sample("steps.csv").read_text().replace(",13.5", ",0"))
    found = [brief(row) for row in rows(place, models=("qwen3_8b",), precision="bf16")]
    assert ("latency_ms: expected more than 0, got 0",) in found


def test_aiconfigurator(rows: Rows, brief: Brief, sample: Sample) -> None:
    """Medians of like steps of the model and format that are given; both phases in one pass, and chunks, are left out."""
    assert [brief(row) for row in rows(sample("steps.csv"), models=("qwen3_8b",), precision="bf16")] == [
        ("prompts and steps of other requests in one pass",),
        ("a prompt after a context: only whole prompts are read",),
        ("Qwen3-8B", "prefill_ms", 50.0, 1, 1024, 0, "bf16"),
        ("Qwen3-8B", "tpot_ms", 13.5, 1, 1024, 1, "bf16"),
        ("Qwen3-8B", "tpot_ms", 14.5, 4, 1024, 1, "bf16"),
    ]
    assert rows(sample("estimates.csv"))[0]["left_out"] == "estimates of aiconfigurator, not measurements"
    assert {row["left_out"][:16] for row in rows(sample("operators.txt"))} == {"single operators"}


def test_executorch(rows: Rows, brief: Brief, sample: Sample) -> None:
    """Times of day as a prefill and the mean of the steps; a request that generated nothing has no step."""
    found = rows(sample("executorch.txt"), models=("llama3_2_1b=llama_3.2_1b",), precision="int4")
    assert [brief(row) for row in found] == [
        ("Llama-3.2-1B", "prefill_ms", 56.0, 1, 31, 0, "int4"),
        ("Llama-3.2-1B", "tpot_ms", 18.5208, 1, 31, 96, "int4"),
        ("Llama-3.2-1B", "prefill_ms", 164.0, 1, 14, 0, "int4"),
        ("decode: expected more than 0, got 0",),
    ]


def test_openvino(rows: Rows, brief: Brief, sample: Sample) -> None:
    """First and other tokens of every iteration but warm-ups, sizes and times of all sequences together."""
    assert [brief(row) for row in rows(sample("openvino.txt"))] == [
        ("a warm-up",), ("a warm-up",),
        ("Llama-2-7B", "prefill_ms", 540.01, 2, 32, 0, "fp16"),
        ("Llama-2-7B", "tpot_ms", 296.11, 2, 32, 127, "fp16"),
    ]  # fmt: skip


def test_litert_lm(rows: Rows, brief: Brief, sample: Sample) -> None:
    """Turns in pairs, the second after the first; a benchmark with its settings; a drafted one and one of a block without turns."""
    found = rows(sample("litert_lm.txt"), precision="int8")
    assert [brief(row) for row in found] == [
        ("Qwen3-0.6B", "prefill_tok_s", 19.51, 1, 16, 0, "int8"),
        ("a prompt after earlier turns, of whose outputs nothing is said yet",),
        ("Qwen3-0.6B", "decode_tok_s", 10.11, 1, 16, 88, "int8"),
        ("Qwen3-0.6B", "decode_tok_s", 9.5, 1, 16 + 88 + 20, 64, "int8"),
        ("Qwen3-0.6B", "prefill_tok_s", 31.03, 1, 256, 0, "int8"),
        ("Qwen3-0.6B", "decode_tok_s", 6.28, 1, 256, 128, "int8"),
        ("Qwen3-0.6B", "prefill_tok_s", 30.0, 1, 256, 0, "int8"),
        ("speculative decoding: several tokens a step",),
    ]
    assert [row["engine"] for row in found if row["engine"]] == [
        *["LiteRT-LM cpu"] * 3,
        *["LiteRT-LM cpu, cache of 2048 tokens, drafts auto"] * 2,
        "LiteRT-LM gpu, cache of 4096 tokens",
    ]


def test_litert_lm_without_tokens(rows: Rows, tmp_path: Path) -> None:
    """Turns of old builds have rates alone, which say nothing of lengths."""
    rates = "  Prefill Turn 1:\n      Prefill Speed: 500.00 tokens/sec.\n  Decode Turn 1:\n      Decode Speed: 20.00 tokens/sec.\n"
    (tmp_path / "log.txt").write_text("BenchmarkInfo:\n" + rates)
    found = rows(tmp_path / "log.txt", models=("qwen3_0.6b",), precision="int8")
    assert [row["left_out"] for row in found] == [f"tokens of the {of} are not stated" for of in ("prompt", "output")]


def test_mlperf_client(rows: Rows, brief: Brief, sample: Sample) -> None:
    """First token and rate of every category; geometric means, agentic categories and failed runs are left out."""
    found = rows(sample("mlperf_client.json"), precision="int4")
    tools, failed = "calls of tools between the tokens", "a run that failed"
    mean = "a geometric mean over prompts of different lengths"
    assert [brief(row) for row in found] == [
        ("Llama-3.1-8B", "prefill_ms", 250.0, 1, 512, 0, "int4"),
        ("Llama-3.1-8B", "decode_tok_s", 40.5, 1, 512, 127, "int4"),
        ("Llama-3.1-8B", "prefill_ms", 1500.0, 1, 3100, 0, "int4"),
        ("Avg 2nd+ Token Generation Rate: expected more than 0, got 0",),
        *[(tools,), (tools,), (mean,), (mean,)],
        *[(failed,), (failed,), ("no figures of a language model",)],
    ]
    assert {row["engine"] for row in found if row["engine"]} == {"MLPerf Client OpenVINO"}


def test_rkllm(rows: Rows, brief: Brief, sample: Sample) -> None:
    """Stages of every table, of the file and in the format that the log names."""
    found = rows(sample("rkllm.txt"))
    assert [brief(row) for row in found] == [
        ("Qwen2.5-3B", "prefill_ms", 2201.45, 1, 321, 0, "int8"),
        ("Qwen2.5-3B", "tpot_ms", 121.76, 1, 321, 102, "int8"),
    ]
    assert {row["engine"] for row in found} == {"RKLLM 1.2.1"}


def test_vllm(rows: Rows, brief: Brief, sample: Sample) -> None:
    """T(1) is a prefill, (T(129) - T(1)) / 128 a step; a longer run alone tells neither."""
    assert [brief(row) for row in rows(sample("latency.pytorch.json"))] == [
        ("several GPUs at once",),
        ("a quantised checkpoint whose weight format is not stated",),
        ("Qwen3-0.6B", "prefill_ms", 31.0, 1, 1024, 0, "bf16"),
        ("Qwen3-0.6B", "tpot_ms", 4.0, 1, 1024, 128, "bf16"),
        ("a whole request: one more run with --output-len 1 separates prefill from decoding",),
    ]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ({"avg_latency": 1.0, "latencies": [1.0], "percentiles": {}}, "SAVE_TO_PYTORCH_BENCHMARK_FORMAT=1"),
        ({"elapsed_time": 1.0, "num_requests": 9, "requests_per_second": 9.0, "tokens_per_second": 99.0}, "run vllm bench latency"),
        ({"model_id": "Qwen/Qwen3-0.6B", "median_ttft_ms": 30.0, "median_tpot_ms": 4.0, "max_concurrency": 8}, "--max-concurrency 1"),
    ],
)  # fmt: skip
def test_vllm_without_settings(content: dict[str, Any], reason: str, rows: Rows, tmp_path: Path) -> None:
    """Files that do not say what was run are left out with what to run instead."""
    (tmp_path / "log.json").write_text(json.dumps(content))
    assert all(reason in row["left_out"] for row in rows(tmp_path / "log.json"))


def test_vllm_server(rows: Rows, brief: Brief, tmp_path: Path) -> None:
    """One request at a time: medians at the mean lengths, in the format that is given."""
    served = {
        "model_id": "Qwen/Qwen3-0.6B",
        "max_concurrency": 1,
        "completed": 10,
        "total_input_tokens": 10_240,
        "total_output_tokens": 1_280,
    }
    (tmp_path / "log.json").write_text(json.dumps(served | {"median_ttft_ms": 30.0, "median_tpot_ms": 4.0}))
    assert "--precision" in rows(tmp_path / "log.json")[0]["left_out"]
    assert [brief(row) for row in rows(tmp_path / "log.json", precision="bf16")] == [
        ("Qwen3-0.6B", "ttft_ms", 30.0, 1, 1024, 128, "bf16"),
        ("Qwen3-0.6B", "tpot_ms", 4.0, 1, 1024, 128, "bf16"),
    ]


def test_ollama(rows: Rows, brief: Brief, sample: Sample, tmp_path: Path) -> None:
    """Durations as Go writes them, each answer of the model of the command above it; a result of the API; a split model."""
    assert [brief(row) for row in rows(sample("ollama.txt"))] == [
        ("Mistral-7B-v0.3", "prefill_ms", 204.563, 1, 11, 0, "q4_k_m"),
        ("Mistral-7B-v0.3", "tpot_ms", 40.6399, 1, 11, 120, "q4_k_m"),
        ("a prompt of more than 512 tokens: before version 0.12.7 its last part was timed alone",),
        ("Llama-3.1-8B", "tpot_ms", 112.694, 1, 613, 1133, "q8_0"),
    ]
    assert [brief(row) for row in rows(sample("ollama.json"))] == [
        ("Qwen3-8B", "prefill_ms", 558.791, 1, 42, 0, "q4_k_m"),
        ("Qwen3-8B", "tpot_ms", 26.3724, 1, 42, 110, "q4_k_m"),
    ]
    log = tmp_path / "log.txt"
    log.write_text("NAME ID SIZE PROCESSOR\nqwen3:8b 5 9 GB 48%/52% CPU/GPU\n" + sample("ollama.txt").read_text())
    assert {row["left_out"] for row in rows(log)} == {"some layers on the GPU, the others on the CPU"}
    drafting = tmp_path / "drafting.json"
    drafting.write_text(sample("ollama.json").read_text().replace("qwen3:8b", "qwen3:8b-mtp"))
    assert [row.get("left_out") for row in rows(drafting)][1].startswith("a model that drafts tokens ahead (MTP)")


def test_a_block_of_a_server_that_is_cut(rows: Rows, brief: Brief, sample: Sample, tmp_path: Path) -> None:
    """What was copied of it is read, at the end of a file and before the next block."""
    lines = sample("serving.txt").read_text().splitlines()
    cut = "\n".join(lines[: next(i for i, line in enumerate(lines) if line.startswith("Median TPOT")) + 1])
    for text in (cut, f"```\n{cut}\n```\n", f"{cut}\n{cut}"):
        (tmp_path / "log.md").write_text(text)
        found = [brief(row) for row in rows(tmp_path / "log.md", precision="bf16")]
        assert found[:2] == [
            ("Llama-3.1-8B", "ttft_ms", 2648.65, 1, 1023, 350, "bf16"),
            ("Llama-3.1-8B", "tpot_ms", 51.75, 1, 1023, 350, "bf16"),
        ]


def test_a_tag_without_a_format_has_the_library_s(rows: Rows, log: Any, tmp_path: Path) -> None:
    """Where that is known; --precision says otherwise, and of older families and of Ollama's MLX tags nothing is taken."""
    prompt = "prompt eval count: 26 token(s)\nprompt eval duration: 130ms\n"
    answer = f"{prompt}eval count: 298 token(s)\neval duration: 4.535s\n"
    path = tmp_path / "log.txt"
    for tag, written in (
        ("llama3.1:8b", "q4_k_m"),
        ("llama3.2:1b", "q8_0"),
        ("gpt-oss:20b", "mxfp4"),
        ("qwen3:8b", "q4_k_m"),
    ):
        path.write_text(f"ollama run {tag} --verbose\n{answer}")
        assert {row["precision"] for row in rows(path)} == {written}
    assert any("in q4_k_m, as Ollama's library has it" in line for line in log(path).told)
    assert {row["precision"] for row in rows(path, precision="q8_0")} == {"q8_0"}
    for tag in ("llama2:7b", "gemma4:26b-mlx"):
        path.write_text(f"ollama run {tag} --verbose\n{answer}")
        assert all("give it with --precision" in row["left_out"] for row in rows(path))


def test_ollama_without_a_command_is_of_its_heading(rows: Rows, sample: Sample, tmp_path: Path) -> None:
    """Answers under headings of two models are of these; without any the model is asked for."""
    answer = "\n".join(sample("ollama.txt").read_text().splitlines()[3:11])
    log = tmp_path / "log.md"
    log.write_text(f"## Qwen3-8B Q8_0\n{answer}\n## Qwen3-4B Q4_K_M\n{answer}\n")
    found = rows(log)
    assert [(row["model"], row["precision"]) for row in found] == [("Qwen3-8B", "q8_0")] * 2 + [
        ("Qwen3-4B", "q4_k_m")
    ] * 2
    log.write_text(answer)
    assert {row["left_out"] for row in rows(log, precision="q8_0")} == {
        "the log names no model: give it with --model MODEL"
    }


def test_printed_serving_benchmarks(rows: Rows, brief: Brief, sample: Sample) -> None:
    """Medians at mean lengths where requests came one at a time, of the model of the command above each block."""
    assert [brief(row) for row in rows(sample("serving.txt"), precision="bf16")] == [
        ("Llama-3.1-8B", "ttft_ms", 2648.65, 1, 1023, 350, "bf16"),
        ("Llama-3.1-8B", "tpot_ms", 51.75, 1, 1023, 350, "bf16"),
        *[("a server's figures of several requests at once, whose batch changes: give --max-concurrency 1",)] * 2,
    ]


def test_scoreboards(rows: Rows, brief: Brief, sample: Sample, inside: Any) -> None:
    """Of the chip that is calibrated alone, without and with flash attention apart; several GPUs are another device."""
    assert [brief(row) for row in rows(sample("scoreboard_cuda.md"), measured_on="RTX 4090") if row.get("value")] == [
        ("Llama-2-7B", "prefill_tok_s", 13944.4, 1, 512, 0, "q4_0"),
        ("Llama-2-7B", "decode_tok_s", 182.68, 1, 0, 128, "q4_0"),
        ("Llama-2-7B", "prefill_tok_s", 14770.6, 1, 512, 0, "q4_0"),
        ("Llama-2-7B", "decode_tok_s", 188.96, 1, 0, 128, "q4_0"),
    ]
    chip = "Apple M1 (7-core GPU)"
    found = [brief(row) for row in rows(sample("scoreboard_apple.md"), measured_on=chip) if row.get("value")]
    assert found == [
        ("Llama-2-7B", f"{phase}_tok_s", value, 1, *lengths, written)
        for written, values in (("q8_0", (108.21, 7.92)), ("q4_0", (107.81, 14.19)))
        for phase, value, lengths in zip(("prefill", "decode"), values, ((512, 0), (0, 128)), strict=True)
    ]
    answer = inside("calibrate", sample("scoreboard_apple.md"), "--device", "m1_7c", "--out", "mine.yaml")
    assert "4 rows, line 5, 6, 7, 8: measured on Apple M1 (8-core GPU)" in answer.out


def test_rknn_llm(rows: Rows, brief: Brief, sample: Sample) -> None:
    """Rows of the board in the heading, a row without a name of the model above it; groups apart."""
    found = rows(sample("rknn_llm.md"), measured_on="RK3588")
    assert [brief(row) for row in found][2:4] == [
        ("Qwen3-0.6B", "decode_tok_s", 32.91, 1, 128, 64, "int8"),
        ("Qwen3-0.6B", "ttft_ms", 199.09, 1, 128, 0, "int8"),
    ]
    assert sum(row.get("left_out") == "measured on RK3576" for row in found) == 4
    of_3576 = rows(sample("rknn_llm.md"), measured_on="RK3576", models=("Qwen2 0.5B=qwen2.5_0.5b",))
    assert [row["engine"] for row in of_3576 if row["precision"] == "w4a16"] == [
        *["an unknown engine"] * 2,
        *["an unknown engine, groups of 128"] * 2,
    ]


def test_localscore(rows: Rows, brief: Brief, sample: Sample) -> None:
    """Prefill and decoding of every test apart, decoding after its prompt."""
    found = rows(sample("localscore.json"))
    assert [brief(row) for row in found] == [
        ("Llama-3.2-1B", "prefill_tok_s", 9000.0, 1, 1024, 0, "q4_k_m"),
        ("Llama-3.2-1B", "decode_tok_s", 260.0, 1, 1024, 16, "q4_k_m"),
        ("Llama-3.2-1B", "prefill_tok_s", 8800.0, 1, 2048, 0, "q4_k_m"),
        ("Llama-3.2-1B", "decode_tok_s", 250.0, 1, 2048, 256, "q4_k_m"),
    ]
    assert {row["engine"] for row in found} == {"llamafile 0.9.3 c293359, LocalScore"}


def test_localscore_of_the_site(rows: Rows, brief: Brief, sample: Sample) -> None:
    """A result of the API, whose file holds its tied table twice; a rate of 0 is none."""
    assert [brief(row) for row in rows(sample("localscore_site.json"))] == [
        ("Qwen2.5-3B", "prefill_tok_s", 4300.0, 1, 1024, 0, "q4_k_m"),
        ("Qwen2.5-3B", "decode_tok_s", 120.0, 1, 1024, 16, "q4_k_m"),
        ("prompt_tps: expected more than 0, got 0",),
        ("Qwen2.5-3B", "decode_tok_s", 118.0, 1, 16, 1536, "q4_k_m"),
    ]


def test_localscore_as_csv(rows: Rows, brief: Brief, sample: Sample, tmp_path: Path) -> None:
    """Columns of the tests alone."""
    tests = json.loads(sample("localscore.json").read_text())["results"]
    lines = [",".join(tests[0])] + [",".join(f'"{value}"' for value in test.values()) for test in tests]
    (tmp_path / "log.csv").write_text("\n".join(lines).replace('"[', '"').replace(']"', '"'))
    assert [brief(row) for row in rows(tmp_path / "log.csv")] == [brief(row) for row in rows(sample("localscore.json"))]


def test_localscore_as_it_is_sent_to_the_site(rows: Rows, brief: Brief, sample: Sample, tmp_path: Path) -> None:
    """The body that the site's API takes: the format and the parameters stand beside each test."""
    site = json.loads(sample("localscore_site.json").read_text())
    own = {"model_name": "qwen2.5-3b-instruct", "model_quant_str": "Q4_K - Medium", "model_n_params": 3397103616}
    sent = {
        "system_info": site["system"],
        "accelerator_info": site["accelerator"],
        "runtime_info": {"name": "llamafile", "version": "0.9.3", "commit": "c293359"},
        "results": [test | own for test in site["results"]],
    }
    (tmp_path / "sent.json").write_text(json.dumps(sent))
    assert rows(tmp_path / "sent.json") == rows(sample("localscore_site.json"))


def test_reasons_are_grouped(inside: Any, sample: Sample) -> None:
    """A line a reason with its rows, whose numbers are those of the log."""
    answer = inside("calibrate", sample("perf.yaml"), "--device", "snapdragon_8_elite", "--out", "mine.yaml")
    assert answer.code == 0, answer
    assert "3 rows, line 7, 8, 9: weights in 'float': no profile is of that format" in answer.out
    assert "5 left out, 3 of other devices" in answer.out


@pytest.mark.parametrize(
    "content",
    [
        b"precisions: {w4: {components: {x: {performance_metrics: {y: {z: [1]}}}}}}",
        b"precisions: &a\n  components: *a\nperformance_metrics: 1",
        b"phase,ctx_tokens,ctx_requests,ctx_kv_tokens,decode_requests,decode_kv_tokens,latency_ms\nx,1e400,-1,,nan,0,0\n",
        b'PyTorchObserver {"prompt_tokens":[]}\nPyTorchObserver {]\nPyTorchObserver {"inference_start_ms":1e400}\n'
        + b"a" * 100_000,
        b"] Input token size: 0, Output size: 0\nFirst token latency: 0.0 ms/00tokens\nbenchmark.py " + b"a" * 100_000,
        b'{"benchmark": {"name": "vLLM benchmark"}, "model": 1, "metric": []}',
        b'[{"benchmark": {"name": "vllm", "extra_info": {"args": 3}}, "model": {}, "metric": {"name": "latency", "benchmark_values": [[]]}}]',
        b"Stage  Total Time (ms)  Tokens    Time per Token (ms)\nPrefill 0.0 0\nGenerate 1.0 0\n" + b"a" * 100_000,
        b"eval count: 9 token(s)\neval duration: 1h2q\nprompt eval count: " + b"9" * 50_000 + b"\n",
        b"============ Serving Benchmark Result ============\nSuccessful requests: nan\n==========================\n",
        b"|Chip|pp512|tg128|\n|-|-|-|\n|" + b"a" * 50_000 + b"|1e400|nan|\n|\x1b[31mred|1|\n",
        b"|Model|Dtype|Seqlen|New_tokens|TTFT(ms)|Tokens/s|\n|-|-|-|-|-|-|\n||w9|x|nan|1e400|-1|\n|a|w8a8|\n",
        b'{"results": [{"n_prompt": null, "n_gen": true, "prompt_tps": "1", "gen_tps": []}, 4], "model": 3}',
    ],
    ids=range(13),
)
def test_hostile_files(content: bytes, inside: Any, tmp_path: Path) -> None:
    """Anything is left out or refused in lines that a terminal only shows, never a traceback."""
    (tmp_path / "log").write_bytes(content)
    answer = inside("calibrate", "log", "--device", "l4")
    assert answer.code in (1, 2), answer
    assert "Traceback" not in answer.err
    assert "\x1b" not in answer.err + answer.out


def test_every_sample_is_of_one_format(sample: Sample) -> None:
    """No two readers, the core's among them, claim the same file; the last one takes what no other does."""
    *others, last = readers()
    for path in sorted(sample(".").iterdir()):
        claimed = [reader for reader in others if reader.recognises(document(path))] or [last]
        assert len(claimed) == 1, (path, claimed)
        assert claimed[0].recognises(document(path))
        assert claimed[0] not in READERS[:-1]
