"""The page of several runs: one scale where there is one, what they differ in, names that tell them apart."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nas.answer.outcome import Outcome
from nas.commands.report import report
from nas.commands.requests import ReportRequest
from nas.pages.runs_page import NamedRun, comparable, differing, distinct_names, laws_apart, runs_data, runs_page
from nas.problem.evaluations import non_dominated
from tests.nas.pages.told import decoded

Concluded = Callable[..., Outcome]


def named(outcomes: list[Outcome]) -> list[NamedRun]:
    """Outcomes as runs a, b, c …"""
    return [NamedRun("abcdef"[i], outcome, outcome.study.resolved()) for i, outcome in enumerate(outcomes)]


def test_what_runs_differ_in_is_said_with_who_has_which(concluded: Concluded) -> None:
    runs = named(
        [concluded(40), concluded(40, seed=3), concluded(40, device="raspberry_pi_5", budgets={"total_ms": 9e9})]
    )
    said = "\n".join(differing(runs))
    assert re.search(r"Strategy: random, seed 0.*\(a, c\); random, seed 3.*\(b\)\.", said)
    assert re.search(r"Device: .*AGX Orin.*\(a, b\); .*Raspberry Pi 5.*\(c\)\.", said)
    assert "Budgets: " in said
    assert "Space: " not in said
    assert comparable(runs[:2])
    assert not comparable(runs)
    assert differing(runs[:1] * 2) == ["Nothing: the same study, the same strategy and the same seed."]


def test_the_joint_frontier_and_volumes_are_on_one_scale(concluded: Concluded) -> None:
    runs = named([concluded(20), concluded(162), concluded(20, seed=1)])
    page = runs_page(runs)
    rows = re.findall(r"<tr><td class=\"words\">([abc])</td>(.*?)</tr>", page)[:3]
    volumes = [float(re.findall(r">(\d\.\d{6})<", row)[0]) for _, row in rows]
    assert max(volumes) == volumes[1]
    values = np.concatenate([run.outcome.frontier.values for run in runs])
    joint = set(non_dominated(values).tolist())
    start = 0
    for run, (_, row) in zip(runs, rows, strict=True):
        n = len(run.outcome.frontier)
        assert f">{len(joint & set(range(start, start + n))):,} of {n:,}<" in row
        start += n


def test_runs_of_other_objectives_have_no_common_volume(concluded: Concluded) -> None:
    page = runs_page(named([concluded(30), concluded(30, objectives=["loss", "memory_gb"])]))
    assert "No hypervolume" in page
    assert runs_data(named([concluded(30), concluded(30, objectives=["loss", "memory_gb"])]))["curve"] is None


def test_designs_with_formats_of_their_own_are_told_by_words(concluded: Concluded) -> None:
    content = runs_data(named([concluded(30, precisions=["fp16", "int4"]), concluded(30)]))
    places = decoded(content["runs"][0]["shape"]["precision"])
    assert {content["words"]["precision"][int(place)] for place in places} <= {"fp16", "int4"}
    assert "precision" not in content["runs"][1]["shape"]


def test_losses_of_different_laws_are_on_no_common_scale(concluded: Concluded) -> None:
    runs = named([concluded(30), concluded(30, law="sparsity_iso")])
    page = runs_page(runs)
    assert "No hypervolume: losses of the laws hw_codesign, sparsity_iso are of different tokenizers" in page
    assert not re.findall(r">\d\.\d{6}<", page)
    assert laws_apart(runs) == ["hw_codesign", "sparsity_iso"]
    costs = {"objectives": ["total_ms", "memory_gb"]}
    assert laws_apart(named([concluded(30, **costs), concluded(30, law="sparsity_iso", **costs)])) == []
    assert laws_apart(named([concluded(30), concluded(30, residual_sd=0.05)])) == []


@pytest.mark.parametrize("study", [{"budgets": {"total_ms": 1e-3}}, {"objectives": ["loss"]}], ids=str)
def test_a_run_with_little_to_show_stands_beside_another(study: dict[str, Any], concluded: Concluded) -> None:
    assert "</html>" in runs_page(named([concluded(30, **study), concluded(30)]))
    assert "</html>" in runs_page(named([concluded(30, **study), concluded(30, **study)]))


def test_folders_of_one_name_are_numbered() -> None:
    assert distinct_names(["a", "b", "a"]) == ["a #1", "b", "a #2"]


def test_several_runs_write_one_page_where_one_stands(
    copied: Path, finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inside: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    assert report(ReportRequest((copied, finished), None, quiet=True)) == Path("report.html")
    first = Path("report.html").read_bytes()
    assert inside("report", copied, finished).code == 2
    assert Path("report.html").read_bytes() == first
    assert b"run #2" in first


def test_what_nobody_asks_for_is_not_computed(concluded: Concluded) -> None:
    """A page of several runs says nothing of changes, published models to take or other laws; a finished search alone says nothing."""
    runs = [concluded(30), concluded(30, seed=1)]
    assert {*vars(runs[0])} == {"study", "evaluations", "batches", "ending", "stage"}
    runs_page(named(runs))
    asked = {*vars(runs[0])}
    assert {"frontier", "exact", "distance"} <= asked
    assert not {"changes", "take", "held", "under_laws", "device_times", "exact_losses", "optimal"} & asked
