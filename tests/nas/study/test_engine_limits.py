"""What a stated engine does not run as it was trained is no design of the study; without one the answer names those that do."""

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from nas.answer.three_sentences import answer_of
from nas.problem.problem import Problem
from nas.search.assembly import assemble
from nas.study.baselines import baseline
from nas.study.layers import layered
from objectives.engines import RUNS
from objectives.plugins import packaged
from tests.sources import text

BOARD = {"name": "Our board", "fp16": "6 TFLOP/s", "int8": "12 TOP/s", "bandwidth": "51.2 GB/s", "memory": "8 GB"}
BUDGETS = {"total_ms": 500, "resident_gb": 4}
ONE = {
    **packaged("nas.study.presets", "device"),
    "space": "paper",
    "device": {**BOARD, "chip": "npu"},
    "precision": "q8_0",
}
LAYERS = {
    "axes": {
        "depth": [8, 12],
        "layers": ["full", {"period": 4, "local": 512}, {"period": 4, "conv": 3}],
        "width": [512, 1024],
        "n_experts": [1, 8],
        "top_k": [1, 2],
        "expert_ffn_ratio": [1, 2],
        "n_kv_heads": [2],
    }
}


def rows(problem: Problem) -> set[tuple[Any, ...]]:
    """Every design of a problem."""
    found = problem.architectures(problem.space.genotypes(np.arange(problem.space.size)))
    names = ("depth", "width", "n_experts", "top_k", "expert_size", "n_kv_heads", "n_local", "n_conv")
    return {tuple(row) for row in np.stack([getattr(found, name) for name in names], axis=1).tolist()}


def runnable(problem: Problem, engine: str) -> np.ndarray[Any, Any]:
    """Keys of the designs of a problem that an engine runs, one by one."""
    every = problem.space.genotypes(np.arange(problem.space.size))
    found = problem.architectures(every)
    precision = problem.scenario.precision.name
    return np.array([k for k in range(len(every)) if not RUNS[engine].lacks(found[np.array([k])], precision)])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("space", "engine"), [("paper", "llama.cpp"), (LAYERS, "llama.cpp"), (LAYERS, "vLLM"), (LAYERS, "MLX")]
)
def test_the_space_is_that_of_the_designs_that_run(space: Any, engine: str, problem_of: Callable[..., Problem]) -> None:
    """One kind of layers that runs without experts alone would go from designs with them too: no such kind is here."""
    whole, narrowed = problem_of(space=space), problem_of(space=space, engine=engine)
    kept = whole.space.genotypes(runnable(whole, engine))
    assert rows(narrowed) == rows(whole) & rows_at(whole, kept)
    assert narrowed.space.size == len(kept)


def rows_at(problem: Problem, genotypes: Any) -> set[tuple[Any, ...]]:
    """Designs of some genotypes."""
    found = problem.architectures(genotypes)
    names = ("depth", "width", "n_experts", "top_k", "expert_size", "n_kv_heads", "n_local", "n_conv")
    return {tuple(row) for row in np.stack([getattr(found, name) for name in names], axis=1).tolist()}


@pytest.mark.slow
def test_the_answer_is_the_best_of_those_that_run(problem_of: Callable[..., Problem]) -> None:
    whole = problem_of(**ONE, budgets=BUDGETS)
    narrowed = problem_of(**ONE, budgets=BUDGETS, engine="llama.cpp")
    every = whole.evaluate(whole.space.genotypes(runnable(whole, "llama.cpp")))
    fits = np.all([every.metrics[name] <= limit for name, limit in BUDGETS.items()], axis=0)
    best = float(every.metrics["loss"][fits].min())
    found = narrowed.evaluate(narrowed.space.genotypes(np.arange(narrowed.space.size)))
    within = np.all([found.metrics[name] <= limit for name, limit in BUDGETS.items()], axis=0)
    assert float(found.metrics["loss"][within].min()) == pytest.approx(best, rel=1e-12)
    assert float(found.metrics["loss"][within].min()) > float(
        whole.evaluate(whole.space.genotypes(np.arange(whole.space.size))).metrics["loss"].min()
    )


@pytest.mark.slow
def test_the_board_of_the_first_page_gets_no_expert_alone(inside: Callable[..., Any]) -> None:
    Path("board.yaml").write_text(yaml.safe_dump(ONE["device"]))
    flags = ["--algo", "exact", "--space", "paper", "--preset", "device", "--device", "board.yaml", "--out", "run"]
    flags += ["--budget", "total_ms=500", "--budget", "resident_gb=4", "--set", "engine=llama.cpp", "--no-plots"]
    answer = inside("run", *flags, "--precision", "q8_0")
    assert answer.code == 0
    assert "one is used" not in answer.out.split("Best design: ")[1]
    assert "left out, as llama.cpp is not known to run it as trained: top-1 routing" in answer.err + answer.out
    answer = inside("run", *flags[:-1], "--no-plots", "--precision", "int8")
    assert answer.code == 2
    assert "precision: expected a format that llama.cpp is known to run, fp32" in answer.err
    assert "got int8" in answer.err


def test_what_leaves_nothing_is_refused_by_name(inside: Callable[..., Any]) -> None:
    axes = {**LAYERS["axes"], "n_experts": [8], "top_k": [1]}
    del axes["layers"]
    Path("study.yaml").write_text(yaml.safe_dump({"space": {"axes": axes}, "engine": "llama.cpp"}))
    answer = inside("run", "--config", "study.yaml", "--out", "run")
    assert answer.code == 2
    assert "engine: expected one that runs top-1 routing" in answer.err
    axes |= {"n_experts": [1], "layers": [{"period": 4, "linear": "deltanet"}]}
    Path("study.yaml").write_text(yaml.safe_dump({"space": {"axes": axes}, "engine": "llama.cpp"}))
    answer = inside("run", "--config", "study.yaml", "--out", "run")
    assert answer.code == 2
    assert "engine: expected one that runs layers of custom" in answer.err


def sentence(problem: Problem, top_k: int) -> str:
    """What the answer takes, for the last design with so many experts a token."""
    found = problem.architectures(problem.space.genotypes(np.arange(problem.space.size)))
    place = int(np.flatnonzero((found.n_experts > 1) & (found.top_k == top_k))[-1])
    return answer_of(problem, problem.evaluate(problem.space.genotypes(np.array([place]))), None).takes


def test_without_an_engine_the_answer_names_those_that_run_the_design(problem_of: Callable[..., Problem]) -> None:
    gpu = ONE | {"device": {**BOARD, "chip": "gpu"}}
    known = problem_of(**gpu | {"precision": "fp16"})
    assert sentence(known, 1).endswith(
        "Runs as trained in vLLM, MLX and MLC-LLM; llama.cpp and TensorRT-LLM renormalise top-1 routing."
    )
    assert sentence(known, 2).endswith("Runs as trained in llama.cpp, vLLM, TensorRT-LLM, MLX and MLC-LLM.")
    assert "No engine is known to run it as trained in q8_0; llama.cpp" in sentence(problem_of(**gpu), 1)
    assert sentence(problem_of(**ONE), 1).endswith("Whether an engine of this NPU runs it is not known.")


def test_an_engine_is_named_alone_and_nothing_where_parts_of_a_model_are_left_out(
    problem_of: Callable[..., Problem],
) -> None:
    assert sentence(problem_of(**ONE | {"engine": "llama.cpp"}), 2).endswith(" Runs as trained in llama.cpp.")
    for given in (ONE | {"engine": "mine"}, ONE | {"complete": False, "precision": "fp16"}):
        assert "as trained" not in sentence(problem_of(**given), 2)


PROFILE = {"engine": "ONNX Runtime GenAI 0.18.0", "precision": "int8", "compute_efficiency": 0.5}


@pytest.mark.parametrize(
    "keys", [{"engine": "onnx_genai"}, {"device": {**BOARD, "chip": "cpu", "profiles": [PROFILE]}}]
)
def test_an_engine_without_experts_gets_none_whether_stated_or_the_devices(
    keys: dict[str, Any], problem_of: Callable[..., Problem]
) -> None:
    """The default pick of a device runs in the device's engine."""
    narrowed = problem_of(**{**ONE, "precision": "int8", **keys})
    assert narrowed.space.size < problem_of(**{**ONE, "precision": "int8"}).space.size
    assert len(runnable(narrowed, "ONNX Runtime GenAI")) == narrowed.space.size


@pytest.mark.parametrize(
    ("keys", "tokens"),
    [
        ({}, None),
        ({"preset": "device"}, 8192),
        ({"preset": "device", "engine": "llama.cpp b4567"}, 512),
        ({"preset": "device", "engine": "mlx-lm"}, 2048),
        ({"preset": "device", "engine": "an engine of mine"}, 8192),
        ({"preset": "device", "prefill_chunk": "none"}, None),
        ({"prefill_chunk": 1000}, 1000),
    ],
)
def test_the_engine_says_how_much_of_a_prompt_it_reads_at_once(keys: dict[str, Any], tokens: int | None) -> None:
    assert assemble(*layered(keys, (), None)).problem.scenario.prefill_chunk == tokens


def test_a_long_prompt_fits_where_engines_run_it() -> None:
    """Qwen3.5-27B at 131,071 tokens in 4 bits on 32 GB; with the whole prompt at once it would not."""
    keys = {"preset": "device", "precision": "q4_k_m", "input_tokens": 131_071, "output_tokens": 1}
    chosen = baseline("qwen3.5_27b").architecture
    needs = [
        float(assemble(*layered(keys | more, (), None)).problem.assess(chosen)["resident_gb"][0])
        for more in ({"engine": "llama.cpp"}, {}, {"prefill_chunk": "none"})
    ]
    assert needs[0] < needs[1] < 32.0 < needs[2]


PUBLISHED = list(csv.DictReader(text("studies/engine_memory/published.csv").splitlines()))


@pytest.mark.slow
@pytest.mark.parametrize(
    "row", PUBLISHED, ids=lambda row: f"{row['model']}-{row['input_tokens']}-{row['prefill_chunk']}"
)
def test_resident_memory_is_what_engines_publish(row: dict[str, str]) -> None:
    """Within 12 %, but for those of which the table says why; it has the ratio of each."""
    numbers = {name: int(row[name]) for name in ("batch", "prefill_chunk", "input_tokens")}
    keys = {"preset": "device", "precision": row["precision"], "attention": row["attention"], "output_tokens": 1}
    problem = assemble(*layered(keys | numbers, (), None)).problem
    predicted = float(problem.assess(baseline(row["model"]).architecture)["resident_gb"][0])
    published = float(row["published_gb"])
    assert (abs(predicted / published - 1.0) > 0.12) == bool(row["why"])
    name = row["source"].removeprefix("https://github.com/").replace("/issues/", "#").replace("/pull/", "#")
    cells = [row["model"], row["precision"], row["engine"], row["prefill_chunk"], f"{int(row['input_tokens']):,}"]
    cells += [f"{published:.1f}", f"{predicted:.1f}", f"{predicted / published:.2f}", f"[{name}]({row['source']})"]
    assert f"| {' | '.join(cells)} |" in text("studies/engine_memory/results.md")


def test_a_cache_of_8_bits_beside_any_format() -> None:
    """Qwen3.5-27B at 200,000 tokens, q4_k_m: half of the cache, and nothing else."""
    keys = {"preset": "device", "engine": "llama.cpp", "input_tokens": 200_000, "output_tokens": 1}
    needs = [
        float(
            assemble(*layered(keys | {"precision": name}, (), None)).problem.assess(
                baseline("qwen3.5_27b").architecture
            )["resident_gb"][0]
        )
        for name in ("q4_k_m", "q4_k_m_kv8")
    ]
    assert needs[0] - needs[1] == pytest.approx(16 * 2 * 4 * 256 * 200_001 / 1e9, rel=1e-9)
    assert needs[1] < 26.4 * 1.073_741_824
