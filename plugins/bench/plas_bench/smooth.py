"""Smooth distortions of the analytic model: another profile, jittered laws, another form of loss, random fields, a wanted rank correlation."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import brentq
from scipy.stats import spearmanr

from nas.problem.problem import Problem
from objectives.device import Calibration
from objectives.loss_law.law import Law
from search_spaces.architectures import Architectures
from search_spaces.arrays import FloatArray

Part = Callable[[Architectures], FloatArray]  # what is true of designs, or adds to it, on the metric's own scale, (n,)
COSINES = 64
LENGTHS = (0.8, 2.0)  # of a smooth field, in log variables from -1 to 1
SHAPE = ("depth", "width", "n_experts", "top_k", "expert_ffn_ratio", "n_kv_heads")


def calibrated(problem: Problem, draw: np.random.Generator) -> Part:
    """Logarithm of the total latency, ms, of other efficiencies and overheads, more of these for a layer with experts.

    Efficiencies of compute .35 to .7 and of bandwidth .6 to .9, 2 to 10 µs per operator, up to 0.2 ms more per pass for a layer
    with experts, up to 10 % more where the width is no multiple of 256.
    """
    calibration = Calibration(
        compute_efficiency=draw.uniform(0.35, 0.7),
        bandwidth_efficiency=draw.uniform(0.6, 0.9),
        overhead=draw.uniform(2e-3, 1e-2),
    )
    slow = replace(problem, scenario=replace(problem.scenario, calibration=calibration))
    routed, misaligned = draw.uniform(0, 0.2), 1 + draw.uniform(0, 0.1)
    passes = 1 + problem.scenario.output_tokens

    def log_ms(a: Architectures) -> FloatArray:
        times = slow.assess(a)["total_ms"] + a.depth * (a.n_experts > 1) * routed * passes
        return np.asarray(np.log(times * np.where(a.width % 256, misaligned, 1.0)))

    return log_ms


def jittered(law: Law, sd: float, draw: np.random.Generator, **fixed: float) -> Law:
    """A law whose coefficients are multiplied by exp(sd · z); some are given."""
    drawn = {name: value * np.exp(sd * draw.standard_normal()) for name, value in law.coefficients.items()}
    return law.model_copy(update={"coefficients": {**drawn, "l_inf": law.coefficients["l_inf"], **fixed}})


def aspect(most: float, draw: np.random.Generator) -> Part:
    """c · ln²((d/l)/a), nats: c up to `most`, a from 40 to 120; divided by 10, as logs reach 2."""
    best, weight = np.log(draw.uniform(40, 120)), draw.uniform(0, most)
    return lambda a: weight * (np.log(a.width / a.depth) - best) ** 2 / 10


def other_form(draw: np.random.Generator) -> Part:
    """N_a^-a + w N^-b + aspect + w d_m^-c, in units of their own."""
    of_active, share, of_total = draw.uniform(0.2, 0.6), draw.uniform(0.2, 1.0), draw.uniform(0.1, 0.4)
    of_kv, by_kv = draw.uniform(0.0, 0.5), draw.uniform(0.1, 0.5)
    shape = aspect(1.0, draw)

    def part(a: Architectures) -> FloatArray:
        weights = a.depth * a.width * (2.0 * a.query_dim + 2.0 * a.kv_dim)
        expert = 3.0 * a.depth * a.width * a.expert_size
        active, total = weights + expert * a.top_k, weights + expert * a.n_experts
        sizes = (active / 1e8) ** -of_active, share * (total / 1e8) ** -of_total
        return sum((*sizes, of_kv * (a.kv_dim / 64.0) ** -by_kv), shape(a))

    return part


def as_wide(values: FloatArray, like: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """What gives values over a reference the mean and standard deviation of others, (n,), applied to any."""
    mean, sd = values.mean(), values.std()
    return lambda given: like.mean() + like.std() * (given - mean) / sd


class Field:
    """A random function of the log variables: a sum of random cosines, mean 0 and standard deviation 1 over a reference.

    lengths: between which its length scale is drawn, the variables going from -1 to 1 over the reference.
    """

    def __init__(
        self, reference: Architectures, draw: np.random.Generator, lengths: tuple[float, float] = LENGTHS
    ) -> None:
        logs = _logs(reference)
        self.low, self.span = logs.min(axis=0), np.ptp(logs, axis=0)
        self.frequencies = draw.standard_normal((logs.shape[1], COSINES)) / draw.uniform(*lengths)
        self.phases = draw.uniform(0, 2 * np.pi, COSINES)
        self.over = self._sum(reference)
        self.mean, self.sd = self.over.mean(), self.over.std()

    def __call__(self, architectures: Architectures) -> FloatArray:
        """Of any architectures, (n,)."""
        return np.asarray((self._sum(architectures) - self.mean) / self.sd)

    def _sum(self, architectures: Architectures) -> FloatArray:
        logs = 2.0 * (_logs(architectures) - self.low) / self.span - 1.0
        return np.asarray(np.cos(logs @ self.frequencies + self.phases).sum(axis=1))


def _logs(architectures: Architectures) -> FloatArray:
    return np.stack([np.log(getattr(architectures, name)) for name in SHAPE], axis=1)


@dataclass(frozen=True)
class Mixture:
    """A distorted prior: values, so much of a field that is free of the prior, and of the prior itself.

    mean, sd: of the prior over the reference; taken: how much of the prior is taken out of the field; added: how much of
    that is added to the values, whose sd is `size`; alone: there are no values, the field stands for itself.
    """

    mean: float
    sd: float
    taken: float
    added: float
    size: float
    alone: bool

    def __call__(self, values: FloatArray, prior: FloatArray, rough: FloatArray) -> FloatArray:
        """Of any designs, each (n,)."""
        free = rough - (prior - self.mean) / self.sd * self.taken
        if self.alone:
            return self.mean + self.sd * free
        return values + free * self.size * self.added


def ranked(values: FloatArray, prior: FloatArray, rough: FloatArray, target: float) -> Mixture:
    """The mixture with as much of the field that the prior ranks it at a Spearman correlation over a reference, each (n,).

    Where values follow the prior, the field is added; of a field alone what follows the prior is taken out. What is
    added is itself free of the prior's ranks, so that the target is always reached.
    """
    mean, sd = prior.mean(), prior.std()
    standard = (prior - mean) / sd
    taken = float(brentq(lambda c: spearmanr(prior, rough - c * standard).statistic, -20, 20))
    free, size, alone = rough - standard * taken, values.std(), not values.any()
    if alone:
        return Mixture(mean, sd, taken, 1.0, size, True)
    sign = -1.0 if target < 0 else 1.0
    if sign * spearmanr(prior, values).statistic <= sign * target:  # another form that ranks worse by itself
        return Mixture(mean, sd, taken, 0.0, size, False)
    added = brentq(lambda c: spearmanr(prior, values + c * free * size).statistic - target, 0, 1e3)
    return Mixture(mean, sd, taken, float(added), size, False)
