"""A log cannot be misread: its device, its models and their formats are claims that are checked, and what is cut is counted."""

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from nas.study.catalogue import load_device
from objectives.plugins import documents
from plas_board.calibrate import log as logs
from plas_board.calibrate.devices import chips, contradicts, is_same
from plas_board.calibrate.figure import Document, Figure, Stated, Unusable
from plas_board.calibrate.models import given_models, identified, published

Rows = Callable[..., list[dict[str, str]]]
Sample = Callable[[str], Path]
DEVICES = {name: load_device(name) for name in documents("objectives.devices")}
TABLE = """\
ggml_vulkan: 0 = {gpu} (driver) | uma: 0 | fp16: 1
| model                          |       size |     params | backend    | ngl |            test |                  t/s |
| ------------------------------ | ---------: | ---------: | ---------- | --: | --------------: | -------------------: |
| llama 8B Q4_K - Medium         |   4.58 GiB |     8.03 B | {backend}  |  99 |           pp512 |      4820.20 ± 13.45 |
| llama 8B Q4_K - Medium         |   4.58 GiB |     8.03 B | {backend}  |  99 |           tg128 |        104.60 ± 0.59 |

build: 1a2b3c4d (5400)
"""
BATCHED = """
main: n_kv_max = 4096, n_batch = 2048, n_ubatch = 512, flash_attn = 1, is_pp_shared = 0, n_gpu_layers = 99

|    PP |     TG |    B |   N_KV |   T_PP s | S_PP t/s |   T_TG s | S_TG t/s |      T s |    S t/s |
|-------|--------|------|--------|----------|----------|----------|----------|----------|----------|
|   512 |     32 |    1 |    544 |    0.390 |  1311.72 |    0.395 |    81.11 |    0.785 |   693.12 |
|   512 |     32 |    2 |   1088 |    0.273 |  3754.20 |    0.674 |    95.00 |    0.946 |  1149.52 |
"""
#: As ggml-org/llama.cpp benches/dgx-spark.md has them, of which some name their format and some do not.
HEADINGS = {
    "ggml-org/gpt-oss-20b-GGUF": "gpt-oss-20b",
    "ggml-org/gpt-oss-120b-GGUF": "gpt-oss-120b",
    "Qwen/Qwen3-8B-Q8_0-GGUF": "Qwen3-8B",
    "[Meta-Llama-3.1-8B-Instruct-Q4_K_M](https://example.org/x)": "Llama-3.1-8B",
    "`Qwen3-30B-A3B-Q8_0`": "Qwen3-30B-A3B",
    "Qwen2.5-7B-Instruct-Q4_K_M.gguf": "Qwen2.5-7B",
}


def test_a_device_is_itself_and_none_of_its_neighbours() -> None:
    """No shipped device contradicts its own name, and only those of one chip are open to each other."""
    twins = {
        frozenset(("rk3588_cpu", "rk3588_npu")),
        frozenset(("jetson_orin_nano_8gb_original", "jetson_orin_nano_super_8gb")),
    }
    of_a_maker = ("core_ultra_9_288v", "mi300x", "rx_7900_xt", "ryzen_ai_max_395")  # which a generic x86 may have
    for name, device in DEVICES.items():
        assert not contradicts(device.name, device), name
        others = {o for o, other in DEVICES.items() if o != name and not contradicts(device.name, other)}
        assert all(frozenset((name, other)) in twins for other in others - {"x86_desktop_generic"} - {*of_a_maker}), (
            name,
            others,
        )


@pytest.mark.parametrize(
    ("name", "same"),
    [
        ("NVIDIA GeForce RTX 4090", "rtx_4090"), ("RTX 4090", "rtx_4090"), ("NVIDIA GeForce RTX 3080", "rtx_3080"),
        ("AMD Radeon RX 7900 XT (RADV NAVI31)", "rx_7900_xt"), ("AMD Radeon Graphics (RADV GFX1151)", "ryzen_ai_max_395"),
        ("AMD RYZEN AI MAX+ PRO 395 w/ Radeon 8060S", "ryzen_ai_max_395"), ("NVIDIA A100-SXM4-80GB", "a100_sxm_80gb"),
        ("NVIDIA A100 80GB PCIe", "a100_pcie_80gb"), ("NVIDIA GB10", "dgx_spark_gb10"), ("Apple M2 Ultra", "m2_ultra_76c"),
        ("Apple M1 (7-core GPU)", "m1_7c"), ("Intel(R) Arc(TM) 140V GPU (16GB)", "core_ultra_9_288v"), ("RK3588", "rk3588_npu"),
        ("Snapdragon 8 Elite QRD", "snapdragon_8_elite"), ("NVIDIA Jetson AGX Orin", "jetson_agx_orin_64gb"),
    ],
)  # fmt: skip
def test_names_of_a_device(name: str, same: str) -> None:
    assert is_same(name, DEVICES[same])


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("AMD Radeon RX 5700 XT", "rtx_4090"), ("NVIDIA GeForce RTX 4090 Laptop GPU", "rtx_4090"), ("2x RTX 4090", "rtx_4090"),
        ("NVIDIA GeForce RTX 4080 SUPER", "rtx_4080"), ("NVIDIA GeForce RTX 3080 (12 GB)", "rtx_3080"), ("Apple M4", "m4_max_40c"),
        ("NVIDIA A100-SXM4-40GB", "a100_sxm_80gb"), ("NVIDIA H100 PCIe", "h100_sxm"), ("AMD Radeon RX 7900 XTX", "rx_7900_xt"),
        ("Intel(R) Core(TM) i9-13900K", "rtx_4090"), ("CPU", "rtx_4090"), ("CUDA", "rx_7900_xt"), ("Metal", "l4"),
        ("NVIDIA GeForce RTX 4090", "x86_desktop_generic"), ("Raspberry Pi 4 Model B", "raspberry_pi_5"), ("rk3576", "rk3588_npu"),
        ("AMD Ryzen 9 7950X 16-Core Processor", "ryzen_ai_max_395"), ("Apple M1 (8-core GPU)", "m1_7c"), ("iPhone17,1", "tensor_g5_cpu"),
    ],
)  # fmt: skip
def test_names_of_other_devices(name: str, other: str) -> None:
    assert contradicts(name, DEVICES[other])
    assert not is_same(name, DEVICES[other])


def test_a_name_that_says_no_chip_contradicts_nothing() -> None:
    """Boards and drivers are called anything; what is not said is not held against a log."""
    for name in ("ARMv8 board", "Example GPU 16GB", "Some Board GPU"):
        assert not chips(name)
        assert not contradicts(name, DEVICES["raspberry_pi_5"]) or "GPU" in name
    assert not contradicts("Example GPU 16GB", DEVICES["rtx_4080"])


def test_the_log_of_another_device_is_refused_with_both_names(inside: Any, tmp_path: Path) -> None:
    (tmp_path / "log.md").write_text(TABLE.format(gpu="AMD Radeon RX 5700 XT", backend="Vulkan"))
    answer = inside("calibrate", "log.md", "--device", "rtx_4090")
    assert answer.code == 2
    message = "--device: expected AMD Radeon RX 5700 XT, which the log was measured on, got NVIDIA GeForce RTX 4090"
    assert message in answer.err


def test_of_several_devices_the_one_that_is_calibrated_is_taken(inside: Any, tmp_path: Path) -> None:
    for number, gpu in enumerate(("NVIDIA GeForce RTX 4090", "NVIDIA GeForce RTX 3090")):
        (tmp_path / f"{number}.md").write_text(TABLE.format(gpu=gpu, backend="Vulkan"))
    answer = inside("calibrate", "0.md", "1.md", "--device", "rtx_3090", "--out", "mine.yaml")
    assert answer.code == 0, answer
    assert "2 rows, line 1, 2: measured on NVIDIA GeForce RTX 4090" in answer.out


def test_a_table_is_of_the_model_in_its_heading(rows: Rows, tmp_path: Path) -> None:
    """Six headings give six models, whatever is given beside them; a comment in code is no heading."""
    log = tmp_path / "log.md"
    code = "```bash\n# Llama-2-7B\nuname --all\n```\n"
    log.write_text("# Results\n" + "".join(f"\n## {heading}\n{code}{BATCHED}" for heading in HEADINGS))
    found = rows(log, precision="mxfp4")
    assert [row["model"] for row in found] == [model for model in HEADINGS.values() for _ in range(4)]
    formats = {row["model"]: row["precision"] for row in found}
    assert formats["Qwen3-8B"] == formats["Qwen3-30B-A3B"] == "q8_0"
    assert formats["Llama-3.1-8B"] == "q4_k_m"
    assert formats["gpt-oss-20b"] == "mxfp4"


def test_flags_do_not_override_the_log(inside: Any, tmp_path: Path) -> None:
    """A model or a format alone is for logs that have none: elsewhere it is refused with what the log says."""
    (tmp_path / "log.md").write_text("".join(f"\n## {heading}\n{BATCHED}" for heading in HEADINGS))
    answer = inside(
        "calibrate", "log.md", "--device", "dgx_spark_gb10", "--model", "gpt_oss_20b", "--precision", "mxfp4"
    )
    assert answer.code == 2
    assert "--model: expected NAME=MODEL of a log that has names (" in answer.err
    (tmp_path / "one.md").write_text(TABLE.format(gpu="NVIDIA GeForce RTX 4090", backend="Vulkan"))
    answer = inside("calibrate", "one.md", "--device", "rtx_4090", "--precision", "mxfp4")
    assert answer.code == 2
    assert "--precision: expected none for a log that states its own formats, got mxfp4" in answer.err


def test_a_given_model_must_be_of_the_size_that_the_name_says() -> None:
    given = given_models(["Qwen/Qwen3-0.6B=llama_3.1_8b", "My-13B-Model=llama_3.1_8b", "mine=llama_3.1_8b"])
    for name, by_name in (("Qwen/Qwen3-0.6B", "Qwen3-0.6B"), ("My-13B-Model", "13 billion parameters")):
        with pytest.raises(Unusable, match=f"{by_name} by its name, where --model gives Llama-3.1-8B of 8.03 billion"):
            identified(Figure((name,)), given, published())
    assert identified(Figure(("mine",)), given, published())[0].label == "Llama-3.1-8B"


def test_two_names_of_a_figure_must_agree() -> None:
    """The file of one model under the heading of another is refused with both; names of one size are not held apart."""
    with pytest.raises(Unusable, match="gpt-oss-20b by one name, Qwen3-8B by the heading"):
        identified(Figure(("gpt-oss-20b.gguf", "Qwen3-8B")), {}, published())
    same = Figure(
        ("Mistral-7B-Instruct-v0.3-Q4_K_M", "llama 7B"), family="llama", parameters=Stated(7_248_023_552, 4096)
    )
    assert identified(same, {}, published())[0].label == "Mistral-7B-v0.3"


def test_a_format_of_experts_is_not_given_to_a_dense_model(rows: Rows, tmp_path: Path) -> None:
    (tmp_path / "log.md").write_text(f"## gpt-oss-20b\n{BATCHED}\n## Qwen3-8B\n{BATCHED}")
    found = rows(tmp_path / "log.md", precision="mxfp4")
    assert [row["model"] for row in found[:4]] == ["gpt-oss-20b"] * 4
    reason = "mxfp4 by --precision, a format of experts, which Qwen3-8B has not"
    assert {row["left_out"] for row in found[4:]} == {reason}


def test_the_file_s_name_names_a_table_that_nothing_else_does(rows: Rows, tmp_path: Path) -> None:
    (tmp_path / "Qwen3-8B-Q8_0.txt").write_text(BATCHED)
    assert {(row["model"], row["precision"]) for row in rows(tmp_path / "Qwen3-8B-Q8_0.txt")} == {("Qwen3-8B", "q8_0")}
    (tmp_path / "result.txt").write_text(BATCHED)
    assert {row["left_out"] for row in rows(tmp_path / "result.txt", precision="q8_0")} == {
        "the log names no model: give it with --model MODEL"
    }


def test_commands_of_several_models_name_none_of_the_times_between(rows: Rows, sample: Sample, tmp_path: Path) -> None:
    """Timings of a server without the line that says what was loaded."""
    times = "prompt eval time = 100.00 ms / 64 tokens\neval time = 1000.00 ms / 32 runs\n"
    commands = "".join(f"./llama-cli -m {name}.gguf\n{times}" for name in ("Qwen3-8B-Q8_0", "Qwen3-4B-Q8_0"))
    (tmp_path / "log.txt").write_text(commands)
    reasons = {row["left_out"] for row in rows(tmp_path / "log.txt")}
    assert reasons == {"commands of 2 models, and no line says which one was loaded"}


def test_rpc_that_is_compiled_in_and_gpus_of_processors(rows: Rows, tmp_path: Path) -> None:
    """A build that could use other machines, or a display's GPU beside the card, says nothing of where layers were."""
    log = tmp_path / "log.md"
    table = TABLE.format(gpu="AMD Radeon RX 7900 XT", backend="Vulkan,RPC")
    log.write_text(f"ggml_vulkan: 1 = AMD Radeon(TM) Graphics (driver) | uma: 1\n{table}")
    assert [row["engine"] for row in rows(log)] == ["llama-bench 1a2b3c4d Vulkan"] * 2
    log.write_text(f"llama-bench --rpc 192.0.2.1:50052 -p 512\n{table}")
    assert {row["left_out"] for row in rows(log)} == {"layers on other machines (RPC)"}


@pytest.mark.parametrize(
    ("change", "device"),
    [
        ({"split_mode": "none", "main_gpu": 1}, "Card B"),
        ({"split_mode": "layer", "tensor_split": "1.00/0.00"}, "Card A"),
    ],
)
def test_one_of_two_gpus(change: dict[str, Any], device: str, rows: Rows, sample: Sample, tmp_path: Path) -> None:
    """Chosen by -sm none and -mg, or by shares of which one is nothing."""
    entry = json.loads(sample("llama_bench.json").read_text())[0] | {"gpu_info": "Card A, Card B"}
    (tmp_path / "log.json").write_text(json.dumps([entry | change]))
    assert not rows(tmp_path / "log.json", measured_on=device)[0].get("left_out")


def test_objects_among_other_lines_and_cut_ones(rows: Rows, sample: Sample, tmp_path: Path) -> None:
    """Whole rows are read and the rest is counted: lines before, no end, a cut line, several lists one after the other."""
    text, entries = sample("llama_bench.json").read_text(), json.loads(sample("llama_bench.json").read_text())
    whole = rows(sample("llama_bench.json"))
    log = tmp_path / "log"

    def read(content: str, encoding: str = "utf-8") -> list[dict[str, str]]:
        log.write_bytes(content.encode(encoding))
        return [{key: row.get(key, "") for key in ("model", "value", "left_out")} for row in rows(log)]

    expected = [{key: row.get(key, "") for key in ("model", "value", "left_out")} for row in whole]
    assert read(f"ggml_vulkan: 0 = Card (driver)\n{text}") == expected
    assert read(f"{text}\n{text}") == expected * 2
    assert read(text, "utf-16") == read(text, "utf-16-le") == read(text, "cp1252") == expected
    open_end = text.rstrip().removesuffix("]")
    assert read(open_end) == [*expected, {"model": "", "value": "", "left_out": "the file ends before its list does"}]
    lines = [json.dumps(entry) for entry in entries]
    cut = read("\n".join([*lines[:-1], lines[-1][:200]]))
    assert cut[:-1] == expected[:-1]
    assert cut[-1]["left_out"] == f"the JSON object at line {len(lines)} of the file is cut"


class Broken(ModuleType):
    """A package's log reader that stumbles over every file."""

    NAME = "Broken"

    def recognises(self, document: Document) -> bool:
        raise KeyError(document.path.name)

    def figures(self, documents: list[Document]) -> list[Figure]:
        raise KeyError("model")


def test_a_reader_that_stumbles_is_named_and_stops_nothing(
    inside: Any, sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = Broken("broken")
    monkeypatch.setattr(logs, "readers", lambda: (reader, *logs.READERS))
    answer = inside("calibrate", sample("llama_bench.json"), "--device", "rtx_4080", "--out", "mine.yaml")
    assert answer.code == 0, answer
    assert answer.err.count("got KeyError of the log reader Broken ('llama_bench.json')") == 1
    monkeypatch.setattr(Broken, "recognises", lambda self, document: True)
    answer = inside("calibrate", sample("llama_bench.json"), "--device", "rtx_4080", "--out", "mine.yaml")
    assert answer.code == 2
    assert "got KeyError of the log reader Broken ('model'); mend its package" in answer.err
    assert "Traceback" not in answer.err


def test_a_package_that_cannot_be_imported_is_named_and_stops_nothing(
    inside: Any, sample: Sample, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line that names it, and the log is read."""
    folder = tmp_path / "acme_logs-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-logs\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text("[plas.logs]\nacme = acme_logs.reader\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    logs.readers.cache_clear()
    answer = inside("calibrate", sample("llama_bench.json"), "--device", "rtx_4080", "--out", "mine.yaml")
    logs.readers.cache_clear()
    assert answer.code == 0, answer
    assert answer.err.count("log reader acme of acme-logs 1.0") == 1


MLX = "$ mlx_lm.generate --model mlx-community/Qwen3-4B-4bit\nPrompt: 128 tokens, 812.3 tokens-per-sec\nGeneration: 256 tokens, 85.1 tokens-per-sec\n"
SPEEDS = "| Model | pp512 (t/s) | tg128 (t/s) |\n|---|---|---|\n| Llama-3.1-8B Q4_K_M | 900 | {decode} |\n"


@pytest.mark.parametrize(
    ("text", "device", "named"),
    [
        (TABLE.partition("\n")[2].format(backend="HTP"), "raspberry_pi_5", "HTP"),
        (TABLE.partition("\n")[2].format(backend="Metal,BLAS"), "rtx_4090", "Metal,BLAS"),
        (TABLE.partition("\n")[2].format(backend="SYCL"), "m4_max_40c", "SYCL"),
        (MLX, "rtx_4090", "MLX"),
        (f"# M3Ultra\n\n{SPEEDS.format(decode=60)}", "m1_max_32c", "M3 ULTRA"),
        (f"# Hexagon NPU\n\n{SPEEDS.format(decode=9)}", "rtx_3090", "HEXAGON"),
        (f"GPU: RTX4090, 24 GB\n\n{SPEEDS.format(decode=60)}", "rtx_3090", "RTX 4090"),
        (f"Results of an RTX 3090\n\n{SPEEDS.format(decode=60)}", "l4", "RTX 3090"),
    ],
)  # fmt: skip
def test_a_backend_or_a_heading_names_another_device(
    text: str, device: str, named: str, inside: Any, tmp_path: Path
) -> None:
    """Where no line of a device stands, the backend, the program and the headings are what a log says of it."""
    (tmp_path / "log.md").write_text(text)
    answer = inside("calibrate", "log.md", "--device", device)
    assert answer.code == 2, answer
    assert f"--device: expected {named}" in answer.err
    assert f"which the log was measured on, got {DEVICES[device].name}" in answer.err


OWN = "name: {name}\nint8: 40 TOPS\nfp16: 10 TFLOPS\nbandwidth: 51 GB/s\nmemory: 8 GB\n"


@pytest.mark.parametrize(
    ("backend", "device", "refused"),
    [
        ("CPU", "hailo_10h", True), ("CPU", "snapdragon_8_elite", True), ("CPU", "rk3588_npu", True), ("CPU", "m4_10c", True),
        ("CUDA", OWN.format(name="Acme") + "chip: npu", True), ("CPU", OWN.format(name="Acme") + "chip: npu", True),
        ("Vulkan", OWN.format(name="Acme NPU"), True), ("CUDA", OWN.format(name="Acme") + "vendor: AMD", True),
        ("HTP", "core_ultra_9_288v", True), ("CPU", "raspberry_pi_5", False), ("Vulkan", "core_ultra_9_288v", False),
        ("CPU", OWN.format(name="Acme"), False), ("HTP", "snapdragon_8_elite", False), ("CPU", "x86_desktop_generic", False),
    ],
)  # fmt: skip
def test_a_backend_names_the_unit_of_a_chip_that_computed(
    backend: str, device: str, refused: bool, inside: Any, tmp_path: Path
) -> None:
    """A CPU's or a GPU's log is none of an NPU, whatever the chip is called; a device whose class is not stated may be either."""
    if "name:" in device:
        (tmp_path / "own.yaml").write_text(device)
        device = "own.yaml"
    table = TABLE.partition("\n")[2].format(backend=backend)
    (tmp_path / "log.md").write_text(table.replace("4820.20", "50.20").replace("104.60", "3.10"))
    answer = inside("calibrate", "log.md", "--device", device, "doubtful=write", "--out", "mine.yaml")
    assert (f"--device: expected {backend}, which the log was measured on" in answer.err) == refused, answer


@pytest.mark.parametrize(
    ("engine", "device", "refused"),
    [("llama.cpp CUDA", "hailo_10h", True), ("CPU", "snapdragon_8_elite", True), ("MLX", "rtx_4090", True), ("MLX", "m4_10c", False)],
)  # fmt: skip
def test_the_engine_of_a_measured_table_names_the_unit_that_computed(
    engine: str, device: str, refused: bool, inside: Any, tmp_path: Path
) -> None:
    head, rows = (
        "device,model,precision,batch,prompt_len,gen_len,metric,value,engine",
        ("ttft_ms,900", "decode_tok_s,30"),
    )
    lines = [f"{device},qwen2.5_0.5b,int4,1,1024,{i},{row},{engine}" for i, row in enumerate(rows)]
    (tmp_path / "measured.csv").write_text("\n".join([head, *lines]))
    answer = inside("calibrate", "measured.csv", "--device", device, "doubtful=write", "--out", "mine.yaml")
    assert (f"measured with {engine}, which {DEVICES[device].name} does not run" in answer.err) == refused, answer
    assert (tmp_path / "mine.yaml").exists() != refused


@pytest.mark.parametrize(
    ("heading", "device"),
    [
        ("# M1Max results", "m1_max_32c"), ("# rtx4090 (24GB)", "rtx_4090"), ("# 4090", "rtx_4090"), ("# Pi5", "raspberry_pi_5"),
        ("# 8 Elite Gen5", "snapdragon_8_elite_gen5"), ("# DGX Spark", "dgx_spark_gb10"), ("# Strix Halo", "ryzen_ai_max_395"),
        ("# MiniMax-M2, Hunyuan-A13B and build b5460", "rtx_4090"), ("# nvidia/Nemotron-Nano-9B", "m4_max_40c"),
        ("CPU: AMD Ryzen 9 7950X\nGPU: NVIDIA RTX 4090", "rtx_4090"), ("# RTX 4090, faster than an RTX 3090", "rtx_4090"),
        ("# Metal and CUDA", "m4_max_40c"),
    ],
)  # fmt: skip
def test_headings_of_the_device_itself_and_of_models_are_no_alarm(
    heading: str, device: str, inside: Any, tmp_path: Path
) -> None:
    """Another spelling is the same device, and names of models and of processors beside it are no devices."""
    (tmp_path / "log.md").write_text(f"{heading}\n\n{SPEEDS.format(decode=2)}")
    answer = inside("calibrate", "log.md", "--device", device, "--out", "mine.yaml")
    assert answer.code == 0, answer
    assert "2 rows of log.md; 0 left out" in answer.out


def test_of_a_log_with_a_heading_for_each_device_its_own_part_is_taken(inside: Any, tmp_path: Path) -> None:
    parts = "".join(f"## {name}\n\n{SPEEDS.format(decode=60)}\n" for name in ("RTX 3090", "RTX 4090"))
    (tmp_path / "log.md").write_text(f"# Results\n\n{parts}")
    answer = inside("calibrate", "log.md", "--device", "rtx_4090", "--out", "mine.yaml")
    assert answer.code == 0, answer
    assert "2 rows, line 1, 2: measured on RTX 3090" in answer.out


def test_steps_faster_than_the_memory_are_of_another_device(inside: Any, tmp_path: Path) -> None:
    """4.5 GB 100 times a second are more than an M1 Max's 400 GB/s, whatever nobody says; one of several is left out."""
    (tmp_path / "log.md").write_text(SPEEDS.format(decode=100))
    answer = inside("calibrate", "log.md", "--device", "m1_max_32c")
    assert answer.code == 2
    assert (
        "Llama-3.1-8B in q4_k_m reads 4.5 GB a token, 450 GB/s by its time, where Apple M1 Max (32-core GPU) has 400"
        in answer.err
    )
    others = "| Qwen3-4B Q4_K_M | 1500 | 90 |\n| Qwen3-8B Q4_K_M | 900 | 50 |\n"
    (tmp_path / "log.md").write_text(SPEEDS.format(decode=100) + others)
    answer = inside("calibrate", "log.md", "--device", "m1_max_32c", "--out", "mine.yaml")
    assert answer.code == 0, answer
    assert "5 rows of log.md; 1 left out" in answer.out
    assert "another device, format or model than it says, or several tokens a step" in " ".join(answer.out.split())
