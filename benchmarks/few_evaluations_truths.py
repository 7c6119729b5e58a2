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
from scipy.optimize import brentq
from scipy.stats import spearmanr

from nas.problem.objective import Objective
from nas.problem.problem import Problem
from objectives.device import Calibration
from objectives.loss_law.law import Law
from search_spaces.architectures import Architectures
from search_spaces.arrays import FloatArray

KINDS = ("mild", "strong", "wrong", "useless")
SPEARMAN = {"wrong": 0.5, "useless": 0.0}
NOISE_NATS, NOISE_SHARE = 0.005, 0.03
COSINES = 64


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
    law, scenario = problem.scenario.law, problem.scenario
    prior_loss, prior_ms = law.loss(every), problem.assess(every)["total_ms"]
    calibration = Calibration(
        compute_efficiency=draw.uniform(0.35, 0.7),
        bandwidth_efficiency=draw.uniform(0.6, 0.9),
        overhead=draw.uniform(2e-3, 1e-2),
    )
    slow = replace(problem, scenario=replace(scenario, calibration=calibration)).assess(every)["total_ms"]
    slow = slow + every.depth * (every.n_experts > 1) * draw.uniform(0, 0.2) * (1 + scenario.output_tokens)
    log_ms = np.log(slow * np.where(every.width % 256, 1 + draw.uniform(0, 0.1), 1.0))
    if kind == "mild":
        loss = jittered(law, 0.12, draw).loss(every)
    elif kind == "strong":
        loss = jittered(law, 0.3, draw, alpha_rho=draw.uniform(0.2, 1.2)).loss(every) + aspect(every, 0.3, draw)
    elif kind == "wrong":
        loss = as_wide(other_form(every, draw), prior_loss)
        log_ms = log_ms + np.where(every.expert_size < 1024, np.log(draw.uniform(1.0, 1.5)), 0.0)
    else:
        loss, log_ms = np.zeros(len(every)), np.zeros(len(every))
    if kind in SPEARMAN:
        loss = ranked(loss, prior_loss, field(every, draw), SPEARMAN[kind])
        log_ms = ranked(log_ms, np.log(prior_ms), field(every, draw), SPEARMAN[kind])
    noise = draw.standard_normal((2, len(every)))
    measured = np.exp(log_ms + NOISE_SHARE * noise[1])
    return Truth(loss, np.exp(log_ms), loss + NOISE_NATS * noise[0], measured)


def jittered(law: Law, sd: float, draw: np.random.Generator, **fixed: float) -> Law:
    """A law whose coefficients are multiplied by exp(sd · z); some are given."""
    drawn = {name: value * np.exp(sd * draw.standard_normal()) for name, value in law.coefficients.items()}
    return law.model_copy(update={"coefficients": {**drawn, "l_inf": law.coefficients["l_inf"], **fixed}})


def aspect(every: Architectures, most: float, draw: np.random.Generator) -> FloatArray:
    """c · ln²((d/l)/a), nats: c up to `most`, a from 40 to 120; divided by 10, as logs reach 2."""
    distance = np.log(every.width / every.depth) - np.log(draw.uniform(40, 120))
    return draw.uniform(0, most) * distance**2 / 10


def other_form(every: Architectures, draw: np.random.Generator) -> FloatArray:
    """N_a^-a + w N^-b + aspect + w d_m^-c, in units of their own."""
    weights = every.depth * every.width * (2.0 * every.query_dim + 2.0 * every.kv_dim)
    expert = 3.0 * every.depth * every.width * every.expert_size
    active, total = weights + expert * every.top_k, weights + expert * every.n_experts
    parts = (
        (active / 1e8) ** -draw.uniform(0.2, 0.6),
        draw.uniform(0.2, 1.0) * (total / 1e8) ** -draw.uniform(0.1, 0.4),
        draw.uniform(0.0, 0.5) * (every.kv_dim / 64.0) ** -draw.uniform(0.1, 0.5),
    )
    return sum(parts, aspect(every, 1.0, draw))


def as_wide(values: FloatArray, like: FloatArray) -> FloatArray:
    """Values with the mean and standard deviation of others."""
    return like.mean() + like.std() * (values - values.mean()) / values.std()


def field(every: Architectures, draw: np.random.Generator) -> FloatArray:
    """A random smooth function of the log variables, mean 0 and standard deviation 1."""
    columns = (every.depth, every.width, every.n_experts, every.top_k, every.expert_ffn_ratio, every.n_kv_heads)
    logs = np.stack([np.log(column) for column in columns], axis=1)
    logs = 2.0 * (logs - logs.min(axis=0)) / np.ptp(logs, axis=0) - 1.0
    frequencies = draw.standard_normal((logs.shape[1], COSINES)) / draw.uniform(0.8, 2.0)
    found = np.cos(logs @ frequencies + draw.uniform(0, 2 * np.pi, COSINES)).sum(axis=1)
    return (found - found.mean()) / found.std()


def ranked(values: FloatArray, prior: FloatArray, rough: FloatArray, target: float) -> FloatArray:
    """Values with as much of the field, less of the prior, that the prior ranks them at a Spearman correlation.

    Where values follow the prior, the field is added; of a field alone what follows the prior is taken out. What is
    added is itself free of the prior's ranks, so that the target is always reached.
    """
    standard = (prior - prior.mean()) / prior.std()
    free = rough - standard * brentq(lambda c: spearmanr(prior, rough - c * standard).statistic, -20, 20)
    if not values.any():
        return prior.mean() + prior.std() * free
    sized = free * values.std()
    if spearmanr(prior, values).statistic <= target:  # another form that ranks worse by itself
        return values
    return values + sized * brentq(lambda c: spearmanr(prior, values + c * sized).statistic - target, 0, 1e3)


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
