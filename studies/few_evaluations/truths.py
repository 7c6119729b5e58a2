"""What the benchmark of few evaluations takes for the truth: the analytic model, distorted by draws.

The rules were fixed before the first search. Per seed, over the paper's space on a Jetson AGX Orin:

- latency: efficiencies of compute .35 to .7 and of bandwidth .6 to .9, 2 to 10 µs per operator, up to 0.2 ms more per pass for a layer with
  experts, up to 10 % more where the width is no multiple of 256;
- loss, `mild`: every coefficient and exponent of the law times exp(.12 z); `strong`: exp(.3 z), the exponent of ρ
  from .2 to 1.2, and up to .3 nats per squared log of the aspect ratio's distance from its best;
- `wrong`: loss of another form, powers of active and of all parameters, an aspect term, a power of d_m, as wide as the law's;
  experts narrower than 1,024 take up to 1.5 times as long; then both get a random smooth field of such a
  size that the analytic model ranks at Spearman 0.5;
- `useless`: a random smooth field alone, made to rank at Spearman 0.

A field is a sum of 64 random cosines of the six log variables, each from -1 to 1, with a length scale of .8 to 2.
One measurement per design: 0.005 nats and 3 % of the latency are its noise (standard deviations).
"""

from dataclasses import dataclass, replace

import numpy as np
from plas_bench.smooth import Field, as_wide, aspect, calibrated, jittered, other_form, ranked

from nas.problem.objective import Objective
from nas.problem.problem import Problem
from search_spaces.architectures import Architectures
from search_spaces.arrays import FloatArray

KINDS = ("mild", "strong", "wrong", "useless")
SPEARMAN = {"wrong": 0.5, "useless": 0.0}
NOISE_NATS, NOISE_SHARE = 0.005, 0.03


@dataclass(frozen=True, eq=False)
class Truth:
    """Loss and total latency of every architecture, in the order of keys, as they are and as measured once, (n,)."""

    loss: FloatArray
    total_ms: FloatArray
    measured_loss: FloatArray
    measured_ms: FloatArray


def truth_of(kind: str, seed: int, problem: Problem) -> Truth:
    """The truth of a kind and a seed over the whole space."""
    draw = np.random.default_rng([seed, KINDS.index(kind)])
    every = problem.architectures(problem.space.genotypes(np.arange(problem.space.size)))
    law = problem.scenario.law
    prior_loss, prior_ms = law.loss(every), problem.assess(every)["total_ms"]
    log_ms = calibrated(problem, draw)(every)
    if kind == "mild":
        loss = jittered(law, 0.12, draw).loss(every)
    elif kind == "strong":
        loss = jittered(law, 0.3, draw, alpha_rho=draw.uniform(0.2, 1.2)).loss(every) + aspect(0.3, draw)(every)
    elif kind == "wrong":
        other = other_form(draw)(every)
        loss = as_wide(other, prior_loss)(other)
        log_ms = log_ms + np.where(every.expert_size < 1024, np.log(draw.uniform(1.0, 1.5)), 0.0)
    else:
        loss, log_ms = np.zeros(len(every)), np.zeros(len(every))
    if kind in SPEARMAN:
        loss = at_rank(loss, prior_loss, Field(every, draw), SPEARMAN[kind])
        log_ms = at_rank(log_ms, np.log(prior_ms), Field(every, draw), SPEARMAN[kind])
    noise = draw.standard_normal((2, len(every)))
    measured = np.exp(log_ms + NOISE_SHARE * noise[1])
    return Truth(loss, np.exp(log_ms), loss + NOISE_NATS * noise[0], measured)


def at_rank(values: FloatArray, prior: FloatArray, field: Field, target: float) -> FloatArray:
    """Values with as much of a field, less of the prior, that the prior ranks them at a Spearman correlation."""
    rough = (field.over - field.mean) / field.sd
    return ranked(values, prior, rough, target)(values, prior, rough)


def expensive(problem: Problem, truth: Truth) -> Problem:
    """The study with measured loss and latency in the place of the analytic ones, which are their priors."""

    def looked_up(column: FloatArray, name: str, *, log_scale: bool) -> Objective:
        def function(architectures: Architectures) -> FloatArray:
            return column[problem.space.find(architectures)]

        return Objective(f"measured:{name}", "ms" if log_scale else "nats", log_scale, function, prior=name)

    own = {
        "loss": looked_up(truth.measured_loss, "loss", log_scale=False),
        "total_ms": looked_up(truth.measured_ms, "total_ms", log_scale=True),
    }
    objectives = tuple(own.get(objective.name, objective) for objective in problem.objectives)
    budgets = tuple(replace(b, metric=own[b.metric].name) if b.metric in own else b for b in problem.budgets)
    return replace(problem, objectives=objectives, budgets=budgets, functions=tuple(own.values()))
