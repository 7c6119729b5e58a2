"""Do the trainings that `fit --prior --next` proposes beat random ones? The picks' true regret after them, truths drawn from the prior.

    python -m studies.own_rows.next [--prior evidence] [--trainings 4,8] [--truths 60]

A truth is coordinates drawn from the prior's normal; trainings lose what it says with the prior's residual sd as noise. The law after them picks in the paper's
study; regret is the pick's true loss over the best within each budget, nats, mean over budgets and truths. Random trainings are of the same candidates.
"""

import argparse
from dataclasses import dataclass, replace

import numpy as np

from nas.search.assembly import assemble
from nas.study.catalogue import load_law
from plas_fit.evidence.joint_form import Quantities, trainings
from plas_fit.evidence.posterior import Belief, posterior, prior_of
from plas_fit.fitting.design import table_of
from plas_fit.frontier_check import Judged, picks_asked, under_draws
from plas_fit.next_designs import (
    PRIOR_GOALS,
    Asked,
    Trainings,
    candidates_of,
    counts_of,
    on_counts,
    proposed,
    quantities,
)
from search_spaces.arrays import BoolArray


@dataclass(frozen=True, eq=False)
class Simulated:
    """A prior, every feasible design of the study, and which of them are within each of its picks' budgets."""

    prior: Belief
    designs: Quantities
    within: list[BoolArray]

    def truth(self, generator: np.random.Generator) -> Belief:
        """A laboratory drawn from the prior."""
        root = np.linalg.cholesky(self.prior.covariance)
        return replace(self.prior, mean=self.prior.mean + root @ generator.normal(size=len(root)))

    def regret(self, said: Belief, truth: Belief) -> float:
        """What the picks of a belief lose under a truth, nats."""
        losses, true = said.losses(self.designs), truth.losses(self.designs)
        return float(np.mean([true[rows][losses[rows].argmin()] - true[rows].min() for rows in self.within]))

    def after(self, trained: Trainings, truth: Belief, generator: np.random.Generator) -> Belief:
        """The prior with the losses of trainings under a truth."""
        assert trained.tokens is not None
        losses = truth.losses(quantities(trained.architectures, trained.tokens))
        losses = losses + self.prior.scale * generator.normal(size=len(trained))
        table = table_of(trained.architectures, trained.tokens)
        table = replace(table, numbers={**table.numbers, "loss": losses})
        return posterior(self.prior, trainings("", "", table, np.zeros(len(table)))).belief


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prior", default="evidence")
    parser.add_argument("--trainings", default="4,8")
    parser.add_argument("--truths", type=int, default=60)
    given = parser.parse_args()
    law = load_law(given.prior)
    study = assemble({"law": law.mapping(), "baselines": []}, {})
    judged = under_draws(study, law)
    assert isinstance(judged, Judged)
    feasible = study.problem.architectures(judged.found.genotypes[judged.drawn.rows])
    simulated = Simulated(prior_of(law), quantities(feasible, law.stated_tokens), list(picks_asked(judged).values()))
    every = on_counts(candidates_of(study.problem.space, np.random.default_rng(0)), counts_of(law, None))
    print(
        "| trainings | none | random | regret | cost | FLOP: random | regret | cost |\n|---|---|---|---|---|---|---|---|"
    )
    for n in map(int, given.trainings.split(",")):
        chosen = {
            goal: proposed(Asked(n, goal, None, 0), study, law, simulated.prior, judged, None).trainings
            for goal in PRIOR_GOALS
        }
        rows = []
        for seed in range(given.truths):
            generator = np.random.default_rng(seed)
            truth = simulated.truth(generator)
            sets = (every[generator.choice(len(every), n, replace=False)], *chosen.values())
            after = [simulated.regret(simulated.after(each, truth, generator), truth) for each in sets]
            rows.append([simulated.regret(simulated.prior, truth), *after])
        mean, error = np.mean(rows, axis=0), np.std(rows, axis=0, ddof=1) / np.sqrt(given.truths)
        regrets = " | ".join(f"{m:.4f} ± {e:.4f}" for m, e in zip(mean, error, strict=True))
        flops = (every.flops.mean() * n, *(each.flops.sum() for each in chosen.values()))
        print(f"| {n} | {regrets} | {' | '.join(f'{each:.2g}' for each in flops)} |", flush=True)


if __name__ == "__main__":
    main()
