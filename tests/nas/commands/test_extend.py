"""The additions of docs/extend.md, applied to a copy of the code as they stand on the page, through the commands that they name.

Each does what its section says or is refused by name; no command may end in a traceback.
"""

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from nas.files import yaml_source
from nas.strategies.conformance.laws import AXES
from tests.nas.commands.changed_tree import ROOT, ChangedTree, Said

pytestmark = pytest.mark.slow

SECTIONS = (
    *("A metric", "A gene", "A gene with a column of its own", "An effect of the device", "A key of the study"),
    *("A weight format", "A form of a loss law", "A stack", "A command"),
)
MOST_LINES = 14  # that an addition adds, but for a command's two files
BOARD = "name: Board\nfp16: 6 TFLOP/s\nint8: 12 TOP/s\nbandwidth: 51.2 GB/s\nmemory: 8 GB\n"
RUN = ("run", "--algo", "exact", "--set", "latency=operator", "--no-plots", "--quiet")
TABLE = ("depth,width,n_experts,top_k,expert_ffn_ratio,n_kv_heads,loss", *(
    f"{depth},{width},1,1,2,2,{2 + 3000 / (width * depth) + 40 / width:.6f}"
    for depth in (4, 8, 16) for width in (256, 512, 768, 1024, 1536)
))  # fmt: skip


def diffs() -> dict[str, str]:
    """The change of each section of the page."""
    page = (ROOT / "docs/extend.md").read_text(encoding="utf-8")
    found = re.findall(r"^## (.+?)\n.*?^```diff\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    return dict(found)


def edits(diff: str) -> list[tuple[str, str, str]]:
    """A change as file, text that stands there once, text instead of it; a blank line is context."""
    found = []
    for part in re.split(r"^--- ", diff, flags=re.MULTILINE)[1:]:
        name, _, body = part.partition("\n")
        for hunk in body.split("@@\n"):
            lines = [(line[:1], line[1:]) for line in hunk.splitlines()]
            before = "".join(f"{text}\n" for sign, text in lines if sign != "+")
            after = "".join(f"{text}\n" for sign, text in lines if sign != "-")
            found.append((name, before, after))
    return found


def test_every_section_is_a_small_addition() -> None:
    found = diffs()
    assert tuple(found) == SECTIONS
    added = {name: len(re.findall(r"^\+.", diff, re.MULTILINE)) for name, diff in found.items()}
    assert {name: count for name, count in added.items() if count > MOST_LINES and name != "A command"} == {}


def test_the_table_counts_the_files() -> None:
    page = (ROOT / "docs/extend.md").read_text(encoding="utf-8")
    counted = re.findall(r"^\| \[.*?\]\(#.*?\).*? \| (\d)", page, re.MULTILINE)
    assert [int(count) for count in counted] == [len({name for name, *_ in edits(diff)}) for diff in diffs().values()]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> ChangedTree:
    """The code with every addition of the page."""
    made = ChangedTree.made(
        tmp_path_factory.mktemp("extend"), [edit for diff in diffs().values() for edit in edits(diff)]
    )
    axes = {**AXES, "norms_per_layer": [2, 4], "adapter_rank": [8, 64]}
    (made.folder / "space.yaml").write_text(yaml_source.dump({"name": "tiny", "axes": axes}), encoding="utf-8")
    (made.folder / "plain.yaml").write_text(yaml_source.dump({"name": "plain", "axes": AXES}), encoding="utf-8")
    (made.folder / "board.yaml").write_text(BOARD, encoding="utf-8")
    (made.folder / "hot.yaml").write_text(f"{BOARD}undrawn: 0.5\n", encoding="utf-8")
    (made.folder / "trained.csv").write_text("\n".join(TABLE), encoding="utf-8")
    return made


def said(tree: ChangedTree, *commands: Sequence[object]) -> list[Said]:
    """What the commands say, of which none ends in a traceback."""
    found = tree(*commands)
    assert [each.err for each in found if each.code == -1] == []
    return found


def rows(tree: ChangedTree, name: str) -> list[dict[str, str]]:
    """A table of the user's folder."""
    with (tree.folder / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_a_metric_is_an_objective_and_a_budget(tree: ChangedTree) -> None:
    asked = ("--space", "plain.yaml", "--objectives", "loss,kv_cache_gb", "--budget", "kv_cache_gb=0.05")
    run, select, listed = said(
        tree, (*RUN, *asked, "--out", "metric"), ("select", "metric", "--json"), ("list", "metrics")
    )
    assert (run.code, select.code) == (0, 0), (run.err, select.err)
    values = [float(row["kv_cache_gb"]) for row in rows(tree, "metric/frontier.csv")]
    assert 0 < max(values) <= 0.05
    assert "kv_cache_gb" in listed.out


def test_a_weight_format_is_priced_and_listed(tree: ChangedTree) -> None:
    asked = ("--space", "plain.yaml", "--precisions", "q5_0,q4_0", "--vocabulary", "32k")
    run, listed = said(tree, (*RUN, *asked, "--out", "format"), ("list", "formats"))
    assert run.code == 0, run.err
    assert {row["precision"] for row in rows(tree, "format/evaluations.csv")} == {"q5_0", "q4_0"}
    assert "Q5_0" in listed.out


@pytest.mark.parametrize(("gene", "values"), [("norms_per_layer", {"2", "4"}), ("adapter_rank", {"8", "64"})])
def test_a_gene_is_searched_recorded_explained_and_refused_where_no_formula_has_it(
    gene: str, values: set[str], tree: ChangedTree
) -> None:
    random = ("run", "--algo", "random", "--evaluations", 60, "--space", "space.yaml", "--no-plots", "--quiet")
    run, closed, resumed, exact, explained, words, theory = said(
        tree,
        (*random, "--out", f"of-{gene}"),
        (*random, "--set", "latency=closed_form", "--out", f"closed-{gene}"),
        ("run", "--resume", f"of-{gene}", "--evaluations", 80, "--no-plots", "--quiet"),
        (*RUN, "--space", "space.yaml", "--objectives", "loss,resident_gb", "--out", f"exact-{gene}"),
        ("explain", f"of-{gene}", "--index", 1, "--json"),
        ("explain", f"of-{gene}", "--index", 1),
        ("theory", "--set", "space=space.yaml", "--budget", "total_ms=400"),
    )
    assert [each.code for each in (run, resumed, exact, explained, words, theory)] == [0, 0, 0, 0, 0, 2]
    assert (closed.code, (tree.folder / f"closed-{gene}").exists()) == (2, False)
    assert "latency: expected operator for adapter_rank, got closed_form" in closed.err
    found = rows(tree, f"of-{gene}/evaluations.csv")
    assert ({row[gene] for row in found}, len(found)) == (values, 80)
    shown = json.loads(explained.out)["metrics"]
    assert shown["memory_gb"] == pytest.approx(float(found[1]["memory_gb"]), rel=1e-9)
    assert gene in theory.err
    assert f", {gene} {found[1][gene]}, " in words.out
    alone = {row[gene] for row in rows(tree, f"exact-{gene}/frontier.csv")}
    assert alone == {min(values, key=int)}  # dearer, and no law sees it


def test_a_column_costs_time_and_no_export_drops_it(tree: ChangedTree) -> None:
    alone = (
        *RUN,
        "--preset",
        "paper",
        "--space",
        "space.yaml",
        "--objectives",
        "loss,decode_ms",
        "--budget",
        "resident_gb=0.4",
    )
    run, export = said(tree, (*alone, "--out", "adapters"), ("export", "adapters", "--select", "best", "--out", "lost"))
    assert (run.code, export.code) == (0, 2), (run.err, export.err)
    assert {row["adapter_rank"] for row in rows(tree, "adapters/frontier.csv")} == {"8"}
    assert "adapter_rank" in export.err


#: A file of the page's additions that somebody forgets, the tests that find it, and what they say.
FORGOTTEN = (
    ("search_spaces/architectures.py", "search_spaces/test_specification.py", "expected the same columns .* got adapter_rank in one"),
    ("search_spaces/columns.py", "search_spaces/test_specification.py", "expected the same columns .* got adapter_rank in one"),
    ("search_spaces/architectures.py search_spaces/columns.py", "search_spaces/test_specification.py", "columns.py: expected a default .* {'adapter_rank'}"),
    ("objectives/counts.py objectives/latency/operators.py", "objectives/latency/test_coverage.py", "adapter_rank: .* price it in objectives/counts.py"),
    ("objectives/scenario.py", "objectives/latency/test_coverage.py", "Device: .* got undrawn; read it in objectives/scenario.py"),
    ("nas/terminal/doors.py", "nas/commands/test_strangers_files.py", "expected every command in COMMANDS, got {'ridge'}"),
    ("", "objectives/latency/test_coverage.py", "tests/reference.py: expected every column in Arch, got no adapter_rank"),
    ("", "objectives/test_metrics.py", "docs/model.md: expected a row for metric kv_cache_gb"),
    ("", "nas/commands/test_strangers_files.py", "run-folder.md: expected a row for each command .*ridge"),
)  # fmt: skip


@pytest.mark.parametrize(("forgotten", "tests", "words"), FORGOTTEN)
def test_a_forgotten_step_is_named(forgotten: str, tests: str, words: str, tmp_path: Path) -> None:
    kept = [edit for diff in diffs().values() for edit in edits(diff) if edit[0] not in forgotten.split()]
    root = ChangedTree.made(tmp_path, kept).root
    for folder in ("tests", "docs", "configs"):
        shutil.copytree(ROOT / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", root)
    line = (sys.executable, "-m", "pytest", "-n", "0", "-q", "-p", "no:cacheprovider", f"tests/{tests}")
    done = subprocess.run(
        line, cwd=root, env={**os.environ, "PYTHONPATH": str(root)}, capture_output=True, text=True, timeout=300
    )
    assert re.search(words, done.stdout + done.stderr, re.DOTALL), done.stdout[-6000:]


def test_an_effect_of_the_device_lengthens_what_arithmetic_binds(tree: ChangedTree) -> None:
    asked = (
        *RUN,
        "--space",
        "plain.yaml",
        "--objectives",
        "loss,prefill_ms",
        "--set",
        "batch=8",
        "--set",
        "attention=fused",
    )
    cool, hot, other, closed = said(
        tree,
        (*asked, "--device", "board.yaml", "--out", "cool"),
        (*asked, "--device", "hot.yaml", "--out", "hot"),
        ("run", "--resume", "cool", "--device", "hot.yaml", "--no-plots"),
        ("run", "--algo", "random", "--set", "latency=closed_form", "--device", "hot.yaml", "--no-plots"),
    )
    assert [each.code for each in (cool, hot, other, closed)] == [0, 0, 2, 2], (cool.err, hot.err)
    least = [min(float(row["prefill_ms"]) for row in rows(tree, f"{name}/frontier.csv")) for name in ("cool", "hot")]
    assert least[1] > 1.5 * least[0]  # the rest is bound by bytes
    assert "undrawn" in closed.err


def test_a_key_of_the_study_prices_identifies_and_varies_by_case(tree: ChangedTree) -> None:
    asked = (*RUN, "--space", "plain.yaml", "--objectives", "loss,decode_ms")
    cases = {"space": "plain.yaml", "cases": [{"device": "l4"}, {"device": "l4", "contention": 2.0, "case": "beside"}]}
    (tree.folder / "cases.yaml").write_text(yaml_source.dump(cases), encoding="utf-8")
    alone, beside, other, devices, closed = said(
        tree,
        (*asked, "--out", "alone"),
        (*asked, "--contention", 2, "--out", "beside"),
        ("run", "--resume", "alone", "--set", "contention=2", "--no-plots"),
        ("devices", "--config", "cases.yaml", "--no-plots", "--out", "devices"),
        ("run", "--set", "latency=closed_form", "--set", "contention=2", "--no-plots"),
    )
    assert [each.code for each in (alone, beside, other, devices, closed)] == [0, 0, 2, 0, 2], devices.err
    assert "contention: 1.0 in the run, 2.0 now" in other.err
    assert "contention" in closed.err
    least = [min(float(row["decode_ms"]) for row in rows(tree, f"{name}/frontier.csv")) for name in ("alone", "beside")]
    assert least[1] == pytest.approx(2 * least[0], rel=0.2)
    times = [float(row["total_ms"]) for row in rows(tree, "devices/models.csv")]
    assert len(set(times)) > len(times) // 2


def test_a_form_is_fitted_and_its_law_used(tree: ChangedTree) -> None:
    fit, run = said(
        tree,
        ("fit", "trained.csv", "--form", "width_only", "--out", "law.yaml"),
        (*RUN, "--space", "plain.yaml", "--law", "law.yaml", "--out", "fitted"),
    )
    assert (fit.code, run.code) == (0, 0), (fit.err, run.err)
    assert "kappa_d" in (tree.folder / "law.yaml").read_text(encoding="utf-8")


def test_a_stack_is_written_and_read_back(tree: ChangedTree) -> None:
    run, export, verify = said(
        tree,
        (*RUN, "--space", "plain.yaml", "--out", "run"),
        ("export", "run", "--select", "best", "--to", "sizes", "--out", "exported"),
        ("export", "--verify", "exported"),
    )
    assert [each.code for each in (run, export, verify)] == [0, 0, 0], (export.err, verify.err)
    assert list((tree.folder / "exported").glob("**/sizes/sizes.json"))
    assert "sizes" in verify.out


def test_a_command_is_helped_run_and_refused(tree: ChangedTree) -> None:
    shown, helped, refused = said(tree, ("ridge", "l4"), ("ridge", "--help"), ("ridge", "l4x"))
    assert (shown.code, helped.code, refused.code) == (0, 0, 2)
    assert shown.out.endswith("FLOP per byte\n")
    assert "Print the ridge point of a device" in helped.out
    assert "did you mean l4" in refused.err
