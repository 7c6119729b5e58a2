"""`fit --prior` as a user types it: what rows change, what is said and refused, the law and the designs that it writes."""

import csv
import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from nas.files import yaml_source
from nas.problem.uncertainty import differences
from nas.record.candidates import read_candidates
from nas.search.assembly import assemble
from objectives.loss_law.coverage import Region
from objectives.loss_law.law import Law
from plas_fit.evidence.joint_form import trainings
from plas_fit.evidence.posterior import Belief, posterior, prior_of
from plas_fit.fitting.design import table_of
from plas_fit.fitting.trained_models import Table
from plas_fit.frontier_check import Judged, picks_asked, under_draws
from plas_fit.next_designs import Asked, Trainings, contrasts, proposed, quantities
from search_spaces.architectures import Architectures
from tests.made_up_prior import prior_law

Inside = Callable[..., Any]
AXES = {
    "depth": [4, 8, 12, 16, 24],
    "width": [512, 768, 1024, 1536],
    "n_experts": [1, 8],
    "top_k": [1, 2],
    "expert_ffn_ratio": [1, 2, 4],
    "n_kv_heads": [1, 4],
}
LAW = prior_law(
    {kind: Region(ranges={"active_parameters": (1e7, 1e11), "tokens": (1e9, 1e12)}) for kind in ("dense", "sparse")}
)


def truth_of(seed: int) -> Belief:
    prior, generator = prior_of(LAW), np.random.default_rng(seed)
    return replace(
        prior, mean=prior.mean + np.linalg.cholesky(prior.covariance) @ generator.normal(size=len(prior.mean))
    )


def rows_of(n: int, seed: int = 0) -> list[dict[str, float]]:
    """Dense models, with what they lose under a truth."""
    generator = np.random.default_rng(seed)
    depth, width = generator.integers(6, 40, n), 64 * generator.integers(6, 36, n)
    tokens = np.round(10 ** generator.uniform(9.5, 11, n))
    columns = {"depth": depth, "width": width, "parameters": 12 * depth * width**2, "tokens": tokens}
    named = {name: column.tolist() for name, column in columns.items()}
    found = [dict(zip(named, values, strict=True)) for values in zip(*named.values(), strict=True)]
    return with_losses(found, truth_of(seed), generator)


def with_losses(rows: list[dict[str, float]], truth: Belief, generator: np.random.Generator) -> list[dict[str, float]]:
    columns = {name: np.array([float(row[name]) for row in rows]) for name in rows[0]}
    of = trainings("", "", Table({**columns, "loss": np.ones(len(rows))}, np.arange(len(rows))), np.zeros(len(rows))).of
    losses = truth.losses(of) + 0.01 * generator.normal(size=len(rows))
    return [{**row, "loss": round(loss, 5)} for row, loss in zip(rows, losses.tolist(), strict=True)]


def written(path: Path, rows: Iterable[dict[str, Any]]) -> Path:
    every = list(rows)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(every[0]))
        writer.writeheader()
        writer.writerows(every)
    return path


@pytest.fixture
def typed(inside: Inside, tmp_path: Path) -> Callable[..., Any]:
    """`fit` with the prior, in the small space, unless others are named."""
    (tmp_path / "others.yaml").write_text(yaml_source.dump(LAW.mapping()))
    (tmp_path / "small.yaml").write_text(yaml_source.dump({"name": "small", "axes": AXES}))

    def fit(*arguments: object, prior: str = "others.yaml") -> Any:
        return inside("fit", *arguments, "--prior", prior, "--space", "small.yaml")

    return fit


def test_eight_rows_shrink_differences_and_write_a_law(typed: Inside, inside: Inside, tmp_path: Path) -> None:
    written(tmp_path / "own.csv", rows_of(8))
    answer = typed("own.csv", "--out", "mine.yaml", "--report", "own", "--json")
    assert answer.code == 0, answer.err
    content = json.loads(answer.out)
    assert content == json.loads((tmp_path / "own" / "report.json").read_text())
    known = content["differences"]
    widths = [known["prior"], known["posterior"], *known["further"].values()]
    assert widths == sorted(widths, reverse=True)
    assert known["posterior"] < 0.8 * known["prior"]
    assert all(each["sd_ratio"] < 1.02 for each in content["coordinates"].values())
    assert content["coordinates"]["S_N"]["sd_ratio"] < 0.9
    assert content["expected_regret"]["posterior"] > 0
    assert "command" in content
    law = Law.model_validate(yaml_source.read(tmp_path / "mine.yaml")[0])
    assert (law.name, law.runs, len(law.draws)) == ("mine", 8, 256)
    assert law.provenance["prior"]["name"] == "others"
    assert law.provenance["verdict"] == content["verdict"][0]
    assert law.tokens == max(row["tokens"] for row in rows_of(8))


@pytest.mark.slow
@pytest.mark.parametrize("depths", [[8], [8, 12], [4, 8, 12], list(range(1, 32))])
def test_a_space_of_few_designs_has_few_pairs(depths: list[int], typed: Inside, tmp_path: Path) -> None:
    axes = {**AXES, "width": [512], "n_experts": [1], "top_k": [1], "expert_ffn_ratio": [2], "n_kv_heads": [1]}
    (tmp_path / "small.yaml").write_text(yaml_source.dump({"name": "small", "axes": {**axes, "depth": depths}}))
    answer = typed(written(tmp_path / "own.csv", rows_of(8)), "--out", "mine.yaml", "--json")
    assert answer.code == 0, answer.err
    assert json.loads(answer.out)["differences"]["pairs"] == max(1, len(depths) // 2)


def test_the_law_is_used_by_run_and_as_a_prior(typed: Inside, inside: Inside, tmp_path: Path) -> None:
    written(tmp_path / "own.csv", rows_of(30)[:8])
    written(tmp_path / "more.csv", rows_of(30)[8:])
    assert typed("own.csv", "--out", "mine.yaml", "--quiet").code == 0
    answer = inside("run", "--algo", "exact", "--law", "mine.yaml", "--space", "small.yaml", "--out", "run")
    assert answer.code == 0, answer.err
    assert "Law mine: joint, 8 rows of own.csv" in answer.out
    answer = typed("more.csv", "--json", prior="mine.yaml")
    assert answer.code == 0, answer.err
    content = json.loads(answer.out)
    assert content["prior"] == "mine"
    assert content["differences"]["posterior"] < content["differences"]["prior"]
    answer = typed("own.csv", prior="mine.yaml")
    assert answer.code == 2
    assert "own.csv: expected rows that mine has not seen" in answer.err


def test_the_page_is_made_again_from_the_report(typed: Inside, inside: Inside, tmp_path: Path) -> None:
    named = [{"name": "<b>x</b>", **row} for row in rows_of(6)]
    named[2]["loss"] += 0.4
    written(tmp_path / "own.csv", named)
    assert typed("own.csv", "--report", "own", "--next", 2, "--quiet").code == 0
    first = (tmp_path / "own" / "report.html").read_text()
    (tmp_path / "own" / "report.html").unlink()
    assert inside("report", "own").code == 0
    assert (tmp_path / "own" / "report.html").read_text() == first
    assert "<b>x</b>" not in first
    assert "Train next: 2 of the small space" in first
    page = (tmp_path / "own" / "report.md").read_text()
    assert "(S_N) |" in page


@pytest.mark.slow
def test_few_rows_are_said_to_be_few(typed: Inside, tmp_path: Path) -> None:
    for n, said in (
        (1, "1 of 4 at least. They moved the level alone"),
        (3, "3 of 4 at least. They moved level and slopes"),
    ):
        written(tmp_path / "few.csv", rows_of(n))
        answer = typed("few.csv", "--quiet")
        assert answer.code == 0, answer.err
        assert said in answer.out
        assert "too few rows" in answer.out.partition("Next: ")[0]


def test_what_a_table_does_not_say_is_said(typed: Inside, tmp_path: Path) -> None:
    rows = [{"parameters": row["parameters"], "loss": row["loss"]} for row in rows_of(5)]
    rows[0] = {"parameters": 2e6, "loss": 5.2}
    written(tmp_path / "bare.csv", rows)
    answer = typed("bare.csv", "--tokens", "3e10")
    assert answer.code == 0, answer.err
    assert "Your table has no depth and width, attention size, the size of experts or FFN" in answer.out
    assert "no tokens: all rows are taken as trained on 3e+10" in answer.out
    assert "1 rows are below 1e7 parameters or 1e8 tokens" in answer.out
    assert "widened to your rows: parameters 2e+06 to" in answer.out


def test_tokens_that_some_rows_do_not_say_are_not_taken_from_the_prior(typed: Inside, tmp_path: Path) -> None:
    table = tmp_path / "own.csv"
    table.write_text("parameters,tokens,loss\n1e8,1e10,3.2\n2e8,,3.1\n3e8,1e10,3.0\n")
    answer = typed(table)
    assert answer.code == 2
    assert "own.csv:3: tokens: expected a number, got ''; correct it, or leave such rows out with" in answer.err


def test_groups_have_levels_and_the_law_one_of_them(typed: Inside, tmp_path: Path) -> None:
    rows = [{**row, "recipe": "old" if i % 3 == 0 else "new"} for i, row in enumerate(rows_of(9))]
    for row in rows:
        row["loss"] += 0.5 * (row["recipe"] == "old")
    written(tmp_path / "own.csv", rows)
    answer = typed("own.csv", "--rename", "recipe=group", "--json")
    assert answer.code == 0, answer.err
    content = json.loads(answer.out)
    assert content["data"]["main"] == "new"
    levels = {each["name"]: each["loss"] for each in content["data"]["groups"]}
    assert levels["old"] - levels["new"] == pytest.approx(0.5, abs=0.05)
    assert content["provenance"]["group"] == "new"


@pytest.mark.slow
def test_a_diverged_row_is_left_out_by_name_and_the_verdict_is_that_without_it(typed: Inside, tmp_path: Path) -> None:
    rows = rows_of(10)
    written(tmp_path / "clean.csv", rows)
    written(tmp_path / "own.csv", [*rows, {**rows[4], "loss": rows[4]["loss"] + 5.0}])
    clean, whole = (json.loads(typed(name, "--json").out) for name in ("clean.csv", "own.csv"))
    assert whole["verdict"] == clean["verdict"]
    (said,) = (note for note in whole["data"]["notes"] if "diverged" in note)
    assert said.startswith("line 12 left out: its loss ")


def test_designs_of_a_kind_that_own_rows_lack_are_outside_of_the_own_law(typed: Inside, tmp_path: Path) -> None:
    written(tmp_path / "own.csv", rows_of(10))
    assert typed("own.csv", "--out", "mine.yaml").code == 0
    mine = Law.model_validate(yaml.safe_load((tmp_path / "mine.yaml").read_text()))
    assert set(mine.covers) == {"dense"}
    shape = {"depth": [12] * 2, "width": [768] * 2, "head_dim": [64] * 2, "n_heads": [12] * 2, "n_kv_heads": [12] * 2}
    columns = {**shape, "n_experts": [1, 16], "top_k": [1, 1], "expert_size": [3072, 3072]}
    designs = Architectures.from_columns({name: np.array(values) for name, values in columns.items()})
    assert "n_experts" in mine.outside(designs[[1]])
    assert not differences(mine, designs[[1]], designs[[0]])[0][0].known


def test_a_row_of_another_recipe_surprises(typed: Inside, tmp_path: Path) -> None:
    rows = rows_of(10)
    rows[4]["loss"] += 0.4
    written(tmp_path / "own.csv", rows)
    answer = typed("own.csv", "--json")
    content = json.loads(answer.out)
    off = np.abs(content["rows"]["surprise"])
    assert int(off.argmax()) == 4
    assert off[4] > 3
    assert any(line.startswith("Surprise: line 6 (loss ") for line in content["verdict"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--form", "chinchilla"), "--prior: expected no --form with it"),
        (("--kv", "free"), "--prior: expected no --kv with it"),
        (("--fix", "a=1"), "--prior: expected no --fix with it"),
        (("--delta", "none"), "--prior: expected no --delta with it"),
        (("--starts", "3"), "--prior: expected no --starts with it"),
        (("--bootstraps", "0"), "--prior: expected no --bootstraps with it"),
        (("--law", "chinchilla"), "--prior: expected no --law with it"),
        (("--next", "2", "--goal", "frontier"), "goal: expected a goal"),
        (("--next", "9999"), "next: expected at most"),
        (("--next", "2", "--flops", "1"), "flops: expected a budget"),
        (("--candidates", "next.csv"), "--candidates: expected --next with it"),
        (("--loss-unit", "bytes"), "loss_unit: expected a unit"),
    ],
)
def test_what_a_prior_excludes_is_refused(flags: tuple[str, ...], said: str, typed: Inside, tmp_path: Path) -> None:
    written(tmp_path / "own.csv", rows_of(5))
    answer = typed("own.csv", *flags)
    assert answer.code == 2
    assert answer.err.startswith(said)


def test_other_laws_are_no_priors(typed: Inside, tmp_path: Path) -> None:
    written(tmp_path / "own.csv", rows_of(5))
    answer = typed("own.csv", prior="chinchilla")
    assert answer.code == 2
    assert answer.err.startswith("prior: expected a law of the joint form, got chinchilla")
    kinds = [
        {
            **row,
            "n_heads": 8,
            "n_kv_heads": 2,
            "n_experts": 1,
            "top_k": 1,
            "expert_size": 512,
            "n_conv": 2,
            "conv_kernel": 3,
        }
        for row in rows_of(5)
    ]
    written(tmp_path / "kinds.csv", kinds)
    answer = typed("kinds.csv")
    assert answer.code == 2
    assert "runs: expected rows of full attention, got layers of conv" in answer.err


def test_first_designs_under_a_prior_need_no_rows(typed: Inside, tmp_path: Path) -> None:
    answer = typed("--next", 4, "--candidates", "next.csv")
    assert answer.code == 0, answer.err
    assert "Train first: 4 of the small space" in answer.out
    assert len(read_candidates(tmp_path / "next.csv")[0]) == 4
    assert typed().code == 2
    assert typed("--next", 3, "--out", "mine.yaml").code == 2


@pytest.mark.slow
def test_designs_for_the_picks_beat_random_ones() -> None:
    """Truths from the prior: the true regret of the picks after four trainings, chosen and random."""
    prior = prior_of(LAW)
    study = assemble({"law": LAW.mapping(), "baselines": [], "space": {"name": "small", "axes": AXES}}, {})
    judged = under_draws(study, LAW)
    assert isinstance(judged, Judged)
    designs = study.problem.architectures(judged.found.genotypes[judged.drawn.rows])
    of, masks = quantities(designs, 1e10), list(picks_asked(judged).values())
    aims = contrasts(judged, prior)
    assert (aims**2).sum() == pytest.approx(sum(_lost(judged, mask) for mask in masks))
    chosen = proposed(Asked(4, "regret", None, 0), study, LAW, prior, judged, np.array([1e10])).trainings

    def after(trained: Trainings, truth: Belief, generator: np.random.Generator) -> float:
        table = table_of(trained.architectures, trained.tokens)
        losses = truth.losses(quantities(trained.architectures, 1e10)) + 0.01 * generator.normal(size=len(table))
        rows = trainings("", "", replace(table, numbers={**table.numbers, "loss": losses}), np.zeros(len(table)))
        said, true = posterior(prior, rows).belief.losses(of), truth.losses(of)
        return float(np.mean([true[mask][said[mask].argmin()] - true[mask].min() for mask in masks]))

    regrets = []
    for seed in range(12):
        generator, truth = np.random.default_rng(seed), truth_of(seed)
        random = Trainings(designs[generator.choice(len(designs), 4, replace=False)], np.full(4, 1e10))
        regrets.append((after(chosen, truth, generator), after(random, truth, generator)))
    own, others = np.mean(regrets, axis=0)
    assert own < 0.6 * others


def _lost(judged: Judged, within: Any) -> float:
    """What the pick within a budget loses to each draw's best, mean over draws."""
    losses = judged.drawn.losses[:, within]
    pick = judged.found.metrics["loss"][judged.drawn.rows][within].argmin()
    return float((losses[:, pick] - losses.min(axis=1)).mean())


def test_cost_aware_designs_are_cheaper() -> None:
    prior = prior_of(LAW)
    study = assemble({"law": LAW.mapping(), "baselines": [], "space": {"name": "small", "axes": AXES}}, {})
    judged = under_draws(study, LAW)
    found = {goal: proposed(Asked(4, goal, None, 0), study, LAW, prior, judged, None) for goal in ("regret", "cost")}
    assert found["cost"].trainings.flops.sum() < 0.5 * found["regret"].trainings.flops.sum()
    assert found["regret"].plan.shrink < found["cost"].plan.shrink < 1.0
    limited = proposed(Asked(4, "regret", None, 0, flops=1e18), study, LAW, prior, judged, None)
    assert limited.trainings.flops.sum() <= 1e18


def test_own_rows_without_experts_leave_designs_with_experts_outside(
    typed: Inside, inside: Inside, tmp_path: Path
) -> None:
    """Fit, law and run agree: of a kind of design that no own row is of, no chance is given."""
    written(tmp_path / "own.csv", rows_of(12))
    answer = typed("own.csv", "--out", "mine.yaml", "--json")
    assert answer.code == 0, answer.err
    assert any(note.startswith("no row says that it has experts") for note in json.loads(answer.out)["data"]["notes"])
    law = Law.model_validate(yaml_source.read(tmp_path / "mine.yaml")[0])
    assert list(law.covers) == ["dense"]
    assert json.loads(answer.out)["kinds"] == ["dense"]
    words = ("run", "--algo", "exact", "--law", "mine.yaml", "--space", "small.yaml")
    run = inside(*words, "--out", "marked")
    assert run.code == 0, run.err
    left = "law mine was fitted on no designs with experts, so none is recommended"
    assert left in run.err
    with (tmp_path / "marked" / "frontier.csv").open() as file:
        assert {row["n_experts"] for row in csv.DictReader(file)} == {"1"}
    run = inside(*words, "--set", "outside=allow", "--out", "run")
    assert run.code == 0, run.err
    assert left not in run.err
    with (tmp_path / "run" / "frontier.csv").open() as file:
        rows = list(csv.DictReader(file))
    sparse = [row for row in rows if int(row["n_experts"]) > 1]
    assert sparse
    assert {row["probability_optimal"] for row in sparse} == {""}
    assert "16 experts" not in run.out
    assert "probability 1" not in run.out


def test_a_diverged_row_moves_no_own_law(typed: Inside, tmp_path: Path) -> None:
    rows, found = rows_of(12), []
    for name, every in (("clean.csv", rows), ("other.csv", [*rows, {**rows[-1], "loss": 7.93}])):
        written(tmp_path / name, every)
        answer = typed(name, "--json")
        assert answer.code == 0, answer.err
        found.append(json.loads(answer.out))
    clean, other = found
    assert other["verdict"] == clean["verdict"]
    assert other["coefficients"] == clean["coefficients"]
    assert any(note.startswith("line 14 left out: its loss 7.93") for note in other["data"]["notes"])
