"""The geometric program: its optimum against scipy's SLSQP, its certificate, its derivatives, infeasible boxes."""

import numpy as np
import pytest
from scipy.optimize import minimize

from plas_paper.program import Box, Optimum, Posynomial, Program, solve


def random_program(seed: int) -> Program:
    """A loss of the law's form with random coefficients, two or three limits, a random box; feasible."""
    g = np.random.default_rng(seed)
    scale = np.exp(g.normal(0, 0.7, 11))
    al, ar, am, arho, b2 = 1.63 * scale[0], 0.17 * scale[1], 0.05 * scale[2], 1.09 * scale[3], 0.97 * scale[4]
    loss = Posynomial.from_terms(
        [
            (9.96 * scale[5], (-al, 0, 0, 0, 0)),
            (0.031 * scale[6], (0, g.uniform(-0.5, 0.5), -ar, 0, arho)),
            (500 * scale[7], (0, -b2, -ar, 0, 0)),
            (0.2 * scale[8], (0, -am, 0, am, 0)),
        ]
    )
    cache = np.exp(g.uniform(np.log(1e3), np.log(1e5)))
    latency = Posynomial.from_terms(
        [(4, (1, 2, 0, 0, 0)), (4, (1, 2, 0, -1, 0)), (cache, (1, 1, 0, -1, 0)), (6, (1, 2, 1, 0, 0))]
    )
    memory = Posynomial.from_terms([(4, (1, 2, 0, 0, 0)), (4, (1, 2, 0, -1, 0)), (6, (1, 2, 1, 0, -1))])
    box = Box(np.array([2.0, 256, 0.25, 1, 1 / 64]), np.array([200.0, 8192, 16, 64, 1]), 64.0)
    least = [float(p(box.cheapest)) for p in (latency, memory)]
    budgets = [low * np.exp(g.uniform(1, 8)) for low in least]
    return Program(loss, {"latency": latency.times(1 / budgets[0]), "memory": memory.times(1 / budgets[1])}, box)


def by_slsqp(program: Program, seed: int, starts: int = 3) -> float:
    """The least objective that SLSQP reaches from random starts, with its own finite differences."""
    low, high = np.log(program.box.lower), np.log(program.box.upper)
    sides = [{"type": "ineq", "fun": lambda x: -program.excess(x)}]
    best = np.inf
    for start in np.random.default_rng(seed).uniform(low, high, (starts, 5)):
        found = minimize(
            lambda x: float(program.objective(x)),
            start,
            bounds=list(zip(low, high, strict=True)),
            constraints=sides,
            method="SLSQP",
            options={"maxiter": 500, "ftol": 1e-13},
        )
        if program.excess(found.x).max() < 1e-7:
            best = min(best, float(found.fun))
    return best


def check(seed: int) -> Optimum:
    program = random_program(seed)
    optimum = solve(program)
    assert optimum.residual < 1e-8
    assert program.excess(optimum.logs).max() < 1e-9
    assert optimum.bound <= optimum.value + 1e-12
    assert optimum.value - optimum.bound < 1e-8
    assert abs(by_slsqp(program, seed) - optimum.value) < 1e-6 * max(1.0, optimum.value)
    return optimum


@pytest.mark.parametrize("seed", range(5))
def test_random_programs(seed: int) -> None:
    check(seed)


@pytest.mark.parametrize("seeds", [range(5, 20), pytest.param(range(20, 50), marks=pytest.mark.slow)], ids=str)
def test_more_random_programs(seeds: range) -> None:
    for seed in seeds:
        check(seed)


@pytest.mark.extended
def test_five_hundred_random_programs() -> None:
    for seed in range(50, 550):
        check(seed)


def test_the_bound_is_below_every_point_that_meets_the_limits() -> None:
    program = random_program(3)
    optimum = solve(program)
    low, high = np.log(program.box.lower), np.log(program.box.upper)
    points = np.random.default_rng(0).uniform(low, high, (20_000, 5))
    inside = [x for x in points if program.excess(x).max() <= 0.0]
    assert len(inside) > 50
    assert min(float(program.objective(x)) for x in inside) >= optimum.bound


def test_the_optimum_does_not_depend_on_the_start() -> None:
    program = random_program(1)
    values = [
        solve(program, start).value
        for start in np.random.default_rng(1).uniform(np.log(program.box.lower), np.log(program.box.upper), (20, 5))
    ]
    assert np.ptp(values) < 1e-10


def test_derivatives_against_differences() -> None:
    program = random_program(2)
    x = np.log(np.array([20.0, 1024, 1.5, 4, 0.2]))
    gradients, shares = program.slopes(x)
    step = 1e-6 * np.eye(5)
    numeric = np.stack([(program.excess(x + e) - program.excess(x - e)) / 2e-6 for e in step], axis=1)
    assert np.abs(gradients - numeric).max() < 1e-7
    weights = np.random.default_rng(0).uniform(0, 1, len(program.names))
    slopes = np.stack([(weights @ (program.slopes(x + e)[0] - program.slopes(x - e)[0])) / 2e-6 for e in step])
    assert np.abs(program.curvature(shares, gradients, weights) - slopes).max() < 1e-7


def test_prices_are_what_a_looser_budget_buys() -> None:
    program = random_program(4)
    optimum = solve(program)
    name = max(("latency", "memory"), key=lambda n: optimum.prices.get(n, 0.0))
    looser = Program(
        program.objective, {**program.limits, name: program.limits[name].times(np.exp(-1e-4))}, program.box
    )
    assert (optimum.value - solve(looser).value) / 1e-4 == pytest.approx(optimum.prices[name], rel=1e-3)


def test_fixed_variables_stay_and_an_empty_box_is_seen() -> None:
    program = random_program(0)
    fixed = Program(program.objective, program.limits, program.box.fixed(width=512.0, activation_rate=0.25))
    optimum = solve(fixed)
    assert optimum.point["width"] == pytest.approx(512.0)
    assert optimum.point["activation_rate"] == pytest.approx(0.25)
    assert optimum.value >= solve(program).bound
    tight = Program(program.objective, {"latency": program.limits["latency"].times(1e9)}, program.box)
    assert program.feasible
    assert not tight.feasible


def test_negative_coefficients_are_no_posynomial() -> None:
    with pytest.raises(ValueError, match="at least 0"):
        Posynomial.from_terms([(-1.0, (0, 0, 0, 0, 0))])


def test_a_solve_takes_few_steps() -> None:
    assert max(solve(random_program(seed)).steps for seed in range(50)) <= 40
