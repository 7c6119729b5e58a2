"""Experts in host memory and tokens drafted ahead, as llama.cpp's logs say them: shares and lengths, or the reason why a row is left out."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from plas_board.calibrate import llama_server
from plas_board.calibrate.figure import EVERY_LAYER, Figure, Unusable
from plas_board.calibrate.models import Model, published, slow_share

Rows = Callable[..., list[dict[str, str]]]
Sample = Callable[[str], Path]


def model(label: str) -> Model:
    return next(each for each in published() if each.label == label)


@pytest.mark.parametrize(
    ("pattern", "share"),
    [
        ("exps=CPU", 1.0),
        (r"\.ffn_.*_exps\.=CPU", 1.0),
        (r"\.ffn_(up|down|gate)_exps=CPU", 1.0),
        (r"blk\.(0|1|2|3|4|5)\.ffn_.*_exps=CPU", 6 / 48),
        (r"blk\.[0-9]\.ffn_.*_exps\.weight=CPU", 10 / 48),
        (r"blk\.1[0-9]\.ffn_.*_exps=CPU;blk\.2[0-9]\.ffn_.*_exps=CPU", 20 / 48),
        (r"blk\.0\.ffn_.*_exps=CPU,blk\.47\.ffn_.*_exps=CPU", 2 / 48),
    ],
)
def test_patterns_of_whole_layers(pattern: str, share: float) -> None:
    """Patterns are matched with the names that llama.cpp gives tensors."""
    assert slow_share(model("Qwen3-30B-A3B"), Figure((), placed=pattern)) == pytest.approx(share)


@pytest.mark.parametrize(
    "pattern",
    [
        "ffn_up_exps=CPU",  # a third of each layer's experts
        "ffn=CPU",  # routers too
        "attn=CPU",
        "exps=CUDA1",
        "exps",
        r"blk\.99\.ffn_.*_exps=CPU",  # no such layer
        r"(a+)+exps=CPU",  # a repeat of a repeat, which may take for ever
        r".*.*.*.*.*exps=CPU",
        "[=CPU",
        "x" * 3_000 + "=CPU",
    ],
)
def test_patterns_of_other_tensors_are_named(pattern: str) -> None:
    with pytest.raises(Unusable, match=r"-ot .*: not the experts of whole layers"):
        slow_share(model("Qwen3-30B-A3B"), Figure((), placed=pattern))


def test_layers_are_counted_as_the_engine_counts_them() -> None:
    """The first layers may be dense, which hold no experts; a dense model has none to put elsewhere."""
    sparse = model("GLM-4.7-Flash")
    dense = int(sparse.architecture.n_dense[0])
    depth = int(sparse.architecture.depth[0])
    assert dense > 0
    figure = Figure((), experts_on_cpu=dense)
    assert slow_share(sparse, figure) == 0.0
    assert slow_share(sparse, replace(figure, experts_on_cpu=dense + 4)) == pytest.approx(4 / (depth - dense))
    assert slow_share(sparse, replace(figure, experts_on_cpu=EVERY_LAYER)) == 1.0
    assert slow_share(model("Qwen3-8B"), replace(figure, experts_on_cpu=EVERY_LAYER)) == 0.0


def test_a_table_of_llama_bench(rows: Rows, sample: Sample) -> None:
    """Shares of layers by n_cpu_moe and ot; a dense model is as it was."""
    found = rows(sample("offload.md"))
    assert [row.get("slow_share", "") for row in found] == ["", "", "", "", "0.666667", "0.666667", "1", "", "1", ""]
    assert [row["left_out"] for row in found[:9]] == [""] * 9
    assert "-ot ffn_up_exps=CPU: not the experts of whole layers" in found[9]["left_out"]


def test_heads_that_draft(rows: Rows, sample: Sample) -> None:
    """D of N - 1 - A steps are drafts of D / (N - 1 - A) tokens; prompts of such requests are read by what drafts too."""
    first, one, _, other = rows(sample("server_mtp.txt"))
    assert "what drafts reads it too" in first["left_out"]
    assert (one["drafted"], float(one["accepted"]), float(one["value"])) == ("2", 0.75, 13.0)
    assert other["left_out"] == "drafts of 1.09 tokens in the mean: not all of one length"


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("draft-mtp", "ngram-mod", "speculative decoding by ngram-mod"),
        ("draft-mtp", "none", "speculative decoding by something that the log does not name"),
        (" -np 1", " -np 1 --n-cpu-moe 4", ""),  # a dense model has no experts
        ("offloaded", "buffer type overridden to CPU\nload_tensors: offloaded", "no command line says which"),
    ],
)
def test_other_ways_of_drafting_are_named(
    old: str, new: str, reason: str, rows: Rows, sample: Sample, tmp_path: Path
) -> None:
    text = sample("server_mtp.txt").read_text()
    (tmp_path / "log.txt").write_text(text.replace(old, new))
    assert reason in rows(tmp_path / "log.txt")[1]["left_out"]
    assert bool(reason) == bool(rows(tmp_path / "log.txt")[1]["left_out"])


def test_a_draft_model_is_not_the_model(rows: Rows, sample: Sample, tmp_path: Path) -> None:
    """Timings below the load of a draft model are the first one's; requests that say nothing of drafts are no plain ones."""
    draft = (
        "srv    load_model: loading draft model '/models/Qwen3-0.6B-Q8_0.gguf'\n"
        "llama_model_loader: loaded meta data with 28 key-value pairs and 310 tensors from /models/Qwen3-0.6B-Q8_0.gguf (version GGUF V3 (latest))\n"
        "print_info: file type   = Q8_0\n"
    )
    text = sample("server.txt").read_text().replace("llama_context: flash", draft + "llama_context: flash")
    (tmp_path / "log.txt").write_text(text)
    found: list[dict[str, Any]] = [{**row} for row in rows(tmp_path / "log.txt")]
    reasons = [row["left_out"].partition(":")[0] for row in found]
    drafts, silent = "speculative decoding by a draft model", "a server that drafts"
    assert reasons == [silent, silent, "a prompt of a request that drafts", drafts, silent, silent]
    loaded = llama_server.figure(next(llama_server.loads(text)), "llama-server")
    assert loaded.names[0] == "Qwen3-8B-Q4_K_M"
    assert loaded.cells["precision"] == "q4_k_m"


def test_both_together_have_no_formula(rows: Rows, sample: Sample, tmp_path: Path) -> None:
    text = (
        sample("server_mtp.txt").read_text().replace("Qwen3.5-9B", "Qwen3.5-35B-A3B").replace(" -np 1", " -np 1 -cmoe")
    )
    (tmp_path / "log.txt").write_text(text.replace("33/33", "41/41"))
    assert "together: no formula" in rows(tmp_path / "log.txt")[1]["left_out"]
