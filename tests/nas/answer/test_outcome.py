"""What came out of a run, and the columns of the files that hold it."""

import csv
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from nas.answer.answer_document import _change, beside_baselines
from nas.answer.design_words import figure_of
from nas.answer.device_times import in_ms
from nas.answer.first_screen import show
from nas.answer.outcome import Outcome
from nas.answer.outcome_files import summary, write_files
from nas.answer.sentences import certainty, without_values
from nas.errors import AllFailedError
from nas.problem.evaluations import frontier_rows
from nas.problem.picks import PickRule
from nas.search.assembly import Study
from objectives.plugins import documents

Concluded = Callable[..., Outcome]
FRONTIER = [
    "depth",
    "width",
    "head_dim",
    "n_heads",
    "n_kv_heads",
    "gqa",
    "n_experts",
    "top_k",
    "activation_rate",
    "expert_ffn_ratio",
    "expert_size",
    "ffn_ratio",
    "loss",
    "perplexity",
    "prefill_ms",
    "decode_ms",
    "tpot_ms",
    "total_ms",
    "memory_gb",
    "resident_gb",
    "params_total",
    "params_active",
]


def table(path: Path) -> list[dict[str, str]]:
    """Rows of a CSV file."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def files(concluded: Concluded, tmp_path: Path) -> Callable[..., tuple[Outcome, Path]]:
    """The files of an outcome."""

    def write(*arguments: Any, **raw: Any) -> tuple[Outcome, Path]:
        outcome = concluded(*arguments, **raw)
        write_files(tmp_path, outcome)
        return outcome, tmp_path

    return write


def test_the_frontier_file_has_the_products_columns_in_its_order(files: Callable[..., tuple[Outcome, Path]]) -> None:
    outcome, folder = files(80)
    rows = table(folder / "frontier.csv")
    assert list(rows[0]) == FRONTIER
    values = [(float(row["loss"]), float(row["total_ms"])) for row in rows]
    assert values == sorted(values)
    assert values == [tuple(v) for v in outcome.evaluations.values[frontier_rows(outcome.evaluations)].tolist()]
    assert all(row["params_total"].isdigit() for row in rows)


def test_a_users_metric_and_columns_beyond_the_defaults_come_last(
    files: Callable[..., tuple[Outcome, Path]], user_module: Callable[[str], str]
) -> None:
    name = user_module("def fn(a):\n    return a.depth / 3\n") + ":fn"
    _, folder = files(40, objectives=["loss", name], vocabulary=1000, tied=False)
    assert list(table(folder / "frontier.csv")[0]) == [*FRONTIER, name, "tied", "vocabulary"]


def test_the_evaluations_file_holds_every_row_in_order(
    files: Callable[..., tuple[Outcome, Path]], user_module: Callable[[str], str]
) -> None:
    name = (
        user_module("import numpy as np\ndef fn(a):\n    return np.where(a.depth == 8, np.nan, a.depth / 3)\n") + ":fn"
    )
    outcome, folder = files(50, objectives=["loss", name], budgets={"decode_ms": 5})
    rows, found = table(folder / "evaluations.csv"), outcome.evaluations
    assert list(rows[0]) == [
        "index",
        "batch",
        "state",
        "reason",
        *FRONTIER,
        name,
        "violation_memory_gb",
        "violation_decode_ms",
    ]
    assert [int(row["index"]) for row in rows] == list(range(50))
    assert [row["state"] for row in rows] == ["ok" if ok else "failed" for ok in found.ok]
    for i, row in enumerate(rows):
        assert (row["reason"] == "") == (row["state"] == "ok")
        assert row["loss"] == repr(float(found.metrics["loss"][i]))
        assert (row[name] == "") == (row["state"] == "failed")
        assert row["violation_decode_ms"] == repr(float(found.violations[i, 1]))


def test_picks_are_the_lowest_loss_per_question(files: Callable[..., tuple[Outcome, Path]]) -> None:
    outcome, folder = files(160, applications={"fast": {"decode_ms": 5}, "never": {"total_ms": 1e-6}})
    every = {row["question"]: row for row in table(folder / "picks.csv")}
    rows = {question: row for question, row in every.items() if not question.startswith("on the device: ")}
    sides = ("", ", equal memory", ", equal memory, dense", ", twice the memory")
    heads = ("no LM head", "LM head of 151,936")
    assert list(rows) == [
        "your budgets: memory_gb <= 64",
        "fast",
        *(f"Qwen2.5-0.5B, {head}{side}" for head in heads for side in sides),
    ]
    row = PickRule(outcome.study.problem.queries[1].budget).row(outcome.evaluations)
    assert (rows["fast"]["metric"], float(rows["fast"]["limit"])) == ("decode_ms", 5.0)
    assert float(rows["fast"]["loss"]) == outcome.evaluations.metrics["loss"][row]
    assert [rows[q]["vocabulary"] for q in rows] == ["0"] * 6 + ["151936"] * 4
    for name in ("device_prefill_ms", "device_decode_ms", "device_tpot_ms", "device_total_ms"):
        assert all(float(row[name]) > 0 for row in rows.values())


def test_the_first_pick_is_the_best_within_the_studys_own_budgets(files: Callable[..., tuple[Outcome, Path]]) -> None:
    outcome, folder = files(160, budgets={"tpot_ms": 0.4, "resident_gb": 0.5})
    first = table(folder / "picks.csv")[0]
    assert first["question"] == "your budgets: memory_gb <= 64, tpot_ms <= 0.4, resident_gb <= 0.5"
    assert (first["metric"], first["limit"]) == ("", "")
    row = PickRule(None).row(outcome.evaluations)
    assert row is not None
    assert float(first["loss"]) == outcome.evaluations.metrics["loss"][row]
    said = summary(outcome)["picks"][0]
    assert said["budgets"] == {"memory_gb": 64.0, "tpot_ms": 0.4, "resident_gb": 0.5}
    assert said["loss"] == float(first["loss"])


def test_a_run_where_nothing_fits_has_an_empty_picks_file(files: Callable[..., tuple[Outcome, Path]]) -> None:
    outcome, folder = files(20, budgets={"total_ms": 1e-6}, baselines=[])
    assert (folder / "picks.csv").read_text() == "question,metric,limit\n"
    assert [list(pick) for pick in summary(outcome)["picks"]] == [["question", "budgets"]]


def test_the_losses_of_exact_picks_are_said_of_a_search(concluded: Concluded) -> None:
    outcome, whole = concluded(20), concluded(None, algo="exact")
    assert whole.exact_losses == (None,) * len(whole.picks)
    for pick, best in zip(whole.picks, outcome.exact_losses, strict=True):
        assert best == (None if pick.answer is None else pick.answer.metrics["loss"][0])


def test_the_summary_says_what_every_number_is_relative_to(files: Callable[..., tuple[Outcome, Path]]) -> None:
    outcome, folder = files(100)
    said = json.loads((folder / "summary.json").read_text())
    assert said["evaluations"] == {
        "asked": 100,
        "distinct": 100,
        "known": 0,
        "repeats": 0,
        "failed": 0,
        "not_covered": 0,
        "stopped": 0,
        "feasible": 100,
    }
    how = "every one of 162 architectures was evaluated"
    assert said["space"] == {"name": "tiny", "architectures": 162, "covered": 100, "exact_frontier": how}
    assert said["scale"]["bounds_from"] == "exact frontier"
    assert said["scale"]["total_ms"]["scale"] == "log"
    assert set(said["seconds"]) == {"strategy", "objectives", "store"}
    assert 0 <= said["exact"]["gap"] < 1
    assert set(said["exact"]) == {"gap", "share", "found", "exact", "igd_plus", "epsilon"}
    assert said["exact"]["exact"] == len(outcome.exact.frontier) if outcome.exact else False


def test_a_whole_space_has_no_gap(concluded: Concluded) -> None:
    outcome = concluded(162)
    assert outcome.distance is not None
    assert (outcome.distance.gap, outcome.distance.share) == (0.0, 1.0)
    assert outcome.distance.igd_plus == pytest.approx(0, abs=1e-15)


def test_exact_covers_everything_and_measures_no_distance_to_itself(concluded: Concluded) -> None:
    outcome = concluded(None, algo="exact")
    assert (outcome.covered, outcome.exact, outcome.distance) == (162, None, None)
    assert (
        certainty(outcome)[-1]
        == f"Exact: the frontier of all 162 architectures holds {len(outcome.frontier)}; every one of 162 architectures was evaluated."
    )


@pytest.mark.parametrize(("algo", "count"), [("random", 50), ("exact", None)])
def test_nothing_feasible_is_diagnosed_over_the_whole_space(
    algo: str, count: int | None, concluded: Concluded, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = concluded(count, algo=algo, budgets={"total_ms": 0.5})
    assert outcome.diagnosis is not None
    assert outcome.diagnosis_covers_space
    assert summary(outcome)["scale"] is None
    show(outcome, Path("runs/x"))
    said = capsys.readouterr().out
    flat = " ".join(said.split())
    assert "Nothing fits: of all 162 designs none is within memory_gb <= 64 and total_ms <= 0.5." in flat
    assert "Closest misses:" in said
    limit = float(said.split("--budget total_ms=")[1].split()[0])
    opened = concluded(None, algo="exact", budgets={"total_ms": limit})
    assert len(opened.frontier) == 1, "the suggested limit opens a design, and no more than it must"


@pytest.mark.parametrize(
    "body", ["return np.where(a.depth == 8, -5.0, -a.width / 7)", "return np.zeros(len(a))", "return -a.depth * 1e-5"]
)
@pytest.mark.parametrize("log_scale", [False, True])
def test_a_users_metric_may_be_zero_or_negative(
    body: str,
    log_scale: bool,
    files: Callable[..., tuple[Outcome, Path]],
    user_module: Callable[[str], str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    name = user_module(f"import numpy as np\ndef fn(a):\n    {body}\nfn.LOG_SCALE = {log_scale}\n") + ":fn"
    if log_scale and "zeros" in body:
        with pytest.raises(AllFailedError, match="which has no logarithm"):
            files(60, objectives=["loss", name])
        return
    outcome, folder = files(60, objectives=["loss", name])
    show(outcome, folder)
    if not log_scale:
        assert len(outcome.frontier) >= 1
        assert math.isfinite(summary(outcome)["hypervolume"])
    assert "nan" not in capsys.readouterr().out


@pytest.mark.parametrize(
    "objectives",
    [
        ["loss"],
        ["total_ms"],
        ["loss", "total_ms"],
        ["total_ms", "memory_gb"],
        ["perplexity", "decode_ms", "resident_gb"],
    ],
    ids=",".join,
)
def test_every_answer_prints(objectives: list[str], concluded: Concluded, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = concluded(60, objectives=objectives)
    show(outcome, Path("runs/x"), verbose=True)
    said = capsys.readouterr().out
    for part in (
        "your budgets ",
        "embodied AI: decode_ms <= 20",
        "At most as slow as Qwen2.5-0.5B",
        "of the exact frontier's ",
        "Limits:",
        "Files: runs/x/",
        "Next: ",
    ):
        assert part in said, part
    assert np.isfinite(outcome.frontier.values).all()


@pytest.mark.parametrize("vocabulary", [0, 32_000])
def test_the_first_screen_compares_at_the_speed_that_the_study_prices(
    vocabulary: int, concluded: Concluded, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the LM head of the study, or without one as it does; the table holds each."""
    outcome = concluded(162, vocabulary=vocabulary, budgets={"total_ms": 60})
    asked = {p.question.vocabulary: p for p in outcome.picks if p.question.baseline}
    query = asked.get(vocabulary or None, asked.get(vocabulary))
    assert query is not None
    assert query.question.budget is not None
    show(outcome, Path("runs/x"))
    above = f"times as fast as Qwen2.5-0.5B ({in_ms(query.question.budget.limit)} ms, above the limit)"
    assert above in " ".join(capsys.readouterr().out.split())
    (table,) = beside_baselines(outcome)
    times = [float(row[table.header.index("total_ms")]) for row in table.rows if row[table.header.index("total_ms")]]
    assert times
    assert max(times) <= 60.0


@pytest.mark.parametrize(
    ("metric", "value", "limit", "said"),
    [
        ("total_ms", 486.9, 500.0, "total 486.9 of 500 ms"),
        ("memory_share", 0.41, 1.0, "memory_share 0.41 of 1"),
        ("memory_share", 1.0, 1.0, "memory_share 1 of 1"),
        ("tokens_per_second", 20.0, 20.0, "tokens_per_second 20 of 20 tokens/s"),
    ],
)
def test_a_figure_beside_its_limit_has_one_unit(
    metric: str, value: float, limit: float, said: str, studied: Callable[..., Study]
) -> None:
    assert figure_of(studied().problem, metric, value, limit) == said


def test_a_search_that_evaluated_nothing_concludes(
    concluded: Concluded, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = concluded(0)
    write_files(tmp_path, outcome)
    show(outcome, tmp_path, verbose=True)
    assert "0 distinct designs evaluated" in capsys.readouterr().out


def test_a_model_beyond_floating_point_has_an_infinite_perplexity(concluded: Concluded) -> None:
    absurd = yaml.safe_load(documents("objectives.laws")["hw_codesign"].read_text())
    absurd["coefficients"] |= {"kappa_l": 10_000}
    one = {"name": "one layer", "depth": 1, "width": 768, "n_heads": 12, "n_kv_heads": 12, "expert_size": 96}
    outcome = concluded(20, law=absurd, baselines=[one])
    assert "perplexity inf" in beside_baselines(outcome)[0].title
    assert _change(2_000.0, 1.0) == "+inf %"


def test_designs_that_the_law_does_not_cover_are_counted_and_have_not_failed(
    concluded: Concluded, tmp_path: Path
) -> None:
    outcome = concluded(60, law="chinchilla_epoch", baselines=[])
    experts = int((outcome.study.problem.architectures(outcome.evaluations.genotypes).n_experts > 1).sum())
    assert without_values(outcome) == [f"Law chinchilla_epoch does not cover {experts} of these designs."]
    counts = summary(outcome)["evaluations"]
    assert (counts["failed"], counts["not_covered"]) == (0, experts)
