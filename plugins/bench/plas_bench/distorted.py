"""A frozen kind over a frozen study: measured objectives whose priors are the formulas, and what is true of them."""

from dataclasses import replace

import numpy as np

from nas.problem.problem import Problem
from plas_bench.definition import KindOf
from plas_bench.kinds import SCALES, Case, Truth, measured


def distorted(kind: KindOf, analytic: Problem) -> Case:
    """The case of a kind and a seed over a problem of formulas, budgets included, whose space can be priced whole.

    As `plas_bench.kinds.case_of`, but of a study that is embedded, so that no shipped law or device can change it.
    """
    every = analytic.architectures(analytic.space.genotypes(np.arange(analytic.space.size)))
    truth = Truth(kind.name, kind.seed, replace(analytic, budgets=()), every)
    own = {name: measured(name, truth) for name in SCALES}
    objectives = tuple(own.get(o.name, o) for o in analytic.objectives)
    budgets = tuple(replace(b, metric=own[b.metric].name) if b.metric in own else b for b in analytic.budgets)
    problem = replace(analytic, objectives=objectives, budgets=budgets, functions=tuple(own.values()))
    return Case(problem, analytic, truth)
