"""Every format read from a sample: which figures, of what, and why the others are not."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nas.errors import UsageError
from plas_board.calibrate import llama_bench
from plas_board.calibrate.figure import document, precision
from plas_board.calibrate.log import READERS, reader_of

Rows = Callable[..., list[dict[str, str]]]
Brief = Callable[[dict[str, Any]], tuple[Any, ...]]
Sample = Callable[[str], Path]
BENCH = [
    ("Qwen2.5-1.5B", "prefill_ms", 31.0, 1, 512, 0, "q4_0"),
    ("Qwen2.5-1.5B", "tpot_ms", 3.75781, 1, 0, 128, "q4_0"),
    ("Qwen2.5-1.5B", "tpot_ms", 4.01562, 1, 1024, 64, "q4_0"),
    ("Qwen2.5-3B", "prefill_ms", 61.0, 1, 512, 0, "q4_0"),
    ("Qwen2.5-3B", "tpot_ms", 7.67188, 1, 0, 128, "q4_0"),
]


def test_llama_bench(rows: Rows, brief: Brief, sample: Sample) -> None:
    """Medians of samples; a prefill, steps from nothing and at a depth; one sequence whatever n_batch says."""
    found = rows(sample("llama_bench.json"))
    assert [brief(row) for row in found] == BENCH
    assert {row["engine"] for row in found} == {"llama-bench 1a2b3c4d CUDA, fa auto"}


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_llama_bench_in_its_other_forms(form: str, rows: Rows, brief: Brief, sample: Sample, tmp_path: Path) -> None:
    """Lines of JSON between what the program prints besides, and CSV, which has means alone."""
    entries, place = json.loads(sample("llama_bench.json").read_text()), tmp_path / "log"
    if form == "jsonl":
        place.write_text(
            "ggml_cuda_init: found 1 CUDA devices:\n" + "".join(json.dumps(entry) + "\n" for entry in entries)
        )
    else:
        with place.open("w") as file:
            fields = [name for name in entries[0] if not name.startswith("samples_")]
            writer = csv.DictWriter(file, fields, quoting=csv.QUOTE_ALL, extrasaction="ignore")
            file.write(",".join(fields) + "\n")
            writer.writerows(
                {
                    name: {True: 1, False: 0}.get(value, value) if isinstance(value, bool) else value
                    for name, value in entry.items()
                }
                for entry in entries
            )
    assert [brief(row) for row in rows(place)] == BENCH


def test_markdown(rows: Rows, brief: Brief, sample: Sample) -> None:
    """Quoted tables of an issue: the build below each, the GPU above it, rates with their scatter."""
    found = rows(sample("issue.md"), measured_on="Example GPU 16GB")
    assert [brief(row) for row in found] == [
        ("Qwen2.5-7B", "prefill_ms", 99.9961, 1, 512, 0, "q4_k_m"),
        ("Qwen2.5-7B", "tpot_ms", 9.04159, 1, 0, 128, "q4_k_m"),
        ("Qwen2.5-7B", "tpot_ms", 9.83187, 1, 4096, 128, "q4_k_m"),
        ("Qwen2.5-7B", "prefill_ms", 115.682, 1, 512, 0, "q4_k_m"),
        ("some layers on the GPU, the others on the CPU (-ngl)",),
        ("Qwen2.5-0.5B", "tpot_ms", 1.98177, 1, 0, 128, "q4_k_m"),
        ("gpt-oss-20b", "tpot_ms", 6.46831, 1, 0, 128, "mxfp4"),
        ("prompt and generation measured together",),
        ("repetitions scatter by more than 20 %: others had the machine, or it throttled",),
        ("measured on CPU",),
        ("measured on CPU",),
    ]  # fmt: skip
    assert {row["engine"] for row in found if not row.get("left_out")} == {"llama-bench 1a2b3c4d CUDA, fa"}
    assert [(row["attended_len"], row["weight_bits"]) for row in found if row["attended_len"] or row["weight_bits"]] == [
        ("4352", ""), ("", "8.206"),
    ]  # fmt: skip
    slow = [row for row in rows(sample("issue.md"), measured_on="cpu") if not row.get("left_out")]
    assert [brief(row)[:3] for row in slow] == [
        ("Llama-2-7B", "prefill_ms", 1909.31),
        ("Llama-2-7B", "tpot_ms", 60.9385),
    ]
    assert {row["engine"] for row in slow} == {"llama-bench 5e6f7a8b CPU, 8 threads"}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"embeddings": True}, "embeddings instead of generation"),
        ({"no_kv_offload": True}, "(-nkvo)"),
        ({"tensor_buft_overrides": "exps=CPU"}, "-ot exps=CPU"),
        ({"type_k": "q8_0"}, "a KV cache in another format"),
        ({"gpu_info": "Example GPU, Example GPU"}, "several GPUs"),
        ({"gpu_info": "Example GPU/Example GPU"}, "several GPUs"),
        ({"devices": "CUDA0/CUDA1"}, "several GPUs"),
        ({"gpu_info": "Example GPU, RPC[192.0.2.1:50052]"}, "several GPUs"),
        ({"devices": "RPC0"}, "(RPC)"),
        ({"n_gpu_layers": 28}, "some layers on the GPU"),
        ({"samples_ns": [1e7, 2e7, 3e7]}, "scatter by more than 20 %"),
        ({"samples_ns": [0]}, "samples_ns: expected more than 0"),
        ({"n_prompt": 0, "n_gen": 0}, "a test of no tokens"),
        ({"n_prompt": "many"}, "n_prompt: expected a number"),
        ({"model_type": "qwen2 1.5B TQ1_0 - 1.69 bpw ternary"}, "weights in 'TQ1_0 - 1.69 bpw ternary'"),
        (
            {"model_type": "qwen2 1.5B", "model_filename": "m.gguf"},
            "the weights' format is not stated: give it with --precision",
        ),
        ({"model_size": 1_400_000_000}, "where q4_0 has 4.50: another format or model than it says"),
    ],
)
def test_settings_that_no_profile_is_of(
    change: dict[str, Any], reason: str, rows: Rows, sample: Sample, tmp_path: Path
) -> None:
    """Each is left out for its own reason, and nothing else is."""
    entries = json.loads(sample("llama_bench.json").read_text())
    (tmp_path / "log.json").write_text(json.dumps([entries[0] | change, *entries[1:]]))
    first, *others = rows(
        tmp_path / "log.json", **({"measured_on": entries[0]["gpu_info"]} if "gpu_info" in change else {})
    )
    assert reason in first["left_out"] or (first["left_out"].startswith("measured on") and "gpu_info" in change)
    assert not any(row.get("left_out") for row in others)
    if "gpu_info" in change:
        assert reason in llama_bench.figure(entries[0] | change).fault


@pytest.mark.parametrize(
    ("model_type", "name"),
    [
        ("llama 8B Q2_K - Medium", "q2_k"), ("llama 8B Q3_K - Small", "q3_k_s"), ("llama 8B IQ4_XS - 4.25 bpw", "iq4_xs"),
        ("llama 8B IQ3_S mix - 3.66 bpw", "iq3_s"), ("gpt-oss 20B MXFP4 MoE", "mxfp4"), ("llama 8B Q6_K", "q6_k"),
        ("llama 8B Q4_K - XL", "q4_k_m"), ("llama 8B all F32", "fp32"), ("llama 8B BF16", "bf16"),
    ],
)  # fmt: skip
def test_file_types(model_type: str, name: str) -> None:
    assert precision(llama_bench.described(model_type)[1]) == name


def test_one_of_several_gpus_alone(sample: Sample) -> None:
    """A GPU that was chosen with -dev is a device of its own."""
    entry = json.loads(sample("llama_bench.json").read_text())[0] | {"gpu_info": "A, B", "devices": "CUDA1"}
    figure = llama_bench.figure(entry)
    assert (figure.fault, figure.device) == ("", "A, B (CUDA1)")
    assert not llama_bench.figure(entry | {"devices": "auto", "split_mode": "none"}).fault


def test_builds_before_backends(sample: Sample) -> None:
    """A boolean per backend, and flash attention as one."""
    entry = json.loads(sample("llama_bench.json").read_text())[0]
    del entry["backends"]
    assert (
        llama_bench.figure(entry | {"cuda": True, "flash_attn": True}).cells["engine"]
        == "llama-bench 1a2b3c4d CUDA, fa"
    )


def test_every_sample_is_of_one_format(sample: Sample) -> None:
    """No two readers claim the same file but the last, which takes what no other does."""
    for path in sorted(sample(".").iterdir()):
        claimed = [reader.NAME for reader in READERS[:-1] if reader.recognises(document(path))]
        assert len(claimed) == (path.name != "config.json"), (path, claimed)


def test_sql_is_named(tmp_path: Path) -> None:
    (tmp_path / "log.sql").write_text("CREATE TABLE IF NOT EXISTS llama_bench (\n  build_commit TEXT\n);\n")
    with pytest.raises(UsageError, match="run it with -o json"):
        reader_of(document(tmp_path / "log.sql"))


def test_batched_bench(rows: Rows, brief: Brief, sample: Sample, tmp_path: Path) -> None:
    """Prefills and steps at every batch, of the model that the log above the table loaded; steps after one shared prompt are not read."""
    found = rows(sample("batched.txt"))
    assert [brief(row) for row in found] == [
        ("Qwen3-8B", "prefill_tok_s", 1186.64, 1, 128, 0, "q4_k_m"),
        ("Qwen3-8B", "decode_tok_s", 41.57, 1, 128, 128, "q4_k_m"),
        ("Qwen3-8B", "prefill_tok_s", 1295.19, 2, 128, 0, "q4_k_m"),
        ("Qwen3-8B", "decode_tok_s", 50.9, 2, 128, 128, "q4_k_m"),
        ("Qwen3-8B", "prefill_tok_s", 1300.0, 1, 128, 0, "q4_k_m"),
        ("sequences that share one prompt: its KV cache is read once for all of them",),
    ]
    assert {row["engine"] for row in found if row["engine"]} == {"llama-batched-bench 1a2b3c4d CUDA, fa"}
    line = '{"n_kv_max": 2048, "n_ubatch": 512, "flash_attn": 0, "is_pp_shared": 0, "pp": 128, "tg": 0, "pl": 4, "n_kv": 512, '
    (tmp_path / "log.jsonl").write_text(line + '"t_pp": 0.5, "speed_pp": 1024.0, "t_tg": 0.0, "speed_tg": 0.0}\n')
    found = rows(tmp_path / "log.jsonl", models=("qwen3_8b",), precision="q4_0")
    assert [brief(row) for row in found] == [
        ("Qwen3-8B", "prefill_tok_s", 1024.0, 4, 128, 0, "q4_0"), ("a test of no output",),
    ]  # fmt: skip


def test_rows_of_tables_are_counted(rows: Rows, tmp_path: Path) -> None:
    """Of llama-batched-bench beside a table of llama-bench and alone, and rows of other cells than their header: two or one each."""
    batched = "| PP  | TG  | B | N_KV | T_PP s |\n|-----|-----|---|------|--------|\n| 128 | 128 | 1 | 256  | 0.1    |\n| 128 | 128 |\n"
    bench = "| model | test | t/s |\n| --- | --- | --- |\n| llama 1B F16 | pp512 | 1000.0 |\n| llama 1B F16 |\n\n"
    for text, expected in ((bench + batched, 6), (batched + "\n" + bench, 6), (batched, 4)):
        path = tmp_path / "log.md"
        path.write_text(text)
        found = rows(path)
        assert len(found) == expected
        assert all(row["left_out"] for row in found)


def test_llama_server(rows: Rows, brief: Brief, sample: Sample, tmp_path: Path) -> None:
    """A request's prefill after what the cache held, N - 1 steps of N tokens; a drafted output and a short one are not read."""
    assert [brief(row) for row in rows(sample("server.txt"))] == [
        ("Qwen3-8B", "prefill_ms", 393.25, 1, 1300, 0, "q4_k_m"),
        ("Qwen3-8B", "tpot_ms", 49.4472, 1, 1300, 199, "q4_k_m"),
        ("a prompt of a request that drafts: what drafts reads it too",),
        ("speculative decoding by something that the log does not name: heads of the model alone have a coefficient",),
        ("Qwen3-8B", "prefill_ms", 100.0, 1, 400, 0, "q4_k_m"),
        ("an output of fewer than 16 tokens",),
    ]
    plain = [line for line in sample("server.txt").read_text().splitlines() if "draft acceptance" not in line]
    (tmp_path / "plain.txt").write_text("\n".join(plain))
    assert rows(tmp_path / "plain.txt")[2]["attended_len"] == str(1500 + 14)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("llama_model_load: using device CUDA1 (Example GPU 16GB) - 15000 MiB free", "several GPUs at once"),
        ("$ llama-server -m a.gguf -ot attn=CPU", "-ot attn=CPU: not the experts"),
        ("$ llama-server -m a.gguf -ctk q8_0", "a KV cache in another format"),
        (
            "llama_kv_cache: size = 72.00 MiB, K (q8_0):   36.00 MiB, V (q8_0):   36.00 MiB",
            "a KV cache in another format",
        ),
        ("load_tensors: offloaded 20/37 layers to GPU", "some layers on the GPU"),
        ("print_info: file type   = TQ1_0 - 1.69 bpw ternary", "no profile is of that format"),
    ],
)
def test_settings_that_a_loading_log_says(line: str, reason: str, rows: Rows, sample: Sample, tmp_path: Path) -> None:
    """Each leaves every row out for its own reason."""
    text = sample("batched.txt").read_text()
    old = next(
        (
            each
            for each in text.splitlines()
            if each.partition("=")[0] == line.partition("=")[0] or ("offloaded" in each and "offloaded" in line)
        ),
        "",
    )
    (tmp_path / "log.txt").write_text(text.replace(old, line) if old and "using" not in line else f"{line}\n{text}")
    found = rows(tmp_path / "log.txt")
    assert len(found) == 6
    assert all(reason in row["left_out"] for row in found[:5])


def test_mlx(rows: Rows, brief: Brief, sample: Sample) -> None:
    """Medians of a benchmark's trials, averages where no trial is shown, rates of a generation."""
    assert [brief(row) for row in rows(sample("mlx.txt"))] == [
        ("Qwen3-0.6B", "prefill_tok_s", 2902.08, 1, 2048, 0, "bf16"),
        ("Qwen3-0.6B", "decode_tok_s", 205.243, 1, 2048, 128, "bf16"),
        ("Qwen3-4B", "prefill_tok_s", 944.421, 16, 128, 0, "mlx_4bit"),
        ("Qwen3-4B", "decode_tok_s", 301.916, 16, 128, 128, "mlx_4bit"),
        ("Qwen3-4B", "prefill_tok_s", 34.744, 1, 13, 0, "mlx_8bit"),
        ("Qwen3-4B", "decode_tok_s", 174.251, 1, 13, 256, "mlx_8bit"),
    ]


def test_mlx_averages_of_two_runs_under_one_command(rows: Rows, brief: Brief, tmp_path: Path) -> None:
    """Each is a run of the command's lengths; trials after averages are another; the next command keeps none of them."""
    averages = "Averages: prompt_tps={0}, generation_tps={1}, peak_memory=1.0"
    lines = [
        "$ mlx_lm.benchmark --model mlx-community/Qwen3-4B-4bit -p 128 -g 64 -b 16",
        averages.format("900.0", "300.0"),
        averages.format("950.0", "310.0"),
        "Trial 1:  prompt_tps=960.0, generation_tps=320.0, peak_memory=1.0",
        averages.format("961.0", "321.0"),
        "$ mlx_lm.generate --model mlx-community/Qwen3-4B-4bit",
        "Prompt: 13 tokens, 34.7 tokens-per-sec",
        "Generation: 256 tokens, 174.2 tokens-per-sec",
    ]
    (tmp_path / "log.txt").write_text("\n".join(lines))
    found = [brief(row)[1:6] for row in rows(tmp_path / "log.txt")]
    rates = [("900.0", "300.0"), ("950.0", "310.0"), ("960.0", "320.0")]
    assert found == [
        *[row for read, written in rates for row in (("prefill_tok_s", float(read), 16, 128, 0), ("decode_tok_s", float(written), 16, 128, 64))],
        ("prefill_tok_s", 34.7, 1, 13, 0),
        ("decode_tok_s", 174.2, 1, 13, 256),
    ]  # fmt: skip
