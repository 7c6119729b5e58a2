"""Memory and parameter counts against the scalar reference and published models."""

import csv
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from objectives import counts, memory
from objectives.assessment import Assessment
from objectives.device import Calibration
from objectives.dimensions import Dimensions
from objectives.plugins import documents
from search_spaces.architectures import Architectures, one
from search_spaces.columns import QK_NORMS

Draw = Callable[..., Architectures]
Convert = Callable[[Architectures], list[Any]]
Load = Callable[[str], Architectures]

# Parameters that the publishers' checkpoints hold.
#: What the classes of transformers 5.23 make of the configurations, without layers that draft tokens.
OF_TRANSFORMERS = {
    "qwen3.5_27b": 26_895_998_464,
    "qwen3.5_35b_a3b": 34_660_610_688,
    "gemma_4_31b": 30_697_345_280,
    "gemma_4_26b_a4b": 25_233_141_760,
    "glm_4.7_flash": 29_943_390_976,
    "deepseek_v2_lite": 15_706_484_224,
    "minimax_m2": 228_689_748_992,
    "ministral_3_14b": 13_506_073_600,
    "gpt_oss_20b": 20_914_757_184,
    "gpt_oss_120b": 116_829_156_672,
    "lfm2_1.2b": 1_170_340_608,
    "smollm3_3b": 3_075_098_624,
    "mixtral_8x7b": 46_702_792_704,
}
PUBLISHED = {
    "qwen2.5_0.5b": 494_032_768,
    "qwen2.5_1.5b": 1_543_714_304,
    "qwen3_0.6b": 596_049_920,
    "qwen3_30b_a3b": 30_532_122_624,
    "llama_2_7b": 6_738_415_616,
    "llama_3.1_8b": 8_030_261_248,
    "mistral_7b_v0.3": 7_248_023_552,
    "gemma_2_2b": 2_614_341_888,
    "gemma_3_1b": 999_885_952,
    "olmoe_1b_7b": 6_919_161_856,
    "qwen1.5_moe_a2.7b": 14_315_784_192,
    "smollm2_135m": 134_515_008,
}
CSV_COLUMNS = {
    "n_layers": "depth",
    "d_model": "width",
    "head_dim": "head_dim",
    "n_heads": "n_heads",
    "n_kv_heads": "n_kv_heads",
    "n_experts": "n_experts",
    "top_k": "top_k",
    "d_ff": "expert_size",
    "shared_expert_dff": "shared_expert_size",
    "shared_gate": "shared_gate",
    "vocab": "vocabulary",
    "tied_embeddings": "tied",
    "qkv_bias": "qkv_bias",
    "norms_per_layer": "norms_per_layer",
}


@pytest.mark.slow
@given(data=st.data(), seed=st.integers(0, 2**32 - 1), plain=st.booleans())
def test_bytes_and_counts_in_any_setting(
    data: st.DataObject,
    seed: int,
    plain: bool,
    cases: st.SearchStrategy[Any],
    random_architectures: Draw,
    as_reference: Convert,
) -> None:
    case = data.draw(cases)
    architectures = random_architectures(200, seed, plain=plain)
    found, setting, oracle = Assessment(architectures, case.scenario), case.setting, case.oracle
    rows = as_reference(architectures)
    assert found["params_total"].tolist() == [oracle.params_total(row) for row in rows]
    assert found["params_active"].tolist() == [oracle.params_active(row) for row in rows]
    np.testing.assert_allclose(found["memory_gb"], [oracle.memory_gb(row, setting) for row in rows], rtol=1e-12)
    np.testing.assert_allclose(found["resident_gb"], [oracle.resident_gb(row, setting) for row in rows], rtol=1e-12)


@pytest.mark.parametrize("attention", ["fused", "unfused"])
def test_activations_are_those_of_one_chunk_of_the_prompt(
    attention: Any, case: Any, random_architectures: Draw
) -> None:
    """By parts of a design as well; a chunk as long as the prompts is all of them."""
    a, plain = (
        random_architectures(50, 3, plain=False),
        case.but(batch=2, input_tokens=3000, attention=attention).scenario,
    )
    whole, chunk, long = (
        Assessment(a, replace(plain, prefill_chunk=tokens))["resident_gb"] for tokens in (None, 512, 6000)
    )
    x, groups = Dimensions(a), counts.count(a)
    parts = memory.resident_parts_gb(x, groups, plain)
    held = memory.resident_parts_gb(x, groups, replace(plain, prefill_chunk=512))
    np.testing.assert_allclose(held["activations"], parts["activations"] * 512 / 6000, rtol=1e-12)
    np.testing.assert_allclose(whole - chunk, parts["activations"] - held["activations"], rtol=1e-6)
    np.testing.assert_array_equal(whole, long)


def test_resident_is_the_sum_of_its_named_parts(case: Any, random_architectures: Draw) -> None:
    architectures, scenario = random_architectures(50, 3), case.but(batch=2).scenario
    x, groups = Dimensions(architectures), counts.count(architectures)
    parts = memory.resident_parts_gb(x, groups, scenario)
    assert set(parts) == {
        *("linear weights", "router, norms, biases", "embeddings and head", "kv cache", "activations"),
    }
    np.testing.assert_allclose(sum(parts.values()), memory.resident_gb(x, groups, scenario), rtol=1e-15)
    np.testing.assert_array_equal(parts["linear weights"], memory.weights_gb(x, groups, scenario))


def test_an_engine_holds_a_part_of_its_own_and_copies_of_the_model(case: Any, random_architectures: Draw) -> None:
    """Of all that is resident, a draft model once; the paper's weights are none of it, and parts sum to it."""
    architectures, plain = random_architectures(50, 3), case.but(batch=2).scenario
    drafting = replace(plain.serving, speculation="draft:4", draft=architectures[:1])
    engine = Calibration(engine_gb=0.25, memory_factor=3.0)
    for scenario in (plain, replace(plain, serving=drafting)):
        model, held = (Assessment(architectures, replace(scenario, calibration=each)) for each in (None, engine))
        np.testing.assert_allclose(held["resident_gb"], 0.25 + 3.0 * model["resident_gb"], rtol=1e-12)
        np.testing.assert_array_equal(held["memory_gb"], model["memory_gb"])
        parts = memory.resident_parts_gb(held.dimensions, held.parameters, held.scenario)
        np.testing.assert_allclose(parts["engine"], 0.25 + 2.0 * model["resident_gb"], rtol=1e-12)


def test_weights_are_the_papers_formula_in_its_space(case: Any, paper_architectures: Architectures) -> None:
    """l · ξ_W^all · d² · b_w with ξ_W^all = 2 + 2/gqa + 3r/ρ [eq:memory_footprint]."""
    x = paper_architectures
    xi = 2 + 2 / x.gqa + 3 * x.ffn_ratio / x.activation_rate
    for precision, weight_bytes in (("fp32", 4), ("fp16", 2), ("int8", 1), ("int4", 0.5), ("nvfp4", 0.5625)):
        found = Assessment(x, case.but(precision=precision).scenario)["memory_gb"]
        np.testing.assert_allclose(found, x.depth * xi * x.width.astype(float) ** 2 * weight_bytes / 1e9, rtol=1e-13)


def test_the_weights_by_hand(case: Any) -> None:
    """l 2, d 128, d_q 256 (4 heads of 64), d_m 128 (2 KV heads), E 4 of m 96, shared 32, full QK-norm, bias, gate."""
    row = {
        "depth": 2, "width": 128, "n_heads": 4, "n_kv_heads": 2, "n_experts": 4, "top_k": 2, "expert_size": 96,
        "shared_expert_size": 32, "shared_gate": True, "qk_norm": "full", "qkv_bias": True, "norms_per_layer": 3,
        "tied": False, "vocabulary": 1000,
    }  # fmt: skip
    attention, expert, shared = 2 * 128 * 256 + 2 * 128 * 128, 3 * 128 * 96, 3 * 128 * 32
    small = (256 + 128) + (256 + 2 * 128) + 128 * 4 + 128 + 3 * 128
    tables = 2 * 1000 * 128
    total = 2 * (attention + 4 * expert + shared + small) + 128 + tables
    active = 2 * (attention + 2 * expert + shared + small) + 128 + tables
    found = Assessment(one(row), case.scenario)
    assert found["params_total"].tolist() == [total]
    assert found["params_active"].tolist() == [active]
    assert found["memory_gb"][0] == pytest.approx(2 * (attention + 4 * expert + shared) * 2 / 1e9, rel=1e-15)
    cache = 2 * 2 * (1024 + 16) * 128 * 2
    activations = (1024 * (4 * 128 + 2 * 128 + 2 * 2 * 96 + 2 * 32) + 4 * 1024**2) * 2
    resident = (total * 2 + cache + activations) / 1e9
    assert found["resident_gb"][0] == pytest.approx(resident, rel=1e-14)


@pytest.mark.parametrize("name", PUBLISHED | OF_TRANSFORMERS)
def test_published_count(name: str, model: Load) -> None:
    assert counts.total(model(name)).tolist() == [(PUBLISHED | OF_TRANSFORMERS)[name]]


@pytest.mark.parametrize("name", sorted(documents("search_spaces.models")))
def test_every_shipped_model_counts_as_the_oracle_does(
    name: str, model: Load, case: Any, as_reference: Convert
) -> None:
    architecture = model(name)
    (row,) = as_reference(architecture)
    assert counts.total(architecture).tolist() == [case.oracle.params_total(row)]
    assert counts.active(architecture).tolist() == [case.oracle.params_active(row)]
    dense = architecture.n_experts[0] == 1
    assert (counts.active(architecture) == counts.total(architecture)).tolist() == [dense]


@pytest.mark.parametrize("name", sorted(documents("search_spaces.models")))
def test_every_shipped_model_names_itself_and_its_source(name: str, shipped: Callable[[str, str], Any]) -> None:
    content = shipped("search_spaces.models", name)
    assert content["name"].lower().replace("-", "_") == name
    assert len(content["source"]) > 20
    assert content["vocabulary"] > 0


def test_public_table_of_exact_counts(external_data: Path, model: Load) -> None:
    with (external_data / "latency" / "llm_configs.csv").open(encoding="utf-8") as file:
        table = list(csv.DictReader(file))
    names = {row["model"].lower().replace("-", "_") for row in table}
    assert names <= set(documents("search_spaces.models"))
    for row in table:
        found = model(row["model"].lower().replace("-", "_"))
        for theirs, ours in CSV_COLUMNS.items():
            assert getattr(found, ours)[0] == int(row[theirs]), (row["model"], ours)
        assert QK_NORMS[found.qk_norm[0]] == {"0": "no", "1": "head", "2": "full"}[row["qk_norm"]], row["model"]
        layers_alone = found.with_vocabulary(0)
        assert counts.total(found).tolist() == [int(row["params_total_exact"])], row["model"]
        assert counts.active(found).tolist() == [int(row["params_active_exact"])], row["model"]
        assert counts.total(layers_alone).tolist() == [int(row["params_nonembedding_exact"])], row["model"]
