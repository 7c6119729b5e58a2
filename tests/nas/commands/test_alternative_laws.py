"""`--set laws=a,b` as a user gives it: a run's files, screen, picture and page, select, explain, and what is refused."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nas.commands.explain import explain
from nas.commands.requests import ExplainRequest as Explaining
from nas.commands.requests import RunRequest
from nas.commands.requests import SelectRequest as Choosing
from nas.commands.run import execute
from nas.commands.select import choose
from nas.errors import UsageError
from nas.exact.alternative_laws import verdicts
from nas.problem.objective import Budget
from nas.problem.picks import PickRule
from nas.search.assembly import assemble
from nas.study.catalogue import load_law
from tests.nas.conftest import TINY

LAWS = ("hw_codesign", "joint_moe", "chinchilla_epoch")
FLAGS = {
    "preset": "paper",
    "algo": "exact",
    "space": TINY,
    "laws": "joint_moe,chinchilla_epoch",
    "budgets": {"total_ms": 12},
    "baselines": [],
}


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An exact run of the tiny space under three laws."""
    folder = tmp_path_factory.mktemp("laws") / "RUN"
    return execute(RunRequest(flags=FLAGS, out=folder, quiet=True))


def rows(path: Path) -> list[dict[str, str]]:
    """A CSV's rows."""
    with path.open(encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def shown(capsys: pytest.CaptureFixture[str]) -> str:
    return " ".join(capsys.readouterr().out.split())


def test_files_hold_regrets_of_every_design_that_somebody_would_take(ran: Path) -> None:
    found = rows(ran / "laws.csv")
    assert [row["of"] for row in found] == ["pick", *LAWS, "least worst regret"]
    assert "loss" not in found[0]
    for row in found[1:4]:
        assert float(row[f"regret_{row['of']}"]) == 0.0
    problem = assemble(FLAGS, {}).problem
    (verdict,) = verdicts(problem, tuple(map(load_law, LAWS)), (PickRule(None),))
    assert verdict.robust is not None
    expected = verdict.regrets(problem.architectures(verdict.robust.genotypes))[0]
    told = [float(found[-1][f"regret_{law}"] or "nan") for law in LAWS]
    np.testing.assert_allclose(told, expected, atol=1e-12)
    assert {row["regret_chinchilla_epoch"] == "" for row in found if row["n_experts"] != "1"} <= {True}


def test_summary_and_page_tell_the_same(ran: Path) -> None:
    summary = json.loads((ran / "summary.json").read_text())["laws"]
    assert summary["names"] == list(LAWS)
    found = rows(ran / "laws.csv")
    told = summary["questions"][0]["regret_of_pick"]
    assert told["joint_moe"] == float(found[0]["regret_joint_moe"])
    page = (ran / "report.html").read_text(encoding="utf-8")
    assert "If another law is right" in page
    assert "does not see depth beside width" in page


def test_the_screen_says_what_a_pick_is_right_under(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    execute(RunRequest(flags=FLAGS, out=tmp_path / "RUN", pictures=False, verbose=True))
    said = shown(capsys)
    assert "Regret under each law, nats" in said
    assert "2 laws that price it" in said or "3 laws that price it" in said
    assert "Losses of different laws are of different tokenizers and data and are not compared." in said
    assert "chinchilla_epoch prices designs of n_experts 1 alone" in said


def test_dense_or_experts_is_answered_by_the_laws_that_can(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = {
        **FLAGS,
        "space": "paper",
        "laws": "joint_moe,sparsity_iso,chinchilla_epoch",
        "budgets": {"memory_gb": 0.7, "total_ms": 60},
    }
    execute(RunRequest(flags=flags, out=tmp_path / "RUN", pictures=False))
    said = shown(capsys)
    (line,) = {
        text.partition("Along")[0] for text in said.split("your budgets: ") if text.startswith("Dense or experts?")
    }
    assert "E 8 under hw_codesign" in line
    assert "a dense design under sparsity_iso" in line
    assert "joint_moe" in line.partition("chinchilla_epoch")[0]
    assert "chinchilla_epoch (designs of n_experts 1 alone) cannot say" in line
    assert said.count("joint_moe (designs of top_k 1 alone)") == 1


def chosen(run: Path, how: str, **given: Any) -> Choosing:
    asked = {
        "budgets": [],
        "sweep": None,
        "laws": None,
        "formats": {},
        "out": None,
        "shown": 20,
        "quiet": True,
        "json": True,
    }
    return Choosing(run, how, **{**asked, **given})


def test_select_gives_each_chosen_design_its_regrets(ran: Path, capsys: pytest.CaptureFixture[str]) -> None:
    choose(chosen(ran, "budget:total_ms=8", laws="sparsity_iso"))
    (pick,) = json.loads(capsys.readouterr().out)
    assert pick["regret_hw_codesign"] == 0.0
    problem = assemble(FLAGS, {}).problem
    (verdict,) = verdicts(problem, (load_law("sparsity_iso"),), (PickRule(Budget("total_ms", 8.0)),))
    design = problem.space.architectures(problem.space.genotypes(np.arange(problem.space.size)))
    same = np.flatnonzero((design.depth == pick["depth"]) & (design.width == pick["width"]) & (design.n_experts == pick["n_experts"])
        & (design.top_k == pick["top_k"]) & (design.expert_size == pick["expert_size"]) & (design.n_kv_heads == pick["n_kv_heads"]))  # fmt: skip
    assert pick["regret_sparsity_iso"] > 0.0
    assert pick["regret_sparsity_iso"] == pytest.approx(verdict.regrets(design[same])[0, 0], abs=1e-12)
    choose(chosen(ran, "frontier", laws="routed"))
    every = json.loads(capsys.readouterr().out)
    assert "regret_joint_moe" not in every[0]
    assert min(row["regret_routed"] for row in every if row["top_k"] == 1) >= -1e-12
    choose(chosen(ran, "budget:total_ms=8", json=False))
    said = shown(capsys)
    assert "Under each law: " in said
    assert "Least worst regret: " in said


def test_select_sweeps_with_regrets(ran: Path, capsys: pytest.CaptureFixture[str]) -> None:
    choose(chosen(ran, "frontier", sweep="total_ms=6:12:3"))
    found = json.loads(capsys.readouterr().out)
    assert [row["regret_hw_codesign"] for row in found] == pytest.approx([0.0] * len(found), abs=1e-12)


def test_explain_says_the_regret_of_any_design(capsys: pytest.CaptureFixture[str]) -> None:
    flags = {"laws": "joint_moe,fine_grained"}
    explain(Explaining(model="qwen2.5_0.5b", flags=flags))
    said = shown(capsys)
    assert "Regret under each law, nats, among designs of at most its total_ms" in said
    assert "joint_moe 0." in said


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ({"laws": "joint_moe"}, "laws: expected --algo exact with them, got nsga2"),
        ({"laws": "joint_mo", "algo": "exact"}, "expected a law (.*), got 'joint_mo'; did you mean joint_moe"),
        ({"tokens": 1e9}, "tokens: expected a law that depends on them, got hw_codesign, which is of 1e.10 tokens"),
        ({"tokens": -1, "law": "chinchilla"}, "tokens: expected a positive quantity like \"10B\", got -1"),
        ({"law": "chinchilla", "laws": [{"name": "chinchilla", "form": "parameters_power", "tokens": 1e9,
          "coefficients": {"kappa": 1, "alpha": 0.1, "l_inf": 2}}], "algo": "exact"}, "got two called chinchilla"),
    ],
)  # fmt: skip
def test_what_cannot_be_asked_is_refused_by_name(tmp_path: Path, flags: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        execute(RunRequest(flags=flags, out=tmp_path / "RUN", quiet=True))
    assert not (tmp_path / "RUN").exists()


def test_a_design_that_a_law_does_not_price_is_refused_by_explain() -> None:
    with pytest.raises(UsageError, match="got chinchilla, which prices designs of n_experts 1 alone"):
        explain(Explaining(model="olmoe_1b_7b", flags={"law": "chinchilla"}))


def test_tokens_are_those_of_the_studys_law_for_every_law_that_depends_on_them() -> None:
    raw = {"algo": "exact", "laws": "joint_moe,routed"}
    assert [law.tokens for law in assemble(raw, {}).laws] == [10e9, 10e9, 130e9]
    study = assemble({**raw, "tokens": 40e9}, {})
    assert [law.tokens for law in study.laws] == [10e9, 40e9, 130e9]
    again = assemble({**study.resolved(), "algo": "exact"}, {})
    assert [law.mapping() for law in again.laws] == [law.mapping() for law in study.laws]
