"""Commands that do not build or price layers of other kinds refuse them by name."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Inside = Callable[..., Any]
LAYERS = "depth=8,width=768,n_kv_heads=2,expert_size=768"
KINDS = {
    "n_local": "n_local=4,window=512",
    "n_conv": "n_conv=2,conv_kernel=3",
    "n_kv_shared": "n_kv_shared=2",
    "attention_gate": "attention_gate=true",
}


@pytest.mark.parametrize("column", KINDS)
def test_the_closed_form_refuses_them(column: str, inside: Inside) -> None:
    answer = inside("explain", "--architecture", f"{LAYERS},{KINDS[column]}", "--set", "latency=closed_form")
    assert answer.code == 2
    assert f"latency: expected operator for {column}, got closed_form" in answer.err


def test_what_cannot_be_measured_is_refused(inside: Inside, tmp_path: Path) -> None:
    fields = dict(pair.split("=") for pair in f"{LAYERS},{KINDS['n_conv']}".split(","))
    (tmp_path / "mixed.csv").write_text(f"id,{','.join(fields)}\nmixed,{','.join(fields.values())}\n")
    answer = inside("measure", "mixed.csv", "--device", "board", "--out", "there")
    assert answer.code == 2
    assert "n_conv 2" in answer.err


def test_every_kind_is_priced_where_it_is_asked_for(inside: Inside) -> None:
    said = inside("explain", "--architecture", f"{LAYERS},{KINDS['n_conv']},n_local=3,window=100", "--verbose").out
    assert "Sliding window: 3 of its 8 layers attend to the last 100 tokens; Layers: 2 of short convolution, of 8" in (
        said.replace("\n  ", " ")
    )
    assert "local_qk_matmul" in said
    assert "conv_in_proj" in said
    assert "states" in said


@pytest.mark.slow
def test_along_the_context_a_window_stops_growing_and_each_row_is_the_study_there(inside: Inside) -> None:
    flags = ("--preset", "device", "--contexts", "--json")
    gemma, plain = (
        json.loads(inside("explain", *which, *flags).out)["contexts"]
        for which in (("--model", "gemma_3_1b"), ("--architecture", f"{LAYERS},{KINDS['n_conv']}"))
    )
    assert [row["tokens"] for row in gemma] == [1024 * 2**i for i in range(8)]
    own = json.loads(inside("explain", "--model", "gemma_3_1b", *flags[:2], "--input-tokens", "4096", "--json").out)
    assert {name: gemma[2][name] for name in ("prefill_ms", "tpot_ms", "resident_gb")} == {
        name: own["metrics"][name] for name in ("prefill_ms", "tpot_ms", "resident_gb")
    }
    assert gemma[2]["cache_gb"] == own["resident_gb"]["kv cache"]
    growth = gemma[-1]["cache_gb"] / gemma[-2]["cache_gb"]
    assert 1.7 < growth < 2.0  # four layers of twenty-six double, the windows stay
    own = json.loads(inside("explain", "--architecture", f"{LAYERS},{KINDS['n_conv']}", *flags[:2], "--json").out)
    assert plain[0]["cache_gb"] == own["resident_gb"]["kv cache"] + own["resident_gb"]["states"]


@pytest.mark.slow
def test_the_screen_shows_the_context_where_asked_or_where_the_study_is_of_it(inside: Inside) -> None:
    said = inside("explain", "--model", "gemma_3_1b", "--preset", "device", "--contexts").out
    (header,) = [line for line in said.splitlines() if line.lstrip().startswith("prompt")]
    assert header.split() == ["prompt", "prefill_ms", "tpot_ms", "cache_gb", "resident_gb", "fits"]
    assert "131,072" in said
    assert "Along the context" not in inside("explain", "--model", "gemma_3_1b", "--preset", "device").out
    assert "Along the context" in inside("explain", "--model", "gemma_3_1b", "--input-tokens", "8192").out
