"""`fit` as a user types it: law files, reports, designs, and what a run makes of a law with draws."""

import csv
import json
import math
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nas.errors import UsageError
from nas.exact.solution import solve, way_of
from nas.problem.uncertainty import tied, uncertainty
from nas.search.assembly import assemble
from nas.terminal.parser import refuse_idle
from objectives.loss_law.law import Law
from plas_fit.command import execute, study_of
from plas_fit.frontier_check import frontier_check, under_draws
from plas_fit.request import FitRequest
from search_spaces.architectures import Architectures, one
from search_spaces.space import SearchSpace

TRUE = {
    "kappa_l": 9.96, "alpha_l": 1.63, "kappa_rho": 0.031, "alpha_rho": 1.09, "alpha_r": 0.17,
    "beta_1": -0.33, "kappa_d": 500.0, "beta_2": 0.97, "kappa_m": 0.005, "l_inf": 2.6,
}  # fmt: skip
ACTIVE = {"kappa": 400.0, "a": 0.32, "kappa_rho": 20.0, "b": 0.1, "c": 0.2, "l_inf": 1.6}
SHAPE = ("depth", "width", "n_kv_heads", "n_experts", "top_k", "expert_size")


@pytest.fixture(scope="module")
def space() -> SearchSpace:
    return assemble({}, {}).problem.space


@pytest.fixture(scope="module")
def law() -> Law:
    """A law with forty draws around it."""
    generator = np.random.default_rng(0)
    rows = np.array(list(TRUE.values())) * (1 + 0.02 * generator.normal(size=(40, len(TRUE))))
    draws = tuple(" ".join(repr(v) for v in row) for row in rows.tolist())
    return Law.model_validate({"form": "hw_codesign_log_kv", "coefficients": TRUE, "draws": draws, "tokens": 1e10})


@pytest.fixture
def runs(tmp_path: Path, space: SearchSpace) -> Path:
    """Eighty trained models."""
    generator = np.random.default_rng(1)
    a = space.architectures(space.genotypes(generator.choice(space.size, 80, replace=False)))
    loss = Law.model_validate({"form": "hw_codesign_log_kv", "coefficients": TRUE}).loss(a) + generator.normal(
        0, 0.01, 80
    )
    path = tmp_path / "runs.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*SHAPE, "loss"])
        writer.writerows(zip(*(getattr(a, name).tolist() for name in SHAPE), loss.tolist(), strict=True))
    return path


def request(table: Path | None, **changes: Any) -> FitRequest:
    """A quick fit."""
    given = {
        "runs": () if table is None else (table,), "form": "hw_codesign", "out": None, "report": None, "rename": (), "where": (), "tokens": 1e10, "kv": "log", "fix": (),
        "delta": "auto", "starts": 4, "bootstraps": 40, "seed": 0, "law": "hw_codesign", "config": None,
        "space": None, "next": None, "goal": "coefficients",
        "candidates": None, "quiet": True, "json": False,
    }  # fmt: skip
    return FitRequest(**(given | changes))


@pytest.mark.slow
def test_a_fitted_law_is_used_everywhere(runs: Path, tmp_path: Path) -> None:
    out = tmp_path / "law.yaml"
    execute(request(runs, out=out))
    problem = assemble({"law": str(out), "objectives": "loss@q90,total_ms"}, {}).problem
    found = problem.evaluate(problem.space.genotypes(np.arange(50)))
    losses = problem.scenario.law.spread_losses(problem.architectures(found.genotypes))
    assert losses.shape == (40, 50)
    np.testing.assert_allclose(found.metrics["loss@q90"], np.quantile(losses, 0.9, axis=0))
    assert way_of(problem)[0] == "enumeration"
    assert problem.scenario.law.provenance["rows"] == 80


@pytest.mark.slow
def test_a_report_is_written_in_three_forms(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    execute(request(runs, report=tmp_path / "report", json=True))
    content = json.loads(capsys.readouterr().out)
    assert content == json.loads((tmp_path / "report" / "report.json").read_text())
    page = (tmp_path / "report" / "report.md").read_text()
    assert "| alpha_l |" in page
    lines = page.splitlines()
    for before, line in pairwise(lines):  # a line of text right after a table would be a row of it
        assert not before or not line or before.startswith("|") == line.startswith("|"), line
    assert min(
        content["forms"], key=lambda n: content["forms"][n]["bic"] if isinstance(content["forms"][n], dict) else np.inf
    ).startswith("hw_codesign")


@pytest.mark.slow
@pytest.mark.parametrize("goal", ["coefficients", "cost"])
def test_designs_are_a_candidate_file(goal: str, runs: Path, tmp_path: Path) -> None:
    from nas.record.candidates import read_candidates

    execute(request(runs, next=12, goal=goal, candidates=tmp_path / "next.csv"))
    architectures, ids = read_candidates(tmp_path / "next.csv")
    assert len(architectures) == 12
    assert ids[0] == "next-0"


@pytest.mark.parametrize(("columns", "keys"), [(80, {}), (100, {"space": "edge2026"}), (100, {"law": "chinchilla"})])
def test_designs_to_train_fit_the_screen_in_one_table(
    columns: int, keys: dict[str, Any], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    execute(request(None, next=3, quiet=False, **keys))
    said = capsys.readouterr().out
    assert max(map(len, said.splitlines())) <= columns
    assert said.count("  id  ") == 1
    assert ("training tokens" in said) == ("law" in keys)
    assert len(re.findall(r"\n    \d+ layers.*, width [\d,]+, ", said)) == 3
    assert said.count(" KV)") == 3


def test_the_first_designs_need_no_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "first.csv"
    execute(request(None, next=12, candidates=out, quiet=False))
    said = capsys.readouterr()
    assert "Train first: 12 of the paper space" in said.out
    rows = list(csv.DictReader(out.open()))
    assert [row["purpose"] for row in rows].count("replicate") == 1
    execute(request(None, next=8, json=True, quiet=False))
    said = capsys.readouterr()
    assert len(json.loads(said.out)["next"]["depth"]) == 8
    assert "8 models cannot determine this law's 10 coefficients" in said.err


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"form": "hw_codesgin"}, "did you mean hw_codesign"),
        ({"kv": "none"}, "kv: expected a treatment"),
        ({"delta": "-1"}, "delta: expected auto, none or a positive number"),
        ({"tokens": 0.0}, "tokens: expected a positive number"),
        ({"fix": ("alpha_m=nan",)}, "fix: expected NAME=VALUE"),
        ({"fix": ("alpha_m",)}, "fix: expected NAME=VALUE"),
        ({"fix": ("alpha_x=1",)}, "fix: expected an exponent among"),
        ({"out": Path("law.txt")}, "out: expected a .yaml or .yml file"),
        ({"out": Path("nowhere/law.yaml")}, "out: expected a folder that exists, got nowhere"),
        ({"next": 5, "candidates": Path("next.txt")}, "candidates: expected a .csv or .jsonl file"),
        ({"kv": "free", "form": "depth_width"}, "kv: expected it with --form hw_codesign, got free"),
        ({"form": "chinchilla"}, "tokens: expected a column of training tokens"),
        ({"next": 5, "goal": "fame"}, "goal: expected a goal"),
        ({"law": "paper"}, "law: expected a law"),
        ({"config": "nothing.yaml"}, "nothing.yaml"),
        pytest.param({"next": 20_000}, "next: expected at most ", marks=pytest.mark.slow),
    ],
)
def test_wrong_options_are_a_clear_line(changes: dict[str, Any], said: str, runs: Path) -> None:
    with pytest.raises(UsageError) as caught:
        execute(request(runs, **changes))
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"next": 20, "out": Path("law.yaml")}, "--out: expected CSV with it"),
        ({"next": 20, "report": Path("report")}, "--report: expected CSV with it"),
        ({"next": 20, "where": ("a>1",)}, "--where: expected CSV with it"),
        ({"next": 20, "bootstraps": 9}, "--bootstraps: expected CSV with it"),
        ({"next": 20, "prior": "evidence", "law": "chinchilla"}, "--prior: expected no --law with it"),
    ],
)
def test_without_a_table_only_designs_can_be_asked_for(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        refuse_idle(FitRequest(**changes))
    with pytest.raises(UsageError, match="runs: expected a CSV of trained models, got none"):
        execute(FitRequest())


def test_designs_are_among_those_that_the_law_prices(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    execute(request(None, next=20, law="chinchilla", candidates=tmp_path / "next.csv", quiet=False))
    said = capsys.readouterr().out
    assert "chinchilla prices designs of n_experts 1 alone" in " ".join(said.split())
    rows = list(csv.DictReader((tmp_path / "next.csv").open()))
    assert {row["n_experts"] for row in rows} == {"1"}
    assert " inf " not in said
    with pytest.raises(UsageError, match="within what chinchilla prices, designs of n_experts 1 alone and memory_gb"):
        execute(request(None, next=6, law="chinchilla", max_params="1000"))


@pytest.mark.slow
@pytest.mark.parametrize(("flag", "name"), [("out", "law.yaml"), ("candidates", "next.csv")])
def test_a_file_that_exists_is_never_overwritten(flag: str, name: str, runs: Path, tmp_path: Path) -> None:
    (tmp_path / name).write_text("years of work")
    with pytest.raises(UsageError, match=rf"--{flag}: expected a new file, got .*{name} which exists; name another"):
        execute(request(runs, next=5, **{flag: tmp_path / name}))
    assert (tmp_path / name).read_text() == "years of work"


@pytest.mark.slow
def test_what_looks_like_bits_is_said_first_and_the_unit_can_be_given(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bits = tmp_path / "bits.csv"
    rows = list(csv.reader(runs.open()))
    bits.write_text("\n".join(",".join([*r[:-1], repr(float(r[-1]) / math.log(2))]) for r in rows[1:]))
    bits.write_text(",".join(rows[0]) + "\n" + bits.read_text())
    execute(request(bits))
    assert "these losses look like bits" in capsys.readouterr().out
    execute(request(bits, loss_unit="nats"))
    assert "look like bits" not in capsys.readouterr().out
    execute(request(bits, loss_unit="bits", json=True))
    content = json.loads(capsys.readouterr().out)
    assert content["data"]["unit"] is None
    assert content["coefficients"]["l_inf"]["value"] == pytest.approx(2.6, abs=0.15)
    with pytest.raises(UsageError, match="loss_unit: expected a unit"):
        execute(request(bits, loss_unit="bit"))


@pytest.mark.slow
def test_a_form_of_ones_own_is_a_file(runs: Path, tmp_path: Path) -> None:
    form = tmp_path / "mine.yaml"
    form.write_text(
        "terms:\n  depth: {scale: k, powers: {depth: -a}}\n  width: {scale: w, powers: {width: -b, activation_rate: c}}\n"
        "  rest: {scale: e}\nbounds: {a: [0.1, 3]}\n"
    )
    execute(request(runs, form=str(form), out=tmp_path / "law.yaml"))
    problem = assemble({"law": str(tmp_path / "law.yaml")}, {}).problem
    assert list(problem.scenario.law.coefficients) == ["k", "a", "w", "b", "c", "e"]
    assert problem.scenario.law.separable


@pytest.mark.parametrize("c", [ACTIVE["c"], -0.2])
def test_a_law_in_parameters_has_an_exact_frontier_without_enumeration(c: float) -> None:
    """Branch and bound over sums of parts finds what enumeration finds, under a law that is no sum and may turn in its size."""
    import nas.exact.solution as module

    law = {"form": "active_power", "coefficients": ACTIVE | {"c": c}}
    problem = assemble({"law": law, "vocabulary": 50_000, "applications": {}, "baselines": []}, {}).problem
    enumerated = solve(problem)
    assert enumerated.way == "enumeration"
    original, module.SMALL = module.SMALL, 0
    try:
        parts = solve(problem)
    finally:
        module.SMALL = original
    assert parts.way == "parts"
    assert parts.frontier.keys.tolist() == enumerated.frontier.keys.tolist()


def test_probability_is_that_of_the_definition(law: Law, space: SearchSpace) -> None:
    problem = assemble({"law": law.mapping(), "baselines": []}, {}).problem
    found = problem.evaluate(space.genotypes(np.arange(0, space.size, 97)))
    known = uncertainty(law, lambda rows: problem.architectures(found.genotypes[rows]), found)
    assert known is not None
    probability, ms = known.probability(), found.metrics["total_ms"]
    losses = law.drawn_losses(problem.architectures(found.genotypes))
    for row in range(0, len(found), 9):
        beaten = (
            (ms <= ms[row])
            & (losses <= losses[:, [row]])
            & ((ms < ms[row]) | (losses < losses[:, [row]]))
            & found.feasible
        )
        expected = 0.0 if not found.feasible[row] else float((~beaten.any(axis=1)).mean())
        assert probability[row] == pytest.approx(expected)


def test_the_frontier_check_is_that_of_the_definition(law: Law) -> None:
    """Frontiers, picks and regrets of every draw, computed again from the losses."""
    study = assemble({"law": law.mapping(), "baselines": [], "applications": {}}, {})
    problem = study.problem
    said = frontier_check(under_draws(study, law))
    found = problem.evaluate(np.concatenate(list(problem.space.enumerate())))
    architectures, ms = problem.architectures(found.genotypes), found.metrics["total_ms"]
    fits = np.flatnonzero(found.feasible)

    def frontier(losses: np.ndarray) -> set[int]:  # type: ignore[type-arg]
        best, members = np.inf, set()
        for row in fits[np.lexsort((losses[fits], ms[fits]))]:
            if losses[row] < best:
                best = losses[row]
                members.add(int(row))
        return members

    own, draws = frontier(law.loss(architectures)), law.drawn_losses(architectures)
    shared = [len(own & other) / len(own | other) for other in map(frontier, draws[:10])]
    assert (said["members"], said["draws"]) == (len(own), 40)
    few = law.model_copy(update={"draws": law.draws[:10]})
    assert frontier_check(under_draws(study, few))["jaccard"]["mean"] == pytest.approx(np.mean(shared))
    for pick in said["picks"]:
        within = fits[ms[fits] <= pick["limit"]]
        row = within[np.argmin(law.loss(architectures[within]))]
        lost = draws[:, row] - draws[:, within].min(axis=1)
        assert pick["same"] == pytest.approx((lost == 0).mean())
        assert pick["regret"] == pytest.approx(lost.mean())
    shallow = np.mean([architectures.depth[row] in (4, 32) for row in own])
    assert said["boundary"]["depth"] == pytest.approx(shallow)
    assert said["outside"] == {}
    assert said["blind"] == []
    blind = Law.model_validate(
        {"form": "depth_width", "coefficients": {"kappa_l": 10, "alpha_l": 1.6, "kappa_d": 500, "beta": 1, "l_inf": 2}}
    ).model_copy(update={"draws": ("10 1.6 500 1 2",) * 2})
    assert frontier_check(under_draws(study, blind))["blind"] == ["n_experts", "top_k", "ffn", "n_kv_heads"]


def test_a_frontier_check_says_why_not(law: Law) -> None:
    without = law.model_copy(update={"draws": ()})
    study = assemble({"law": without.mapping(), "baselines": []}, {})
    assert "without draws" in frontier_check(under_draws(study, without))["reason"]
    large = assemble({"law": law.mapping(), "space": "fine", "baselines": []}, {})
    assert "more than 50,000" in frontier_check(under_draws(large, law))["reason"]


def test_designs_outside_the_fitted_range_are_said(law: Law) -> None:
    narrow = law.model_copy(update={"fitted_on": {"depth": (8.0, 24.0)}, "covers": {}})
    study = assemble({"law": narrow.mapping(), "baselines": []}, {})
    assert 0 < frontier_check(under_draws(study, narrow))["outside"]["depth"] < 1


def test_ties(law: Law) -> None:
    same = {"width": 1024, "n_kv_heads": 4, "expert_size": 1024}
    pair = Architectures.concatenate([one(same | {"depth": 8}), one(same | {"depth": 32}), one(same | {"depth": 31})])
    assert tied(law.model_copy(update={"draws": (), "residual_sd": 0.05}), pair).tolist() == [1, 0, 0]  # type: ignore[union-attr]
    assert tied(law.model_copy(update={"draws": (), "residual_sd": None}), pair) is None
    found = tied(law, pair)
    assert found is not None
    assert found[1] == 0
    assert found[0] > 0


def test_the_shipped_laws_uncertainty_is_unknown() -> None:
    problem = assemble({}, {}).problem
    assert problem.scenario.law.residual_sd is None
    found = problem.evaluate(problem.space.genotypes(np.arange(10)))
    assert uncertainty(problem.scenario.law, lambda rows: problem.architectures(found.genotypes[rows]), found) is None
    assert assemble({"residual_sd": 0.06}, {}).problem.scenario.law.residual_sd == 0.06


@pytest.mark.slow
def test_what_is_proposed_fits_the_studys_memory_and_the_limits_asked_for(runs: Path, tmp_path: Path) -> None:
    """The space holds models of 58.6 G parameters: 117 GB in fp16, on a device of 64."""
    from nas.record.candidates import read_candidates
    from objectives.counts import total

    for i, changes in enumerate(({}, {"max_params": "2B"}, {"flops": 3e20}, {"flops": 3e20, "goal": "cost"})):
        out = tmp_path / f"next{i}.csv"
        execute(request(None, next=12, candidates=out, **changes))  # type: ignore[arg-type]
        architectures, _ = read_candidates(out)
        assert len(architectures) == 12
        size = total(architectures.with_vocabulary(0))
        assert size.max() * 2 <= 64.1e9
        assert size.max() <= 2e9 or "max_params" not in changes
        spent = sum(float(row["training_flops"]) for row in csv.DictReader(out.open()))
        assert spent <= 3e20 or "flops" not in changes


@pytest.mark.parametrize(
    ("changes", "preset"),
    [
        ({}, "paper"),
        ({"runs": (Path("runs.csv"),)}, "device"),
        ({"prior": "evidence"}, "device"),
        ({"law": "mine.yaml"}, "device"),
        ({"config": "paper", "runs": (Path("runs.csv"),)}, "paper"),
    ],
)
def test_what_is_ones_own_is_asked_about_a_device_as_it_is(changes: dict[str, Any], preset: str, law: Law) -> None:
    assert study_of(request(None, **changes), law).config.preset == preset


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"flops": 1e10}, "flops: expected a budget in which 6 models of the space fit, got 1e.10; the 6 cheapest need"),
        ({"flops": -1.0}, "flops: expected a positive number"),
        ({"max_params": "1000"}, "next: expected architectures within memory_gb <= 64 and parameters <= 1000, got none"),
        ({"max_params": "big"}, "max_params: expected"),
    ],
)  # fmt: skip
def test_limits_that_nothing_meets_are_a_clear_line(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        execute(request(None, next=6, **changes))


DENSE = "depth,width,n_heads,n_kv_heads,expert_size,n_experts,top_k,tokens,loss\n"


def dense_rows(count: int = 15) -> list[str]:
    """Dense models whose loss falls with their parameters."""
    chance = np.random.default_rng(3)
    found = []
    for i in range(count):
        depth, heads = 4 + 2 * (i % 5), 4 + 2 * (i // 5)
        width = 64 * heads
        size = depth * (4 * width**2 + 3 * width * 4 * width)
        loss = 1.8 + 300.0 * size**-0.3 + 0.002 * chance.normal()
        found.append(f"{depth},{width},{heads},{heads},{4 * width},1,1,1e10,{loss!r}\n")
    return found


@pytest.mark.slow
def test_dense_rows_without_a_form_are_fitted_by_the_form_that_predicts_them(inside: Any, tmp_path: Path) -> None:
    (tmp_path / "dense.csv").write_text(DENSE + "".join(dense_rows()))
    answer = inside("fit", "dense.csv", "--json")
    assert answer.code == 0, answer.err
    assert any(note.startswith("form ") and "rows left out" in note for note in json.loads(answer.out)["data"]["notes"])
    named = inside("fit", "dense.csv", "--form", "hw_codesign")
    assert named.code == 2
    assert "activation_rate: expected values that vary" in named.err


@pytest.mark.slow
def test_a_diverged_row_is_left_out_by_name(inside: Any, tmp_path: Path) -> None:
    far = dense_rows()[3].rpartition(",")[0] + ",9.5\n"
    (tmp_path / "clean.csv").write_text(DENSE + "".join(dense_rows()))
    (tmp_path / "own.csv").write_text(DENSE + "".join([*dense_rows(), far]))
    clean, whole = (json.loads(inside("fit", name, "--json").out) for name in ("clean.csv", "own.csv"))
    assert whole["data"]["rows"] == clean["data"]["rows"] == 15
    assert any(note.startswith("line 17 left out: its loss 9.5 lies") for note in whole["data"]["notes"])
    assert whole["verdict"] == clean["verdict"]


def shaped_rows(path: Path, experts: int = 1, diverged: bool = False) -> list[str]:
    """Made-up trainings of the paper's dense terms, with names; one more of the last design that diverged."""
    generator = np.random.default_rng(3)
    lines = ["name,depth,width,n_heads,n_kv_heads,n_experts,top_k,expert_size,loss"]
    for depth in (6, 8, 12, 16, 24):
        for width in (512, 768, 1024):
            loss = 9.0 / depth**1.6 + 300 / width + 2.4 + 0.002 * generator.normal()
            shape = f"{depth},{width},{width // 64},4,{experts},{min(experts, 2)},{4 * width}"
            lines.append(f"run-{len(lines)},{shape},{loss:.4f}")
    path.write_text("\n".join([*lines, f"blown-up,{shape},7.93"] if diverged else lines))
    return lines


@pytest.mark.slow
@pytest.mark.parametrize("experts", [1, 8])
def test_without_a_form_rows_that_do_not_vary_in_the_activation_rate_choose_one(
    experts: int, inside: Any, tmp_path: Path
) -> None:
    shaped_rows(tmp_path / "own.csv", experts)
    asked = ["fit", "own.csv", "--bootstraps", "0", "--starts", "4"]
    answer = inside(*asked, "--json")
    assert answer.code == 0, answer.err
    content = json.loads(answer.out)
    assert content["form"] == "depth_width"
    assert any(note.startswith("form depth_width: of ") for note in content["data"]["notes"])
    assert json.loads(inside(*asked, "--json").out) == content
    refused = inside(*asked, "--form", "hw_codesign")
    assert refused.code == 2
    assert "activation_rate: expected values that vary" in refused.err


@pytest.mark.slow
def test_a_diverged_row_changes_neither_fit_nor_verdict(inside: Any, tmp_path: Path) -> None:
    found = {}
    for diverged in (False, True):
        shaped_rows(tmp_path / "own.csv", diverged=diverged)
        answer = inside("fit", "own.csv", "--bootstraps", "40", "--starts", "4", "--json")
        assert answer.code == 0, answer.err
        found[diverged] = json.loads(answer.out)
    clean, other = found[False], found[True]
    assert other["verdict"] == clean["verdict"]
    assert other["coefficients"] == clean["coefficients"]
    assert choice(other) == choice(clean), "the form is chosen without the row"
    said = [note for note in other["data"]["notes"] if note.startswith("line 17 (blown-up)")]
    assert len(said) == 1
    assert "left out: its loss 7.93 lies" in said[0]


def choice(content: dict[str, Any]) -> list[str]:
    return [note for note in content["data"]["notes"] if note.startswith("form ")]


@pytest.mark.slow
def test_one_count_of_tokens_gives_no_usable_law_and_a_page_that_says_so(inside: Any, tmp_path: Path) -> None:
    """Six models, of which the largest is a fifth: its error has no standard error, b and e have no interval."""
    sizes = (5e7, 7e7, 1.6e8, 2.1e8, 3.2e8, 4.8e8)
    rows = [f"{n:.0f},4e9,{440 / n**0.34 + 2.4 + 0.004 * (-1) ** i:.4f}" for i, n in enumerate(sizes)]
    (tmp_path / "own.csv").write_text("\n".join(["parameters,tokens,loss", *rows]))
    asked = ["fit", "own.csv", "--form", "chinchilla", "--bootstraps", "20", "--starts", "4"]
    refused = inside(*asked)
    assert refused.code == 2
    assert "--fix" not in refused.err
    answer = inside(*asked, "--fix", "beta=0.28", "--report", "report", "--json")
    assert answer.code == 0, answer.err
    said = json.loads(answer.out)["verdict"]
    assert "Do not rely on its picks yet: too few rows; 2 of 4 coefficients are not determined" in said[0]
    assert any(line.startswith("Coefficients: ") and line.endswith("not determined b, e.") for line in said)
    assert said[1].endswith("Or let --prior evidence say what these rows do not.")
    lines = inside(*asked, "--fix", "beta=0.28").out.splitlines()
    assert {line.split()[0] for line in lines if "  not determined  " in line} == {"b", "e"}
    assert (tmp_path / "report" / "report.html").is_file()
