"""`conformance/`: its numbers are what this version gives, and what others count: formulas by hand, torch's counter of FLOPs, gguf's blocks."""

import json
from math import prod
from pathlib import Path
from typing import Any

import pytest

import nas
from benchmarks.conformance import FOLDER, FORMULAS, PRODUCTS, SCHEMA, STUDY, Document, again, of_models, schema
from nas.export.gguf_formats import FORMATS
from nas.export.model import Model, Workload
from nas.export.recipe import load_recipe
from nas.export.tokenizer import byte_level
from nas.study.config_file import architecture_of
from plas_stacks import gguf

MODELS = {path.name: json.loads(path.read_text(encoding="utf-8")) for path in of_models()}
#: llama-like families, whose numbers follow from a few keys.
BY_HAND = ("llama", "mistral", "mixtral", "qwen2_moe", "qwen3", "qwen3_moe", "olmoe", "smollm3")


def number(content: dict[str, Any], quantity: str, **at: Any) -> int:
    """A value of a file."""
    found = [each["value"] for each in content["values"] if each["quantity"] == quantity and each.get("at", {}) == at]
    assert len(found) == 1, (quantity, at)
    return int(found[0])


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["qwen3-0.6b.json", "deepseek-v2-lite.json", "granite-4.0-h-tiny.json", "mistral-7b-v0.1.json"]
)
def test_some_files_are_what_this_version_gives(name: str) -> None:
    assert again(FOLDER / name) == (FOLDER / name).read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_the_files_are_what_this_version_gives(name: str) -> None:
    assert again(FOLDER / name) == (FOLDER / name).read_text(encoding="utf-8")


def test_every_file_follows_the_schema_and_every_quantity_its_formula() -> None:
    assert (FOLDER / SCHEMA).read_text(encoding="utf-8") == schema()
    formulas = json.loads((FOLDER / FORMULAS).read_text(encoding="utf-8"))["quantities"]
    said = {(each["quantity"], each["unit"]) for content in MODELS.values() for each in content["values"]}
    assert said == {(name, formula["unit"]) for name, formula in formulas.items()}
    for content in MODELS.values():
        assert Document.model_validate(content).version == 1
        for each in content["values"]:
            assert "operators" not in each or sum(each["operators"].values()) == each["value"]


def test_all_kinds_of_models_are_there() -> None:
    assert len(MODELS) >= 25
    assert {trait for content in MODELS.values() for trait in content["traits"]} >= {
        *("dense", "experts", "shared experts", "multi-head attention", "grouped-query attention", "latent attention"),
        *("sliding window", "linear attention", "short convolutions", "tied head", "untied head", "layers that share a KV cache"),
    }  # fmt: skip


def by_hand(config: dict[str, Any], tokens: int) -> dict[str, int]:
    """Numbers of a llama-like model from its config.json alone, in plain arithmetic."""
    depth, width, heads = (config[key] for key in ("num_hidden_layers", "hidden_size", "num_attention_heads"))
    size, kv = config.get("head_dim", width // heads), config.get("num_key_value_heads", heads)
    experts, used = config.get("num_experts", config.get("num_local_experts", 1)), config.get("num_experts_per_tok", 1)
    ffn = (
        config.get("moe_intermediate_size", config["intermediate_size"]) if experts > 1 else config["intermediate_size"]
    )
    shared = config.get("shared_expert_intermediate_size", 0)
    window = config.get("sliding_window") if config.get("use_sliding_window", True) else None
    window = window or 10**9
    layer = 2 * width * heads * size + 2 * width * kv * size + 3 * width * (used * ffn + shared)
    layer += width * experts * (experts > 1)
    pairs = sum(min(i, window) for i in range(1, tokens + 1))
    step = min(tokens, window)
    head = 2 * config["vocab_size"] * width
    return {
        "kv_cache_bytes": depth * 2 * kv * size * step * 2,
        "prefill_product_flops": depth * (2 * tokens * layer + 4 * heads * size * pairs) + head,
        "decode_product_flops": depth * (2 * layer + 4 * heads * size * step) + head,
    }


@pytest.mark.parametrize("tokens", [1024, 8192])
@pytest.mark.parametrize(
    "name", [name for name, content in MODELS.items() if content["config"]["model_type"] in BY_HAND]
)
def test_llama_like_models_by_hand(name: str, tokens: int) -> None:
    content = MODELS[name]
    for quantity, expected in by_hand(content["config"], tokens).items():
        at = {"tokens": tokens} | ({"bits": 16} if quantity == "kv_cache_bytes" else {})
        assert number(content, quantity, **at) == expected, quantity


def test_latent_attention_keeps_what_its_authors_say() -> None:
    """576 elements a layer and token (DeepSeek-AI 2024, table 1: (d_c + d_R) l)."""
    assert number(MODELS["deepseek-v2-lite.json"], "kv_bytes_of_next_token", tokens=8192, bits=16) == 576 * 27 * 2


@pytest.mark.parametrize(
    ("name", "kept"), [("gemma-3-1b-pt.json", 4), ("gemma-2-2b.json", 13), ("mistral-7b-v0.1.json", 0)]
)
def test_layers_whose_window_is_full_keep_no_more(name: str, kept: int) -> None:
    """Of Gemma 3 1B 4 layers of 26 grow, of Gemma 2 2B 13, of Mistral 7B none."""
    config = MODELS[name]["config"]
    size = config.get("head_dim", config["hidden_size"] // config["num_attention_heads"])
    grown = number(MODELS[name], "kv_bytes_of_next_token", tokens=8192, bits=16)
    assert grown == kept * 2 * config["num_key_value_heads"] * size * 2


SMALL = {"hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 50, "head_dim": 16}
SMALL |= {"intermediate_size": 64, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "num_hidden_layers": 3}
EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32}
TOKENS, WINDOW = 21, 8
MASKED = (
    4 * 2 * 64 * TOKENS * (TOKENS - WINDOW)
)  # pairs outside of the window of two layers, which a mask alone removes


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "more", "besides"),
    [
        ("llama", {}, 0),
        ("qwen3", {}, 0),
        ("qwen3_moe", EXPERTS, 0),
        ("mixtral", {"num_local_experts": 4, "num_experts_per_tok": 2}, 0),
        ("qwen2_moe", EXPERTS | {"shared_expert_intermediate_size": 96}, 3 * 2 * TOKENS * 64),  # the shared expert's gate
        ("gemma3_text", {"sliding_window": WINDOW, "sliding_window_pattern": 3}, MASKED),
        ("gpt_oss", {"sliding_window": WINDOW, "num_local_experts": 4, "num_experts_per_tok": 2}, MASKED),
    ],
)  # fmt: skip
def test_product_flops_are_what_torch_counts_in_transformers(kind: str, more: dict[str, Any], besides: int) -> None:
    """Without the causal mask, which removes nothing there; `besides` is what this project's convention leaves out."""
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    from torch.utils.flop_counter import FlopCounterMode

    config = SMALL | more
    made = transformers.AutoConfig.for_model(kind, **config)
    model = transformers.AutoModelForCausalLM.from_config(made, attn_implementation="eager").eval()
    if "num_experts_per_tok" in config:
        model.set_experts_implementation("eager")
    with FlopCounterMode(display=False) as counted, torch.no_grad():
        model(torch.arange(TOKENS)[None] + 3, use_cache=False, logits_to_keep=1)
    study = nas.load_study(**STUDY, causal=False, input_tokens=TOKENS, output_tokens=1)
    rows = study.explain(architecture_of(config | {"model_type": kind})).operators["prefill"]
    ours = sum(round(row.gflop * 1e9) for row in rows if PRODUCTS.search(row.operator))
    assert counted.get_total_flops() == ours + besides


@pytest.mark.parametrize("name", ["qwen3-0.6b.json", "granite-4.0-h-tiny.json"])
def test_bytes_of_files_by_the_blocks_of_the_gguf_package(name: str) -> None:
    """Rows times bytes of a row, block sizes and bytes of a block from llama.cpp's own package."""
    known = pytest.importorskip("gguf")
    content = MODELS[name]
    for kind in FORMATS:
        model = Model(
            "m",
            "m",
            architecture_of(content["config"]),
            byte_level(),
            load_recipe("paper"),
            Workload(1, 1, 1),
            gguf=kind,
        )
        total = 0
        for entry in gguf.entries(model):
            block, size = known.GGML_QUANT_SIZES[known.GGMLQuantizationType[entry.kind.name.upper()]]
            assert entry.shape[-1] % block == 0
            total += prod(entry.shape) // block * size
        assert number(content, "file_bytes", format=f"gguf {kind}") == total, kind


def test_the_page_shows_what_the_file_holds() -> None:
    page = (FOLDER.parent / "docs" / "conformance.md").read_text(encoding="utf-8")
    shown = json.loads(page.partition("```json\n")[2].partition("```")[0])
    content = MODELS["qwen3-0.6b.json"]
    assert (shown["kind"], shown["model"], shown["traits"]) == (content["kind"], content["model"], content["traits"])
    assert all(each in content["values"] for each in shown["values"])
    assert f"for {len(MODELS)} published models" in page


def test_the_command_says_which_files_are_stale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    from benchmarks import conformance

    (tmp_path / "qwen3-0.6b.json").write_text(json.dumps(MODELS["qwen3-0.6b.json"] | {"values": []}))
    (tmp_path / SCHEMA).write_text(schema())
    monkeypatch.setattr(conformance, "FOLDER", tmp_path)
    monkeypatch.setattr("sys.argv", ["conformance", "--check"])
    assert conformance.main() == 1
    assert capsys.readouterr().out == "qwen3-0.6b.json: other numbers than this version gives\n"
    monkeypatch.setattr("sys.argv", ["conformance"])
    assert conformance.main() == 0
    assert (tmp_path / "qwen3-0.6b.json").read_text() == (FOLDER / "qwen3-0.6b.json").read_text()
