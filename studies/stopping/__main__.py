"""Does a rule that stops by the expected drop of regret spend training FLOP better than a fixed number of rounds?

python -m studies.stopping [--truths 16] [--rounds 8] [--batch 8] [--sd 0.03] [--wrong] [--out FILE.csv]

Each truth is a loss law with coefficients of its own; trainings are simulated from it with noise. The loop of
docs/fit.md runs to its last round: fit, plan, train, fit again. What a rule would have done follows from the rounds.
"""

import argparse
import csv
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np

from nas.search.assembly import assemble
from nas.study.catalogue import load_law
from objectives.loss_law.form import named_form
from objectives.loss_law.law import Law
from plas_fit.fitting.design import assumed_by, known_by
from plas_fit.fitting.estimate import Method, fitted
from plas_fit.fitting.intervals import intervals
from plas_fit.fitting.law_file import law_of
from plas_fit.fitting.trained_models import Table
from plas_fit.frontier_check import Judged, under_draws
from plas_fit.next_designs import Asked, Trainings, designs
from search_spaces.architectures import Architectures
from search_spaces.arrays import FloatArray
from search_spaces.columns import SHAPE
from studies.stopping.worth import worth

FORM = "hw_codesign_log_kv"
SPREAD = 0.15  # of the logarithms of a truth's coefficients about the paper's
WRONG = {"kappa": 400.0, "a": 0.32, "kappa_rho": 20.0, "b": 0.1, "c": 0.2, "l_inf": 1.6}  # of active_power
FIRST, TOKENS = 20, 10e9
LIMITS = (1e-5, 5e-6, 2e-6, 1e-6, 5e-7, 2e-7)  # nats per 1e18 training FLOP


@dataclass(frozen=True)
class Round:
    """Where one loop stands before a round: FLOP spent, regret of the picks under the truth, and what was expected."""

    truth: int
    round: int
    rows: int
    flops: float
    regret: float
    expected_now: float
    expected_after: float
    rate: float


def main() -> None:
    """Simulate, write the rounds, print the comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--truths", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--sd", type=float, default=0.03)
    parser.add_argument("--wrong", action="store_true", help="truths of another form than the one that is fitted")
    parser.add_argument("--out", type=Path, default=None)
    asked = parser.parse_args()
    rounds: list[Round] = []
    for truth in range(asked.truths):
        rounds += looped(truth, asked.rounds, asked.batch, asked.sd, wrong=asked.wrong)
        print(f"truth {truth + 1} of {asked.truths}", file=sys.stderr, flush=True)
    if asked.out is not None:
        written(asked.out, rounds)
    print("\n".join(compared(rounds)))


def truth_of(number: int, *, wrong: bool) -> Law:
    """A law that nobody knows: the paper's, or one in active parameters, with every coefficient off."""
    generator = np.random.default_rng(1000 + number)
    paper = load_law("hw_codesign")
    form = "active_power" if wrong else "hw_codesign"
    known = WRONG if wrong else paper.coefficients
    moved = {name: value * float(np.exp(SPREAD * generator.normal())) for name, value in known.items()}
    return Law.model_validate({"name": "truth", "form": form, "coefficients": moved, "tokens": TOKENS})


def looped(number: int, rounds: int, batch: int, sd: float, *, wrong: bool) -> list[Round]:
    """One loop to its last round."""
    truth, generator = truth_of(number, wrong=wrong), np.random.default_rng(number)
    study, given = assemble({"algo": "random", "baselines": []}, {}), load_law("hw_codesign")
    fixed = {"alpha_m": given.coefficients["alpha_m"]}
    first = designs(Asked(FIRST, "coefficients", None, number), study, given, lambda c: assumed_by(given, fixed, c))
    spent, table = 0.0, trained([], first.trainings, truth, sd, generator)
    spent += float(first.trainings.flops.sum())
    found = []
    for each in range(rounds + 1):
        fit = fitted(FORM, named_form(FORM), joined(table), Method(starts=4, seed=number))
        known = intervals(fit, 200, np.random.default_rng(number))
        law = law_of(fit, known, "law", FORM, TOKENS)
        under = assemble({"algo": "random", "baselines": [], "law": law.mapping()}, {})
        proposal = designs(
            Asked(batch, "coefficients", None, 100 * number + each), under, law, lambda _, f=fit: known_by(f)
        )
        judged = under_draws(under, law)
        assert isinstance(judged, Judged)
        told = worth(judged, proposal.trainings, None, number)
        found.append(
            Round(
                *(number, each, sum(map(len, table)), spent, true_regret(judged, truth)),
                *(told["regret_now"], told["regret_after"], told["drop_per_1e18_flop"]),
            )
        )
        table = trained(table, proposal.trainings, truth, sd, generator)
        spent += float(proposal.trainings.flops.sum())
    return found


def trained(
    before: Sequence[Table], trainings: Trainings, truth: Law, sd: float, generator: np.random.Generator
) -> list[Table]:
    """The tables so far and one more, of simulated trainings."""
    a = trainings.architectures
    loss = truth.loss(a) + generator.normal(0.0, sd, len(a))
    numbers = {name: np.asarray(getattr(a, name), dtype=np.float64) for name in SHAPE}
    return [*before, Table({**numbers, "loss": loss}, np.arange(len(a)))]


def joined(tables: Sequence[Table]) -> Table:
    """All rows."""
    numbers = {name: np.concatenate([t.numbers[name] for t in tables]) for name in tables[0].numbers}
    return Table(numbers, np.arange(sum(map(len, tables))))


def true_regret(judged: Judged, truth: Law) -> float:
    """What the picks of a law lose under the truth, nats: the mean over the study's questions."""
    rows, found = judged.drawn.rows, judged.found
    architectures: Architectures = judged.study.problem.architectures(found.genotypes[rows])
    true, told = truth.loss(architectures), found.metrics["loss"][rows]
    lost = []
    for question in judged.study.problem.queries:
        limit = question.budget
        within = np.ones(len(rows), dtype=bool) if limit is None else found.metrics[limit.metric][rows] <= limit.limit
        lost.append(float(true[within][np.argmin(told[within])] - true[within].min()))
    return float(np.mean(lost))


def written(path: Path, rounds: Sequence[Round]) -> None:
    """Every round as a row."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Round)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(each) for each in rounds)


def compared(rounds: Sequence[Round]) -> list[str]:
    """The fixed schedules, the rule at several limits, and how well regret was foretold."""
    last = max(each.round for each in rounds)
    loops = [sorted((e for e in rounds if e.truth == t), key=lambda e: e.round) for t in {e.truth for e in rounds}]
    flops = np.array([[each.flops for each in loop] for loop in loops])
    regret = np.array([[each.regret for each in loop] for loop in loops])
    rate = np.array([[each.rate for each in loop] for loop in loops])
    lines = [
        "| schedule | rounds | training FLOP | regret, nats | a fixed schedule of these FLOP |",
        "|---|---|---|---|---|",
    ]
    lines += [f"| {k} rounds | {k} | {flops[:, k].mean():.3g} | {_mean(regret[:, k])} | |" for k in range(last + 1)]
    own = np.arange(len(loops))
    for limit in LIMITS:
        stop = np.where((rate < limit).any(axis=1), (rate < limit).argmax(axis=1), last)
        spent, lost = flops[own, stop], regret[own, stop]
        fixed = np.array([np.interp(spent.mean(), flops.mean(axis=0), row) for row in regret])
        lines.append(
            f"| until {limit:g} nats per 1e18 FLOP | {stop.mean():.1f} | {spent.mean():.3g} | {_mean(lost)} | "
            f"{_mean(fixed)}, difference {_mean(lost - fixed)} |"
        )
    now = np.array([[each.expected_now for each in loop] for loop in loops])
    after = np.array([[each.expected_after for each in loop] for loop in loops])
    lines += ["", f"regret expected {_mean(now.ravel())}, true {_mean(regret.ravel())}"]
    lines.append(f"after the next round: expected {_mean(after[:, :-1].ravel())}, true {_mean(regret[:, 1:].ravel())}")
    with np.errstate(divide="ignore"):
        lines.append(
            f"correlation of expected and true regret over loops, round by round: {_correlations(now, regret)}"
        )
    return lines


def _mean(values: FloatArray) -> str:
    return f"{values.mean():.5f} ± {values.std(ddof=1) / np.sqrt(len(values)):.5f}"


def _correlations(a: FloatArray, b: FloatArray) -> str:
    found = [np.corrcoef(a[:, k], b[:, k])[0, 1] for k in range(a.shape[1])]
    return ", ".join(f"{value:.2f}" for value in found)


if __name__ == "__main__":
    main()
