"""Tables, lines and objects of speeds as people publish them: what each number is of, and why one is left out."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from plas_board.calibrate.figure import document
from plas_board.calibrate.log import reader_of

Rows = Callable[..., list[dict[str, str]]]
#: Forms of public logs: text, options, rows as model, metric, value, prompt, output, format; and a part of the reason of the others.
FORMS: dict[str, tuple[str, dict[str, Any], list[tuple[Any, ...]], str]] = {
    "Markdown, llama-bench's tests as columns": (
        "# Board\n\n| Model | Size | pp512 (t/s) | tg128 (t/s) |\n|---|---|---|---|\n"
        "| Qwen3-4B Q4_K_M | 2.3 GiB | 1,381.0 ± 2.1 | **71** |\n",
        {},
        [("Qwen3-4B", "prefill_tok_s", 1381, 512, 0, "q4_k_m"), ("Qwen3-4B", "decode_tok_s", 71, 0, 128, "q4_k_m")],
        "",
    ),
    "a row a test, beside settings and sizes that are no speeds": (
        "| model | size | ngl | threads | test | tok/s |\n|---|---|---|---|---|---|\n"
        "| Qwen3-8B Q4_0 | 4.45 GiB | 99 | 8 | pp512 | 3000.1 |\n| Qwen3-8B Q4_0 | 4.45 GiB | 99 | 8 | tg128 | 90.2 |\n",
        {},
        [("Qwen3-8B", "prefill_tok_s", 3000.1, 512, 0, "q4_0"), ("Qwen3-8B", "decode_tok_s", 90.2, 0, 128, "q4_0")],
        "",
    ),
    "a first column without a name": (
        "## llama.cpp\n\n| | pp512 | tg128 |\n|---|---|---|\n| **Llama-3.1-8B Q4_K_M** | 900.7 | 26.0 |\n",
        {},
        [
            ("Llama-3.1-8B", "prefill_tok_s", 900.7, 512, 0, "q4_k_m"),
            ("Llama-3.1-8B", "decode_tok_s", 26, 0, 128, "q4_k_m"),
        ],
        "",
    ),
    "lengths in the caption, units in cells": (
        "1024 prefill tokens + 256 decode tokens, Gemma 4 E2B, int4:\n\n| Backend | Prefill | Decode | TTFT |\n|---|---|---|---|\n"
        "| CPU | 133 tok/s | 7.6 tok/s | 7.8s |\n",
        {},
        [
            ("Gemma-4-E2B", "prefill_tok_s", 133, 1024, 0, "int4"),
            ("Gemma-4-E2B", "decode_tok_s", 7.6, 1024, 256, "int4"),
        ],
        "",
    ),
    "a column a length, a row without a name of the model above it": (
        "### Decoding Speed (Tokens per Second, or TPS, at different sequence lengths)\n\n"
        "| **Model** | **1k** | **2k** |\n|---|---|---|\n| **LLaMA 3.2 1B** | 36.7 | *NA* |\n| | 18.6 | 14.9 |\n",
        {"precision": "w4a16"},
        [
            ("Llama-3.2-1B", "decode_tok_s", value, tokens, 128, "w4a16")
            for value, tokens in ((36.7, 1024), (18.6, 1024), (14.9, 2048))
        ],
        "",
    ),
    "a column a size and a format": (
        "Average speed (tokens/s) of generating 1024 tokens by GPUs on LLaMA 3.\n\n| GPU | 8B Q4_K_M | 70B F16 |\n|---|---|---|\n| 4090 24GB | 127.74 | OOM |\n",
        {},
        [("Llama-3-8B", "decode_tok_s", 127.74, 128, 1024, "q4_k_m")],
        "",
    ),
    "a size beside the name, a time of the first token": (
        "| 模型名称 | 参数量 | Prompt length | TTFT（ms） | Generate（token/s） |\n|---|---|---|---|---|\n| Qwen2.0 | 0.5B | 128 | 122 | 29 |\n",
        {"precision": "int8"},
        [("Qwen2.5-0.5B", "decode_tok_s", 29, 128, 128, "int8"), ("Qwen2.5-0.5B", "ttft_ms", 122, 128, 0, "int8")],
        "",
    ),
    "a row a metric": (
        "### Llama-3.1-8B-Instruct FP8\n\n| Metric | Value |\n|---|---|\n| Average Input Length (tokens) | 2048 |\n| Average Output Length (tokens) | 128 |\n"
        "| Average Time To First Token (ms) | 56.1 |\n| Average Inter-Token Latency (ms) | 4.4 |\n| Request Throughput (req/sec) | 1.6 |\n",
        {},
        [("Llama-3.1-8B", "tpot_ms", 4.4, 2048, 128, "fp8"), ("Llama-3.1-8B", "ttft_ms", 56.1, 2048, 0, "fp8")],
        "",
    ),
    "several requests at once": (
        "model,dtype,batch_size,input_len,output_len,ttft_ms,tpot_ms,throughput_tok_s\n"
        "Qwen2.5-7B,bf16,1,1024,128,88.2,17.9,55.1\nQwen2.5-7B,bf16,8,1024,128,510,19.4,402\n",
        {},
        [("Qwen2.5-7B", "tpot_ms", 17.9, 1024, 128, "bf16"), ("Qwen2.5-7B", "ttft_ms", 88.2, 1024, 0, "bf16")],
        "several sequences at once",
    ),
    "CSV with semicolons and decimal commas": (
        "Modell;Format;Prefill (Token/s);Generierung (Token/s);Prompt-Tokens\nQwen2.5-1.5B;Q8_0;45,2;9,1;256\n",
        {},
        [
            ("Qwen2.5-1.5B", "prefill_tok_s", 45.2, 256, 0, "q8_0"),
            ("Qwen2.5-1.5B", "decode_tok_s", 9.1, 256, 128, "q8_0"),
        ],
        "",
    ),
    "CSV of two columns": (
        "model,decode_tok_s\nQwen3-8B-Q4_K_M,60.1\n",
        {},
        [("Qwen3-8B", "decode_tok_s", 60.1, 128, 128, "q4_k_m")],
        "",
    ),
    "lines in columns": (
        "ollama run llama3.1:8b --verbose\nprompt eval rate:     120.31 tokens/s\neval rate:            23.51 tokens/s\n",
        {"precision": "q4_k_m"},
        [("Llama-3.1-8B", "decode_tok_s", 23.51, 128, 128, "q4_k_m")],
        "tokens of the prompt are not stated",
    ),
    "a box": (
        "┌──────────┬────────┬──────────────┬────────────┐\n│ Model    │ Quant  │ Prompt tok/s │ Gen tok/s  │\n"
        "├──────────┼────────┼──────────────┼────────────┤\n│ Qwen3-8B │ Q4_K_M │ 880.2        │ 76.1       │\n└──────────┴────────┴──────────────┴────────────┘\n",
        {},
        [("Qwen3-8B", "decode_tok_s", 76.1, 128, 128, "q4_k_m")],
        "tokens of the prompt are not stated",
    ),
    "HTML": (
        "<table><tr><th>Model</th><th>Precision</th><th>Decode (tok/s)</th></tr>\n<tr><td>Qwen2.5-7B</td><td>FP16</td><td>58.1</td></tr></table>\n",
        {},
        [("Qwen2.5-7B", "decode_tok_s", 58.1, 128, 128, "fp16")],
        "",
    ),
    "Genie's indicators": (
        "$ genie-t2t-run -c llama-v3.2-3b-instruct.json\n[KPIS]:\nInit Time: 4243040 us\nPrompt Processing Time: 141256 us, Prompt Processing Rate : 906.11 toks/sec\n"
        "Token Generation Time: 3326211 us, Token Generation Rate: 17.342764 toks/sec\n",
        {"precision": "w4a16"},
        [
            ("Llama-3.2-3B", "prefill_tok_s", 906.11, 128, 0, "w4a16"),
            ("Llama-3.2-3B", "decode_tok_s", 17.3428, 128, 58, "w4a16"),
        ],
        "",
    ),
    "Genie's profile": (
        '{"components": [{"events": [{"type": "GenieDialog_create", "duration": 1}, {"type": "GenieDialog_query", "num-prompt-tokens": {"value": 698},'
        ' "num-generated-tokens": {"value": 100}, "prompt-processing-rate": {"value": 1100.5, "unit": "toks/sec"},'
        ' "token-generation-rate": {"value": 13.07, "unit": "toks/sec"}}]}]}',
        {"precision": "w4a16", "models": ("llama_3.2_3b",)},
        [
            ("Llama-3.2-3B", "prefill_tok_s", 1100.5, 698, 0, "w4a16"),
            ("Llama-3.2-3B", "decode_tok_s", 13.07, 698, 100, "w4a16"),
        ],
        "",
    ),
    "lines of a program": (
        "config path is /data/Qwen2.5-1.5B-Instruct-MNN/config.json\nprompt tokens num = 128\ndecode tokens num = 64\nprefill time = 0.56 s\n"
        "prefill speed = 228.57 tok/s\n decode speed = 39.88 tok/s\n",
        {"precision": "int4"},
        [
            ("Qwen2.5-1.5B", "prefill_tok_s", 228.57, 128, 0, "int4"),
            ("Qwen2.5-1.5B", "decode_tok_s", 39.88, 128, 64, "int4"),
        ],
        "",
    ),
    "a line of both phases": (
        "Loading Qwen3-8B-Q4_K_M.gguf\nCtxLimit:345/8192, Amt:100/100, Init:0.00s, Process:0.42s (1.7ms/T = 583.33T/s), Generate:2.31s (23.1ms/T = 43.29T/s)\n",
        {},
        [
            ("Qwen3-8B", "prefill_tok_s", 583.33, 245, 0, "q4_k_m"),
            ("Qwen3-8B", "decode_tok_s", 43.29, 245, 100, "q4_k_m"),
        ],
        "",
    ),
    "an object of a server": (
        '{"model": "Qwen3-8B-Q4_K_M.gguf", "timings": {"prompt_n": 512, "prompt_ms": 61.2, "prompt_per_second": 8366.0, "predicted_n": 128,'
        ' "predicted_per_second": 130.6}}',
        {},
        [
            ("Qwen3-8B", "prefill_tok_s", 8366, 512, 0, "q4_k_m"),
            ("Qwen3-8B", "decode_tok_s", 130.6, 512, 128, "q4_k_m"),
        ],
        "",
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_public_logs(form: str, rows: Rows, brief: Callable[..., Any], tmp_path: Path) -> None:
    text, options, expected, reason = FORMS[form]
    (tmp_path / "log").write_text(text)
    found = rows(tmp_path / "log", **options)
    read = [brief(row) for row in found if not row.get("left_out")]
    assert [(model, metric, value, *rest) for model, metric, value, _, *rest in read] == expected
    left = [row["left_out"] for row in found if row.get("left_out")]
    assert all(reason and reason in why for why in left), left
    assert bool(left) == bool(reason)


def test_what_is_not_stated_is_part_of_the_engine_s_name(rows: Rows, tmp_path: Path) -> None:
    """So that such rows are never mixed with those of stated lengths."""
    (tmp_path / "log").write_text("## Ollama\n\n| Model | Quant | t/s |\n|---|---|---|\n| Qwen3-8B | Q4_K_M | 76.1 |\n")
    assert [row["engine"] for row in rows(tmp_path / "log")] == ["ollama, lengths not stated"]


@pytest.mark.parametrize(
    "text",
    [
        "metric,value,prompt_len\nprefill_ms,9,512\n",  # a measured CSV
        "depth,width,loss,decode_ms,prefill_ms\n16,1024,2.9,20,300\n",  # designs of a run, whose times are predicted
        "| Model | Memory | Price |\n|---|---|---|\n| Qwen3-8B | 6 GB | 3 $ |\n",
        "It took 3 hours and 20 minutes.\n",
    ],
)
def test_what_has_no_speed_is_no_log(text: str, tmp_path: Path) -> None:
    (tmp_path / "log").write_text(text)
    assert reader_of(document(tmp_path / "log")) is None


def test_csv_behind_lines_about_devices(rows: Rows, sample: Callable[[str], Path], tmp_path: Path) -> None:
    """llama-bench's own, with what it prints before."""
    header = "build_commit,cpu_info,gpu_info,backends,model_filename,model_type,model_size,model_n_params,n_ubatch,n_gpu_layers,n_prompt,n_gen,n_depth,avg_ns,stddev_ns,avg_ts"
    row = '"1a2b3c4d","CPU","NVIDIA GeForce RTX 4090","CUDA","Qwen3-8B-Q4_K_M.gguf","qwen3 8B Q4_K - Medium","5027783488","8190735360","512","99","512","0","0","56000000","1000","9142"'
    lines = (
        "ggml_cuda_init: found 1 CUDA devices:\n  Device 0: NVIDIA GeForce RTX 4090, compute capability 8.9, VMM: yes\n"
    )
    (tmp_path / "log").write_text(f"{lines}{header}\n{row}\n")
    assert [(row["model"], row["metric"], float(row["value"])) for row in rows(tmp_path / "log")] == [
        ("Qwen3-8B", "prefill_ms", 56.0)
    ]
