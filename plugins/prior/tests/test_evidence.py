"""prior_guided: several laws, answers that are waited for, and what a run leaves of what it learned."""

import csv
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from plas_prior.prior_guided import Parameters, PriorGuided, build
from test_prior_guided import MEASURED, distorted, every, own, started, with_own

from nas.commands import run as running
from nas.commands.report import draw, report
from nas.commands.requests import ReportRequest
from nas.errors import UsageError
from nas.files import yaml_source
from nas.problem.evaluations import Evaluations
from nas.problem.problem import Problem
from nas.search.strategy import StrategyContext
from nas.search.worker_pool import WorkerPool
from nas.study.catalogue import load_law
from objectives.loss_law.law import Law

Made = Callable[..., Problem]


def error(strategy: PriorGuided, problem: Problem, told: Evaluations) -> float:
    """Root mean square error of the first objective over the space."""
    truth = problem.evaluate(every(problem)).values[:, 0]
    expected = strategy.learned(told).guess(strategy.candidates.reference).values[:, 0]
    return float(np.sqrt(np.nanmean(np.square(expected - truth))))


def rival(law: Law, alpha: float) -> Law:
    """Another law that says more or less of depth."""
    return law.model_copy(update={"name": "rival", "coefficients": law.coefficients | {"alpha_l": alpha}})


def under(problem: Problem, laws: tuple[Law, ...]) -> PriorGuided:
    none = problem.space.genotypes(np.zeros(0, dtype=np.int64))
    return build(StrategyContext(problem, 0, none, None, rivals=laws), Parameters())


def test_several_laws_disagree_where_nothing_is_told_and_the_right_one_is_found(bare: Made) -> None:
    problem = bare()
    law = problem.scenario.law
    other = law.model_copy(
        update={"name": "rival", "coefficients": law.coefficients | {"alpha_l": 0.4, "alpha_rho": 0.3}}
    )
    truth = own("loss", "loss", lambda a: 0.2 + 0.9 * other.loss(a))
    study = with_own(problem, truth, kept=("total_ms",))
    told = study.evaluate(study.space.sample(14, np.random.default_rng(0)))
    one, two = under(study, ()), under(study, (other,))
    assert error(two, study, told) < 0.7 * error(one, study, told)
    lessons = two.lessons(two.told if len(two.told) else told)
    assert lessons is not None
    assert "of 2 laws rival comes closest" in lessons.said[0]
    assert set(lessons.figures["own:loss"]["priors_alone_rmse"]) == {"hw_codesign", "rival"}


def test_the_disagreement_of_laws_is_uncertainty(bare: Made) -> None:
    problem = bare()
    study = with_own(problem, own("loss", "loss", lambda a: problem.assess(a)["loss"] + 0.05 * np.sin(a.width)))
    law = problem.scenario.law
    told = study.evaluate(study.space.sample(10, np.random.default_rng(1)))
    spread = []
    for laws in ((rival(law, law.coefficients["alpha_l"]),), (rival(law, -0.5),)):
        strategy = under(study, laws)
        corrected = strategy.learned(told)
        reference = strategy.candidates.reference
        spread.append(corrected.models["own:loss"].sd(reference, corrected.nearness(reference, corrected.told)).mean())
    assert spread[1] > spread[0]


def test_first_designs_are_of_every_law(bare: Made) -> None:
    problem = bare(space="paper")
    study = with_own(problem, own("loss", "loss", lambda a: problem.assess(a)["loss"]), kept=("total_ms",))
    other = load_law("routed")
    first = [set(study.space.keys(under(study, laws).ask(12)).tolist()) for laws in ((), (other,))]
    assert len(first[1]) == 12
    assert first[0] != first[1]


def test_laws_without_a_loss_to_learn_are_refused(bare: Made) -> None:
    problem = bare()
    study = with_own(problem, own("slow", "total_ms", lambda a: 1.0 * a.depth, log_scale=True), kept=("loss",))
    with pytest.raises(UsageError, match="whose PRIOR is loss"):
        under(study, (load_law("joint_moe"),))


@pytest.mark.slow
def test_answers_may_be_waited_for_and_come_in_any_order(bare: Made) -> None:
    problem = with_own(bare(), *distorted(bare()))
    strategy, asked = started(problem), list[int]()
    waiting: list[int] = []
    draw = np.random.default_rng(0)
    while len(asked) < 60:
        new = problem.space.keys(strategy.ask(2)).tolist()
        assert not set(new) & set(asked)
        asked, waiting = asked + new, waiting + new
        told = [waiting.pop(draw.integers(len(waiting))) for _ in range(min(2, len(waiting)))]
        strategy.tell(problem.evaluate(problem.space.genotypes(np.array(told))))
    assert sorted(strategy.pending.tolist()) == sorted(waiting)
    assert len(asked) - 12 <= 2 * 30


def test_further_axes_are_seen(bare: Made) -> None:
    problem = bare(law="chinchilla_epoch", objectives=["loss", "total_ms"], tokens=[2e9, 2e10])
    study = with_own(problem, own("loss", "", lambda a: 1.0 / np.log(a.tokens) + 0.01 * np.log(a.depth)))
    strategy = started(study)
    told = study.evaluate(study.space.sample(30, np.random.default_rng(0)))
    truth = study.evaluate(every(study)).values[:, 0]
    assert error(strategy, study, told) < 0.1 * np.nanstd(truth)


# What a run leaves


@pytest.fixture
def run(
    tiny: dict[str, Any], inside: Callable[..., Any], user_module: Callable[[str], str], tmp_path: Path
) -> Callable[..., tuple[str, Path, str]]:
    """A run of a measured latency over the tiny space: what it printed, its folder, the metric's name."""

    def made(*more: Any) -> tuple[str, Path, str]:
        (tmp_path / "study.yaml").write_text(yaml_source.dump({"space": tiny, "name": "tiny", "baselines": []}))
        name = f"{user_module(MEASURED)}:slow"
        line = ("run", "--config", "study.yaml", "--algo", "prior_guided", "--objectives", f"loss,{name}")
        found = inside(*line, "--evaluations", 40, "--out", "run", *more)
        assert found.code == 0, found.err
        return found.out, tmp_path / "run", name

    return made


@pytest.mark.slow
def test_a_run_leaves_what_it_learned_as_tables_and_page(
    run: Callable[..., tuple[str, Path, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "draw", draw)
    _, folder, name = run("--preset", "paper", "--budget", "total_ms=20", "--verbose")
    left_out = pd.read_csv(folder / "learned.csv")
    assert len(left_out) == 40
    learned = json.loads((folder / "summary.json").read_text())["learned"][name]
    rmse = np.sqrt(np.square(np.log(left_out.value / left_out.left_out)).mean())
    assert rmse == pytest.approx(learned["left_out_rmse"], rel=1e-6)
    page = (folder / "report.html").read_text()
    assert "What was learned" in page
    assert "one is predicted to" in page
    (folder / "report.html").unlink()
    report(ReportRequest(folder, None, quiet=True))
    assert (folder / "report.html").read_text() == page


def test_several_laws_are_asked_on_the_command_line(
    tiny: dict[str, Any], inside: Callable[..., Any], user_module: Callable[[str], str], tmp_path: Path
) -> None:
    (tmp_path / "study.yaml").write_text(yaml_source.dump({"space": tiny, "name": "tiny", "baselines": []}))
    name = user_module("def loss(a):\n    return 2.0 + 3.0 / a.depth ** 0.5\nloss.PRIOR = 'loss'\n")
    line = ("run", "--config", "study.yaml", "--objectives", f"{name}:loss,total_ms", "--set", "laws=joint_moe")
    found = inside(*line, "--algo", "prior_guided", "--evaluations", 20, "--verbose", "--out", "run")
    assert found.code == 0
    assert "of 2 laws " in found.out
    assert inside(*line, "--algo", "random", "--out", "other").code == 2


STEPPED = """\
def loss(architectures, *, fidelity):
    return 1000 / (architectures.depth * architectures.width) + 1 / fidelity


loss.FIDELITIES = (1, 3, 9)
loss.KEEP = 0.4
"""


def test_a_run_with_steps_is_the_same_on_any_workers_and_resumed(
    inside: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped after 17 of 27 evaluations, the first two batches, and gone on; it says what steps leave it to learn from."""
    monkeypatch.setattr(
        "nas.search.cluster.WorkerPool", lambda n, timeout_s: WorkerPool(n, timeout_s, make=ThreadPoolExecutor)
    )
    (tmp_path / "mine.py").write_text(STEPPED)

    def started(evaluations: int, workers: int, out: str) -> Any:
        line = ("run", "--objectives", "mine:loss,total_ms", "--set", "baselines=[]", "--no-plots", "--out", out)
        found = inside(*line, "--algo", "prior_guided", "--evaluations", evaluations, "--workers", workers)
        assert found.code == 0, found
        return found

    found = started(27, 2, "two")
    assert "prior_guided learns from values of mine:loss at the full fidelity alone" in " ".join(
        f"{found.out} {found.err}".split()
    )
    started(27, 1, "one")
    started(17, 2, "resumed")
    assert inside("run", "--resume", "resumed", "--evaluations", 27, "--no-plots").code == 0
    for name in ("evaluations.csv", "frontier.csv", "steps.csv", "corrected.csv", "learned.csv"):
        expected = (tmp_path / "two" / name).read_bytes()
        assert (tmp_path / "one" / name).read_bytes() == expected
        assert (tmp_path / "resumed" / name).read_bytes() == expected
    with (tmp_path / "two" / "evaluations.csv").open(newline="", encoding="utf-8") as file:
        reasons = [row["reason"] for row in csv.DictReader(file)]
    assert 10 < sum(reason.startswith("stopped: ") for reason in reasons) < 27
