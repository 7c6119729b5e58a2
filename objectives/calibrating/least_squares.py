"""Least squares of few parameters within bounds, from residuals that bring their slopes."""

from collections.abc import Callable

import numpy as np

from search_spaces.arrays import FloatArray

STEPS = 40
ENOUGH = 1e-6  # relative gain of a step below which the next cannot matter
_LEAST, _MOST = 1e-9, 1e9  # of the damping

Residuals = Callable[[FloatArray], tuple[FloatArray, FloatArray]]


def minimise(residuals: Residuals, start: FloatArray, bounds: tuple[FloatArray, FloatArray]) -> FloatArray:
    """The x within bounds of least |r(x)|², from a start within: damped steps, projected on the bounds.

    A parameter at a bound that the slopes push outwards stays there for the step.

    Source: Marquardt 1963; Kanzow, Yamashita and Fukushima 2004 for the projection.

    Args:
        residuals: r, (n,), and its slopes, (n, parameters).
        start: where to begin, (parameters,).
        bounds: least and largest, each (parameters,).
    """
    x, (lower, upper) = np.clip(start, *bounds), bounds
    r, slopes = residuals(x)
    cost, damping = float(r @ r), 1e-3
    for _ in range(STEPS):
        downhill = -slopes.T @ r
        free = ~(((x <= lower) & (downhill < 0)) | ((x >= upper) & (downhill > 0)))
        if not free.any():
            break
        gained = False
        while damping <= _MOST and not gained:
            curved = slopes[:, free].T @ slopes[:, free]
            curved[np.diag_indices_from(curved)] *= 1.0 + damping
            step = np.zeros_like(x)
            step[free] = np.linalg.solve(curved, downhill[free])
            tried = np.clip(x + step, lower, upper)
            r_there, slopes_there = residuals(tried)
            there = float(r_there @ r_there)
            gained = there < cost
            damping = max(damping / 5.0, _LEAST) if gained else damping * 5.0
        if not gained:
            break
        small = cost - there <= ENOUGH * cost
        x, r, slopes, cost = tried, r_there, slopes_there, there
        if small:
            break
    return x
