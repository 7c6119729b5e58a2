"""Directories against the transformers that is installed: parameters, loading, gradients, exact weights."""

import csv
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nas.export.hf_config import built_parameters, config_of
from nas.export.model import Model
from nas.export.stacks import hf
from nas.study.catalogue import load_space
from objectives import counts
from search_spaces.architectures import Architectures, one
from tests.nas.export.vocabularies import SIZES, tokenizer_of

Exported = Callable[..., Model]
NAMES = ("dense", "top1", "top2", "untied", "qwen2", "llama", "wide heads")


def own_counts(architecture: Architectures) -> dict[str, int]:
    """Ours."""
    return {
        "params_total": int(counts.total(architecture)[0]),
        "params_active": int(counts.active(architecture)[0]),
    }


def written(model: Model, folder: Path) -> Path:
    """The model's directory."""
    folder.mkdir(exist_ok=True)
    hf.emit(model, folder)
    return folder


def built(model: Model, folder: Path) -> dict[str, int]:
    """transformers' count of a directory that holds config.json alone."""
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config_of(model)))
    return built_parameters(folder)


def paper_shapes() -> Iterator[dict[str, Any]]:
    """Every (width, experts, KV heads) of the paper space once, depth and FFN ratio in turn."""
    space = load_space("paper")
    seen: dict[tuple[int, ...], int] = {}
    everything = space.architectures(space.genotypes(np.arange(space.size)))
    names = ("width", "n_experts", "top_k", "n_kv_heads")
    shape = np.stack([getattr(everything, name) for name in names], axis=1)
    for row, key in enumerate(map(tuple, shape.tolist())):
        seen.setdefault(key, row)
    for i, row in enumerate(seen.values()):
        chosen = {name: int(getattr(everything, name)[row]) for name in (*names, "expert_size")}
        yield {**chosen, "depth": 2, "vocabulary": 32_000 if i % 3 else 151_936}


@pytest.mark.slow
def test_every_shape_of_the_paper_space_has_our_parameters(exported: Exported, tmp_path: Path) -> None:
    shapes = list(paper_shapes())
    assert len(shapes) == 205
    for i, shape in enumerate(shapes):
        architecture = one({**shape, "tied": i % 2 == 0})
        assert built(exported(architecture), tmp_path) == own_counts(architecture), shape


@pytest.mark.extended
@pytest.mark.parametrize("name", ["fine", "heads"])
def test_a_random_thousand_have_our_parameters(exported: Exported, tmp_path: Path, name: str) -> None:
    space = load_space(name)
    keys = np.random.default_rng(0).integers(0, space.size, 1000)
    architectures = space.architectures(space.genotypes(keys)).with_vocabulary(50_257)
    for i in range(len(architectures)):
        architecture = architectures[i : i + 1]
        assert built(exported(architecture), tmp_path) == own_counts(architecture), keys[i]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fine", "heads"])
def test_ten_have_our_parameters(exported: Exported, tmp_path: Path, name: str) -> None:
    space = load_space(name)
    keys = np.random.default_rng(1).integers(0, space.size, 10)
    architectures = space.architectures(space.genotypes(keys)).with_vocabulary(50_257)
    for i in range(len(architectures)):
        architecture = architectures[i : i + 1]
        assert built(exported(architecture), tmp_path) == own_counts(architecture), keys[i]


#: Layers within a window and its tokens, which the table of published models does not list; of their config.json.
WINDOWS = {"Gemma-2-2B": {"n_local": 13, "window": 4096}, "Gemma-3-1B": {"n_local": 22, "window": 512}}


def published(folder: Path) -> Iterator[tuple[str, Architectures, dict[str, int]]]:
    """Every published model with its exact counts."""
    with (folder / "latency" / "llm_configs.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            columns = {
                "depth": row["n_layers"],
                "width": row["d_model"],
                "n_heads": row["n_heads"],
                "n_kv_heads": row["n_kv_heads"],
                "head_dim": row["head_dim"],
                "expert_size": row["d_ff"],
                "n_experts": row["n_experts"],
                "top_k": row["top_k"],
                "shared_expert_size": row["shared_expert_dff"],
                "shared_gate": row["shared_gate"],
                "vocabulary": row["vocab"],
                "tied": row["tied_embeddings"],
                "qkv_bias": row["qkv_bias"],
                "qk_norm": ("no", "head", "full")[int(row["qk_norm"])],
                "norms_per_layer": row["norms_per_layer"],
            }
            exact = {"params_total": int(row["params_total_exact"]), "params_active": int(row["params_active_exact"])}
            yield row["model"], one(columns | WINDOWS.get(row["model"], {})), exact


@pytest.mark.slow
def test_published_models_have_their_parameters(exported: Exported, tmp_path: Path, external_data: Path) -> None:
    for name, architecture, exact in published(external_data):
        assert built(exported(architecture), tmp_path) == exact == own_counts(architecture), name


def test_qwen2_5_has_its_published_parameters(exported: Exported, tmp_path: Path) -> None:
    from nas.study.baselines import baseline

    architecture = baseline("qwen2.5_0.5b").architecture
    assert built(exported(architecture), tmp_path)["params_total"] == 494_032_768


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_weights_load_exactly_and_train(
    exported: Exported, small: dict[str, dict[str, Any]], tmp_path: Path, name: str
) -> None:
    import torch
    from safetensors.torch import load_file
    from transformers import AutoModelForCausalLM

    folder = written(exported(small[name], recipe="scaled", weights=True), tmp_path / "hf")
    model, said = AutoModelForCausalLM.from_pretrained(folder, torch_dtype="auto", output_loading_info=True)
    assert not said["missing_keys"]
    assert not said["unexpected_keys"]
    assert model.dtype == torch.bfloat16
    model.save_pretrained(tmp_path / "again")
    first, second = load_file(folder / "model.safetensors"), load_file(tmp_path / "again" / "model.safetensors")
    assert first.keys() == second.keys()
    assert all(torch.equal(first[key], second[key]) for key in first)
    model = model.float().train()
    ids = torch.arange(96).reshape(2, 48) % 250
    model(input_ids=ids, labels=ids).loss.backward()
    assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in model.parameters())
    assert all(p.grad.abs().max() > 1e-6 for key, p in model.named_parameters() if "mlp.gate.weight" in key)


@pytest.mark.slow
def test_the_tokenizer_keeps_every_text(exported: Exported, small: dict[str, dict[str, Any]], tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(written(exported(small["dense"]), tmp_path / "hf"))
    text = "Zażółć\r\n\t gęślą <|jaźń|> \x00 \N{GRINNING FACE} 0x1F"
    ids = tokenizer(text)["input_ids"]
    assert ids == list(text.encode())
    assert tokenizer.decode(ids) == text
    assert tokenizer("a<|endoftext|>")["input_ids"] == [97, 256]
    assert (tokenizer.eos_token_id, tokenizer.pad_token_id, len(tokenizer)) == (256, 256, 257)


@pytest.mark.slow
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("size", SIZES)
def test_model_and_tokenizer_have_the_vocabulary_of_the_design(
    exported: Exported, small: dict[str, dict[str, Any]], tmp_path: Path, size: int, tied: bool
) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    columns = {**small["dense"], "vocabulary": size, "tied": tied}
    folder = written(exported(columns, weights=True, tokenizer=tokenizer_of(size)), tmp_path / "hf")
    model, tokenizer = AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    assert sum(each.numel() for each in model.parameters()) == own_counts(one(columns))["params_total"]
    assert model.get_input_embeddings().weight.shape[0] == model.get_output_embeddings().weight.shape[0] == size
    assert (len(tokenizer), tokenizer.eos_token_id, tokenizer.pad_token_id) == (size, 256, 256)
    ids = tokenizer("theta  and\n 17 Zażółć")["input_ids"]
    assert (tokenizer.decode(ids), max(ids) < size) == ("theta  and\n 17 Zażółć", True)
    assert model(**tokenizer("the tea", return_tensors="pt")).logits.shape[-1] == size


@pytest.mark.slow
def test_both_spellings_give_the_same_model(
    exported: Exported, small: dict[str, dict[str, Any]], tmp_path: Path
) -> None:
    from transformers import AutoConfig

    config = AutoConfig.from_pretrained(written(exported(small["top2"]), tmp_path / "hf"))
    theta = getattr(config, "rope_theta", None) or config.rope_parameters["rope_theta"]
    assert (config.num_experts, config.num_experts_per_tok, theta) == (4, 2, 1_000_000)
    assert config.norm_topk_prob
    assert not config.output_router_logits
    assert str(config.dtype).endswith("bfloat16")
