"""Published models: exact counts under their own vocabulary, and what the answer says it does not know of them."""

import csv
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nas.answer.design_words import blind_spots, equal_heads, head, layer_kinds, unseen_queries, windowed
from nas.errors import UsageError
from nas.export.families import family_of
from nas.files.yaml_source import dump
from nas.search.assembly import Study, assemble
from nas.study.baselines import baseline
from objectives.plugins import documents
from search_spaces.columns import SHAPE

Inside = Callable[..., Any]
MODELS = sorted(documents("search_spaces.models"))
WIDE_QUERIES = {
    *(
        "gemma_2_2b",
        "gemma_3_1b",
        "qwen3_0.6b",
        "qwen3_4b",
        "qwen3_30b_a3b",
        "qwen3_32b",
        "ministral_3_14b",
        "minimax_m2",
    ),
    *("gemma_4_26b_a4b", "gemma_4_31b", "glm_4.7_flash", "deepseek_v2_lite", "gpt_oss_20b", "gpt_oss_120b"),
    *("qwen3.5_27b", "qwen3.5_35b_a3b", "qwen3.5_122b_a10b"),
}
COUNTS = {"smollm2_135m": 134_515_008, "gemma_3_1b": 999_885_952, "qwen3_30b_a3b": 30_532_122_624}


@pytest.fixture(scope="module")
def study() -> Study:
    """The default study."""
    return assemble({}, {})


# Counts and vocabulary through the command


def content(inside: Inside, *arguments: str) -> dict[str, Any]:
    """`explain --json`."""
    answer = inside("explain", *arguments, "--json", "--budget", "memory_gb=none", "--budget", "resident_gb=none")
    assert answer.code == 0, answer
    found: dict[str, Any] = json.loads(answer.out)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["paper", "device"])
@pytest.mark.parametrize("name", COUNTS)
def test_a_model_is_explained_with_its_own_vocabulary_and_tying(name: str, preset: str, inside: Inside) -> None:
    own = content(inside, "--model", name, "--preset", preset)
    assert own["metrics"]["params_total"] == COUNTS[name]
    assert sum(row["operator"] == "lm_head" for row in own["operators"]["decode"]) == 1


def test_every_model_has_its_published_counts(inside: Inside, external_data: Path) -> None:
    with (external_data / "latency" / "llm_configs.csv").open(encoding="utf-8") as file:
        table = {row["model"].lower().replace("-", "_"): row for row in csv.DictReader(file)}
    assert set(table) <= set(MODELS)
    for name, row in table.items():
        own = content(inside, "--model", name)["metrics"]
        alone = content(inside, "--model", name, "--vocabulary", "0")["metrics"]
        assert own["params_total"] == int(row["params_total_exact"]), name
        assert own["params_active"] == int(row["params_active_exact"]), name
        assert alone["params_total"] == int(row["params_nonembedding_exact"]), name


@pytest.mark.parametrize("flags", [["--vocabulary", "1000"], ["--set", "vocabulary=1000"]])
def test_a_given_vocabulary_is_taken_and_said(flags: list[str], inside: Inside) -> None:
    answer = content(inside, "--model", "olmoe_1b_7b", *flags)
    assert answer["metrics"]["params_total"] == 6_713_116_672 + 1000 * 2048
    assert answer["remarks"][0] == "Vocabulary 1,000 (tied), where its own is 50,304 (untied)"


def test_tying_alone_can_be_given(inside: Inside) -> None:
    tied = content(inside, "--model", "olmoe_1b_7b", "--set", "tied=true")
    assert tied["metrics"]["params_total"] == 6_713_116_672 + 50_304 * 2048


def test_the_closed_form_shows_the_layers_and_says_so(inside: Inside) -> None:
    answer = content(inside, "--model", "qwen2.5_0.5b", "--set", "latency=closed_form")
    assert answer["metrics"]["params_total"] == 357_898_112
    assert answer["remarks"] == ["Layers alone, without its own vocabulary of 151,936 (tied)"]


def test_the_screen_names_the_vocabulary_it_counts(inside: Inside) -> None:
    said = inside("explain", "--model", "gemma_3_1b", "--preset", "device").out
    assert "1 G parameters, 1 G active" in said
    assert "batch 1, vocabulary 262,144\n" in said
    assert "\n  Vocabulary 262,144 (tied): its own\n" in said
    assert "151,936" not in said


def test_an_architecture_with_a_vocabulary_has_it_in_the_head_of_the_answer(inside: Inside) -> None:
    text = "depth=4,width=768,n_kv_heads=1,expert_size=768,vocabulary=5000,tied=no"
    said = inside("explain", "--architecture", text).out
    assert "batch 1, vocabulary 5,000\n" in said
    assert "\n  Vocabulary 5,000 (untied): its own\n" in said


# Sliding windows


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("gemma_2_2b", "Sliding window: 13 of its 26 layers attend to the last 4,096 tokens"),
        ("gemma_3_1b", "Sliding window: 22 of its 26 layers attend to the last 512 tokens"),
    ],
)
def test_a_sliding_window_is_priced_and_said_to_be_unseen_by_the_law(name: str, said: str, inside: Inside) -> None:
    (remark,) = [text for text in content(inside, "--model", name)["remarks"] if text.startswith("Sliding")]
    assert remark == f"{said}: priced so, but law hw_codesign does not see it, the loss change is not modelled"
    assert said in inside("explain", "--model", name).out


def test_gemma_3_1b_at_32000_tokens_keeps_a_sixth_of_the_cache(inside: Inside) -> None:
    """Four layers keep every token, twenty-two 512: .145 GB, where full attention would keep .866."""
    flags = ("--preset", "device", "--precision", "int8", "--input-tokens", "32000", "--output-tokens", "512")
    found = content(inside, "--model", "gemma_3_1b", *flags)
    assert found["resident_gb"]["kv cache"] == pytest.approx(2 * 256 * (4 * 32_512 + 22 * 512) * 2 / 1e9, rel=1e-12)
    full = baseline("gemma_3_1b").architecture.with_full_attention()
    shape = {name: getattr(full, name) for name in SHAPE} | full.further_columns()
    text = ",".join(f"{name}={column[0]}" for name, column in shape.items())
    whole = content(inside, "--architecture", text, *flags)
    assert whole["resident_gb"]["kv cache"] == pytest.approx(0.866, abs=0.001)
    assert whole["metrics"]["total_ms"] / found["metrics"]["total_ms"] > 1.3


def test_the_other_kinds_are_named() -> None:
    row = {"depth": 8, "width": 768, "n_kv_heads": 2, "expert_size": 768, "n_experts": 8, "top_k": 2}
    row |= {"n_conv": 3, "conv_kernel": 3, "n_kv_shared": 1, "n_dense": 1, "dense_size": 2048, "n_linear": 1}
    sizes = {"linear_heads": 8, "linear_key_heads": 4, "linear_key_dim": 64, "linear_value_dim": 64, "linear_kernel": 4}
    known = baseline({**row, **sizes, "linear_kind": "mamba2"})
    assert layer_kinds(known.architecture) == (
        "Layers: 1 of linear attention (mamba2), 3 of short convolution, 1 that share a KV cache, 1 with a dense FFN, of 8"
    )


def test_no_other_model_has_one(inside: Inside) -> None:
    windows = ["gemma_2_2b", "gemma_3_1b", "gemma_4_26b_a4b", "gemma_4_31b", "gpt_oss_120b", "gpt_oss_20b"]
    kinds = ["deepseek_v2_lite", "glm_4.7_flash", "granite_4.0_h_tiny", "lfm2_1.2b"]
    kinds += [name for name in MODELS if name.startswith("qwen3.5")]
    assert [name for name in MODELS if layer_kinds(baseline(name).architecture)] == sorted(windows + kinds)
    listed = json.loads(inside("list", "models", "--json").out)
    assert [row["name"] for row in listed if "sliding window" in row["what"] and row["name"] in MODELS] == windows
    assert len(listed) > 200


def test_latent_attention_and_other_heads_are_named() -> None:
    assert layer_kinds(baseline("glm_4.7_flash").architecture) == (
        "Layers: 47 of latent attention, 1 with a dense FFN, of 47"
    )
    assert layer_kinds(baseline("gemma_4_31b").architecture).endswith(
        "Layers: 10 of full attention with heads of their own, of 60"
    )


def test_a_baseline_is_written_and_read_with_its_window() -> None:
    for known in (baseline("gemma_3_1b"), baseline("smollm2_135m")):
        again = baseline(known.mapping()).architecture
        assert windowed(again) == windowed(known.architecture)


@pytest.mark.parametrize(
    ("local", "said"),
    [
        ({"n_local": 2}, "window: expected a positive integer beside n_local 2, got 0; give the column"),
        ({"n_local": 2, "window": "x"}, "window: expected a whole number of at least 0, got x; correct it"),
        ({"window": 5}, "n_local: expected at least 1 beside window, got 0; drop window or give n_local"),
        ({"n_local": 5, "window": 5}, "n_local: expected at most depth 4 together, got 5; lower one"),
    ],
)
def test_half_a_window_is_refused(local: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match="expected") as caught:
        baseline({"depth": 4, "width": 768, "n_kv_heads": 1, "expert_size": 768, **local})
    assert said in str(caught.value)


def test_measure_says_that_it_builds_full_attention(inside: Inside, tmp_path: Path) -> None:
    stand_in = tmp_path / "python"
    stand_in.write_text(
        f"#!{sys.executable} -S\nimport json, sys\njson.load(sys.stdin)\n"
        'print(json.dumps({"prefill_ms": [1.0], "decode_ms": [1.0], "engine": "stand-in"}))\n'
    )
    stand_in.chmod(0o755)
    flags = ("--interpreter", str(stand_in), "--device", "board", "--rounds", "1", "--quiet", "--out")
    said = inside("measure", "--model", "gemma_3_1b", "--model", "qwen3_0.6b", *flags, "one").out
    assert said.count("built and measured with full attention in every layer") == 1
    assert "Gemma-3-1B. Sliding window: 22 of its 26 layers attend to the last 512 tokens" in said
    assert "Sliding" not in inside("measure", "--model", "qwen3_0.6b", *flags, "two").out


# Queries that are not as wide as the layers


@pytest.mark.parametrize("name", MODELS)
def test_wide_queries_that_the_law_does_not_see_are_said(name: str, study: Study) -> None:
    said = unseen_queries(baseline(name).architecture, study.problem.scenario.law)
    assert bool(said) == (name in WIDE_QUERIES)


def test_the_remark_names_both_widths_and_the_law(study: Study) -> None:
    said = unseen_queries(baseline("qwen3_0.6b").architecture, study.problem.scenario.law)
    assert said == (
        "Queries of 2,048 features (16 heads of 128) beside a width of 1,024: "
        "law hw_codesign does not see them, its loss is that of 1,024"
    )


def test_what_the_law_is_said_not_to_see_does_not_change_the_loss(study: Study) -> None:
    law, shape = study.problem.scenario.law, baseline("qwen3_0.6b").architecture
    narrow = replace(shape, n_heads=shape.width // shape.head_dim)
    assert law.loss(narrow) == law.loss(shape)
    assert not unseen_queries(narrow, law)


def test_a_law_of_parameters_sees_them(study: Study) -> None:
    law, shape = study.problem.scenario.law, baseline("qwen3_0.6b").architecture
    form = {"terms": {"size": {"scale": "a", "powers": {"parameters": "-alpha"}}}}
    counting = type(law).model_validate({"form": form, "coefficients": {"a": 400.0, "alpha": 0.3}})
    assert counting.loss(shape) != counting.loss(replace(shape, n_heads=shape.width // shape.head_dim))
    assert not unseen_queries(shape, counting)


# In the answer of a run


def test_the_comparison_with_a_baseline_says_all_of_it(inside: Inside, tmp_path: Path, tiny: dict[str, Any]) -> None:
    names = ["gemma_3_1b", "smollm2_135m"]
    (tmp_path / "study.yaml").write_text(dump({"space": tiny, "name": "tiny", "baselines": names, "algo": "random"}))
    said = inside("run", "--config", "study.yaml", "--evaluations", "40", "--out", "run", "--verbose").out
    gemma, smollm = (said.index(f"At most as slow as {name}") for name in ("Gemma-3-1B", "SmolLM2-135M"))
    assert "same vocabulary and tying; its own is 262,144 (tied)." in said[gemma:smollm]
    assert "Sliding window: 22 of its 26 layers" in said[gemma:smollm]
    assert "Queries of 1,024 features" in said[gemma:smollm]
    assert "same vocabulary and tying; its own is 49,152 (tied)." in said[smollm:]
    assert "Sliding window" not in said[smollm:]
    again = inside("run", "--resume", "run", "--evaluations", "41", "--verbose").out
    assert "Sliding window: 22 of its 26 layers" in again


def test_a_model_without_a_vocabulary_has_nothing_said_of_it(study: Study) -> None:
    known = baseline({"depth": 4, "width": 768, "n_kv_heads": 1, "expert_size": 768})
    assert head(known, study.problem) == []
    assert equal_heads(known) == ["Each row gives both sides the same vocabulary and tying."]
    assert blind_spots(known, study.problem.scenario) == []


@pytest.mark.parametrize("column", ["latent_size", "full_head_dim"])
def test_what_no_backend_builds_is_refused(column: str) -> None:
    """An export builds neither latent attention nor heads of full attention alone as something else."""
    rows = {"latent_size": {"qk_norm": "no", "latent_size": 64, "latent_rope": 16, "value_dim": 32}}
    rows["full_head_dim"] = {"n_local": 3, "window": 64, "full_head_dim": 128, "full_kv_heads": 2}
    design = {"depth": 4, "width": 768, "n_kv_heads": 4, "expert_size": 768, **rows[column]}
    with pytest.raises(UsageError, match=f"architecture: expected one that a Hugging Face class holds .*{column}"):
        family_of(baseline(design).architecture)
