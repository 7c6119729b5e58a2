"""`export` and `export --verify` as a user types them, and everything that can be wrong."""

import csv
import errno
import json
import shutil
from collections import namedtuple
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nas.export import checkpoint
from nas.export import folder as export_folder
from nas.export.folder import folder_names
from nas.export.stack_protocol import RECIPES, RECIPES_PAGE
from nas.record.candidates import read_candidates
from tests.sources import ROOT

Inside = Callable[..., Any]
ROWS = [
    {"id": "one", "depth": 2, "width": 128, "n_kv_heads": 1, "expert_size": 96, "n_experts": 4},
    {"id": "../two", "depth": 2, "width": 128, "n_kv_heads": 2, "expert_size": 128},
]
EVERY = "trainer,vllm,llama-bench"


def candidates(folder: Path, rows: list[dict[str, Any]] = ROWS) -> Path:
    """A candidate file."""
    path = folder / "some.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def left(folder: Path) -> set[str]:
    """What lies in a folder, hidden files too."""
    return {path.name for path in folder.iterdir()}


def test_a_run_is_exported_and_verified(inside: Inside, copied: Path) -> None:
    result = inside("export", copied, "--select", "diverse:3", "--to", EVERY, "--out", "out", "--recipe", "scaled")
    assert result.code == 0, result.err
    assert "recipe scaled" in result.out
    with Path("out/candidates.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    chosen = json.loads(inside("select", copied, "--select", "diverse:3", "--json").out)
    assert [row["id"] for row in rows] == [row["id"] for row in chosen]
    for name in ("loss", "total_ms", "memory_gb", "depth", "expert_size"):
        assert [float(row[name]) for row in rows] == [row[name] for row in chosen]
    for row, known in zip(rows, chosen, strict=True):
        assert int(row["params_total"]) == known["params_total"] + 151_936 * int(row["width"])
        assert float(row["gpu_hours"]) > 0
        assert left(Path("out") / row["folder"]) == {"hf", *EVERY.split(",")}
    checked = inside("export", "--verify", "out")
    assert checked.code == 0, checked.out
    assert checked.out.count("3 of 3 candidates as exported") == 4


def test_a_file_is_exported_whole_with_weights(inside: Inside, tmp_path: Path) -> None:
    arguments = ("--vocabulary", 300, "--weights", "--to", EVERY, "--seed", 3)
    assert inside("export", candidates(tmp_path), *arguments, "--out", "a").code == 0
    assert inside("export", candidates(tmp_path), *arguments, "--out", "b").code == 0
    assert left(Path("a")) == {"README.md", "candidates.csv", "candidates.study.yaml", "export.json", "one", "two"}
    files = sorted(p.relative_to("a") for p in Path("a").rglob("*") if p.is_file())
    assert len(files) > 15
    assert all((Path("a") / p).read_bytes() == (Path("b") / p).read_bytes() for p in files)
    found, ids = read_candidates(Path("a/candidates.csv"))
    assert ids == ["one", "../two"]
    assert found.vocabulary.tolist() == [300, 300]
    assert inside("export", "--verify", "a").code == 0
    again = inside("export", "a/candidates.csv", "--out", "c")
    assert again.code == 0
    assert Path("c/one/hf/config.json").read_bytes() == Path("a/one/hf/config.json").read_bytes()


def test_selection_within_a_file(inside: Inside, tmp_path: Path) -> None:
    result = inside("export", candidates(tmp_path), "--select", "best", "--out", "out", "--json")
    rows = json.loads(result.out)["candidates"]
    assert len(rows) == 1
    assert rows[0]["loss"] == min(r["loss"] for r in _all(inside, tmp_path))


def _all(inside: Inside, folder: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(inside("export", candidates(folder), "--out", "all", "--json").out)[
        "candidates"
    ]
    return rows


def test_rounding_and_doubts_are_shown(inside: Inside, tmp_path: Path) -> None:
    result = inside(
        "export",
        candidates(tmp_path),
        "--expert-multiple",
        64,
        "--preset",
        "paper",
        "--out",
        "out",
        "--budget",
        "total_ms=0.01",
    )
    assert "Rounded one: expert size 96 -> 128, FFN ratio 0.75 -> 1, loss" in result.out
    assert "Rounded ../two" not in result.out
    assert "outside the range that law hw_codesign was fitted on" in result.out
    assert "Over budget total_ms <= 0.01: 2 of 2" in result.out
    rounded = json.loads(Path("out/export.json").read_text())["rounded"]["one"]
    assert rounded["expert_size"] == {"asked": 96, "exported": 128}
    assert rounded["loss"]["asked"] != rounded["loss"]["exported"]
    assert inside("export", "--verify", "out").code == 0


def test_verification_finds_what_changed(inside: Inside, tmp_path: Path) -> None:
    arguments = ("--vocabulary", 300, "--weights", "--to", "vllm")
    assert inside("export", candidates(tmp_path), *arguments, "--out", "out").code == 0
    config = Path("out/one/hf/config.json")
    good = config.read_text()
    config.write_text(good.replace('"num_local_experts": 4', '"num_local_experts": 128'))
    result = inside("export", "--verify", "out")
    assert result.code == 1
    assert "one: ValueError: num_local_experts: expected 4" in result.out
    config.write_text("{")
    assert inside("export", "--verify", "out", "--json").code == 1
    config.write_text(good)
    tensors = Path("out/two/hf/model.safetensors")
    tensors.write_bytes(tensors.read_bytes()[:-7])
    result = inside("export", "--verify", "out")
    assert result.code == 1
    assert "../two: ValueError: model.safetensors" in result.out
    shutil.rmtree("out/two")
    assert "../two: tokenizer" in inside("export", "--verify", "out").out


@pytest.mark.slow
def test_designs_of_several_vocabularies_have_workloads_of_their_own(inside: Inside, tmp_path: Path) -> None:
    study = ("--vocabulary", "16k,64k", "--set", "input_text=4kB", "--set", "output_text=100", "--law", "hw_codesign")
    small = (
        "--set",
        "space={axes: {depth: [4, 8], width: [768], n_experts: [1], top_k: [1], expert_ffn_ratio: [2], n_kv_heads: [1]}}",
    )
    ran = inside(
        "run", "--algo", "exact", "--preset", "device", *study, *small, "--no-plots", "--quiet", "--out", "run"
    )
    assert ran.code == 0, ran.err
    assert inside("export", "run", "--to", "llama-bench", "--out", "out").code == 0
    with Path("out/candidates.csv").open() as file:
        rows = list(csv.DictReader(file))
    each = json.loads(Path("out/export.json").read_text())["workload"]
    lengths: dict[str, set[int]] = {"16000": set(), "64000": set()}
    for row, own in zip(rows, each, strict=True):
        lengths[row["vocabulary"]].add(own["input_tokens"])
        assert f"-p {own['input_tokens']} " in Path("out", row["folder"], "llama-bench", "bench.sh").read_text()
    (small_ones,), (large_ones,) = lengths.values()
    assert small_ones > large_ones
    refused = inside("measure", "run", "--out", "measured")
    assert (refused.code, "give both" in refused.err) == (2, True)
    assert inside("export", "--verify", "out").code == 0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"layout": 9}, "layout 9"),
        ({"recipe": {}}, "Recipe"),
        ({"workload": {"batch": 1}}, "input_tokens"),
        ({"workload": []}, "expected a workload of each of 2 candidates, got 0"),
        ({"stacks": 3}, "TypeError"),
        ({"stacks": ["hf", "nemo"]}, "expected a stack"),
        ({"seed": None}, "TypeError"),
    ],
)
def test_a_damaged_export_is_a_usage_error(inside: Inside, tmp_path: Path, change: dict[str, Any], said: str) -> None:
    assert inside("export", candidates(tmp_path), "--out", "out").code == 0
    path = Path("out/export.json")
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    result = inside("export", "--verify", "out")
    assert result.code == 2
    assert said in result.err
    assert "Traceback" not in result.err


def test_an_export_from_before_with_a_stack_that_was_another_package_s_is_verified(
    inside: Inside, tmp_path: Path
) -> None:
    assert inside("export", candidates(tmp_path), "--to", "vllm", "--out", "out").code == 0
    path = Path("out/export.json")
    content = json.loads(path.read_text())
    assert content["plugins"] == {}
    path.write_text(json.dumps({**content, "plugins": {"vllm": "plas-stacks 0.2.0"}}))
    result = inside("export", "--verify", "out")
    assert (result.code, result.out.count("2 of 2 candidates as exported")) == (0, 2)


@pytest.mark.parametrize("name", RECIPES)
def test_a_framework_that_a_recipe_replaces_is_refused_by_name(inside: Inside, tmp_path: Path, name: str) -> None:
    """As a stack that is asked for, and as one of an export from before, ours then or of our package."""
    said = f"got {name}, which trains from hf and has no files of its own any more; leave it out and see {RECIPES_PAGE}"
    source = candidates(tmp_path)
    asked = inside("export", source, "--to", f"trainer,{name}", "--out", "out")
    assert (asked.code, said in asked.err) == (2, True)
    assert not Path("out").exists()
    assert inside("export", source, "--out", "out").code == 0
    path = Path("out/export.json")
    before = {**json.loads(path.read_text()), "stacks": ["hf", name]}
    for plugins in ({}, {name: "plas-stacks 0.2.0"}):
        path.write_text(json.dumps({**before, "plugins": plugins}))
        checked = inside("export", "--verify", "out")
        assert checked.code == 2
        assert checked.err.startswith("out/export.json: stacks: expected a stack (")
        assert said in checked.err
    assert (ROOT / RECIPES_PAGE).is_file()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--to", "hf,trianer"], "did you mean trainer?"),
        (["--vocabulary", 200], "got 257 in bytes"),
        (["--vocabulary", 0], "a model needs an embedding"),
        (["--tokenizer", "nowhere"], "tokenizer: expected 'bytes' or a folder"),
        (["--recipe", "papre"], "did you mean paper?"),
        (["--select", "kne"], "select: expected frontier"),
        (["--out", "some.jsonl"], "expected a folder, got a file"),
        (["--out", "full"], "with files in it"),
        (["--device", "nothing"], "expected a device"),
        (["--config", "nothing"], "expected a file or a shipped study"),
    ],
)
def test_what_cannot_be_done_is_said_and_nothing_is_written(
    inside: Inside, tmp_path: Path, arguments: list[object], said: str
) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    source = candidates(tmp_path)
    before = left(tmp_path)
    out = [] if "--out" in arguments else ["--out", "out"]
    result = inside("export", source, *out, *arguments)
    assert result.code == 2, (result.out, result.err)
    assert said in result.err
    assert "Traceback" not in result.err
    assert left(tmp_path) == before


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"n_kv_heads": 3}, "row 2: n_kv_heads: expected a divisor of n_heads"),
        ({"norms_per_layer": 4}, "norms_per_layer 4"),
        ({"qk_norm": "full"}, "qk_norm full"),
        ({"n_experts": 4, "top_k": 4}, "top_k: expected fewer"),
        ({"expert_size": 0}, "expert_size: expected a positive integer"),
    ],
)
def test_architectures_that_cannot_be_exported(
    inside: Inside, tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    result = inside("export", candidates(tmp_path, [ROWS[0], {**ROWS[1], **change}]), "--out", "out")
    assert result.code == 2
    assert said in result.err
    assert left(tmp_path) == {"some.jsonl"}


def test_missing_arguments_and_folders(inside: Inside, tmp_path: Path) -> None:
    assert inside("export").code == 2
    assert inside("export", "--verify", "nowhere").code == 2
    assert inside("export", "nowhere.csv", "--out", "out").code == 2
    assert inside("export", candidates(tmp_path), "--verify", "x").code == 2
    (tmp_path / "norun").mkdir()
    assert "expected a run folder" in inside("export", "norun", "--out", "out").err


def test_nothing_feasible_is_exit_code_3(inside: Inside, tmp_path: Path) -> None:
    arguments = ("--select", "frontier", "--budget", "total_ms=1e-9", "--out", "out")
    assert inside("export", candidates(tmp_path), *arguments).code == 3
    assert left(tmp_path) == {"some.jsonl"}


def test_too_little_space_is_said_before_writing(
    inside: Inside, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(export_folder.shutil, "disk_usage", lambda _: usage(100, 99, 1))
    result = inside("export", candidates(tmp_path), "--weights", "--out", "out")
    assert result.code == 1
    assert "GB of free space" in result.err
    assert left(tmp_path) == {"some.jsonl"}


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_a_broken_export_leaves_nothing(
    inside: Inside, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    def fail(*_: object) -> bytes:
        raise error

    monkeypatch.setattr(checkpoint, "header", fail)
    result = inside("export", candidates(tmp_path), "--weights", "--out", "out")
    assert result.code == (1 if isinstance(error, OSError) else 130)
    assert "Traceback" not in result.err
    assert left(tmp_path) == {"some.jsonl"}


def test_an_empty_folder_is_taken(inside: Inside, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    assert inside("export", candidates(tmp_path), "--out", "out").code == 0
    assert (tmp_path / "out" / "candidates.csv").exists()
    assert inside("export", candidates(tmp_path), "--out", "deep/er/out").code == 0


def test_folder_names_are_safe_and_distinct() -> None:
    names = folder_names(["../../etc", "a b", "a/b", "A-B", "...", "", "é", "candidates.csv", "x" * 300])
    assert len({name.lower() for name in names}) == len(names)
    assert names[:4] == ["etc", "a-b", "a-b-2", "A-B-3"]
    assert all(name and "/" not in name and not name.startswith(".") and len(name) < 120 for name in names)
    assert "candidates.csv" not in names


def test_stacks_and_recipes_are_listed(inside: Inside) -> None:
    listed = inside("list", "stacks").out
    assert all(name in listed for name in ("hf", *EVERY.split(",")))
    assert "scaled" in inside("list", "recipes").out
    assert "global_batch" in inside("list", "--schema", "recipe").out
