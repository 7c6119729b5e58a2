"""Quantiles of Student's t."""

import math


def student_share(t: float, freedom: int) -> float:
    """P(T <= t) of Student's t with whole degrees of freedom.

    Source: Abramowitz and Stegun 26.7.3 and 26.7.4.
    """
    angle = math.atan(t / math.sqrt(freedom))
    odd = freedom % 2
    term, total = (math.cos(angle), 0.0) if odd else (1.0, 0.0)
    for k in range(2 + odd, freedom + 1, 2):
        total += term
        term *= math.cos(angle) ** 2 * (k - 1) / k
    within = 2.0 / math.pi * (angle + math.sin(angle) * total) if odd else math.sin(angle) * total
    return (1.0 + within) / 2.0


def student_quantile(share: float, freedom: int) -> float:
    """t with P(T <= t) = share, 0 < share < 1, to 12 digits, by bisection."""
    low, high = -1.0, 1.0
    while student_share(low, freedom) > share:
        low *= 2.0
    while student_share(high, freedom) < share:
        high *= 2.0
    while high - low > 1e-12 * max(1.0, abs(low)):
        middle = (low + high) / 2.0
        low, high = (middle, high) if student_share(middle, freedom) < share else (low, middle)
    return high
