"""How a law follows from quantities that are sums of parts, so that exact frontiers need no enumeration."""

import math
from collections.abc import Iterator
from functools import reduce
from types import MappingProxyType

import numpy as np

from objectives.loss_law.features import OWNERS
from objectives.loss_law.form import Term, signed_exponent
from objectives.loss_law.law import Law
from objectives.parts import Composition, additive
from search_spaces.arrays import FloatArray

BOUNDED = ("ffn", "whole")  # quantities that an FFN adds to: a box of FFNs holds a range of them
Value = FloatArray | float
Range = tuple[Value, Value]  # the least and the greatest; one object twice where they are the same


def composition_of(law: Law) -> Composition:
    """A sum where each term belongs to one part and never turns, else a function of additive quantities.

    A quantity that the loss may both rise and fall with is asked for as a range (0): the value is then the
    sum of each term's least over it, which lies at an end or where a power times a logarithm turns.
    """
    directions = dict(_directions(law))
    if law.separable and directions:
        return additive("loss")
    return Composition(MappingProxyType(directions), lambda *u: _least(law, _ranges(directions, iter(u))))


def _directions(law: Law) -> Iterator[tuple[str, int]]:
    """The quantities that change the loss: 1 or -1 where it rises or falls with one, 0 where it may do both."""
    for name in law.law_form.features:
        if OWNERS[name] == "training":
            continue
        found = {s for term in law.law_form.terms.values() if name in term.features for s in _signs(term, name, law)}
        if found and OWNERS[name] not in BOUNDED:
            yield name, 1
        elif found:
            yield name, found.pop() if len(found) == 1 else 0


def _signs(term: Term, name: str, law: Law) -> set[int]:
    """In which directions a term may go as a quantity grows; none where it does not change."""
    scale = term.sign * law.coefficients[term.scale]
    power = signed_exponent(term.powers[name], law.coefficients) if name in term.powers else 0.0
    if scale == 0 or (power == 0 and name not in term.logs):
        return set()
    if set(term.logs) - {name} or (name in term.logs and power):
        return {-1, 1}  # a logarithm of something else may be negative
    return {1 if scale * (power or 1.0) > 0 else -1}


def _ranges(directions: dict[str, int], columns: Iterator[FloatArray]) -> dict[str, Range]:
    """The range of each quantity from the columns that its composition is given, in order."""
    ranges: dict[str, Range] = {}
    for name, direction in directions.items():
        least = next(columns)
        ranges[name] = (least, least if direction else next(columns))
    return ranges


def _least(law: Law, ranges: dict[str, Range]) -> FloatArray:
    """The loss of quantities, of ranges the sum of its terms' least values; without quantities a number."""
    total: Value = 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        for term in law.law_form.terms.values():
            total = total + _term(term, law, ranges)[0]
        return np.asarray(np.exp(total) if law.law_form.of == "log_loss" else total)


def _term(term: Term, law: Law, ranges: dict[str, Range]) -> Range:
    """The range of a term: the product of its factors', each of one quantity."""
    scale = term.sign * law.coefficients[term.scale]
    product: Range = (scale, scale)
    for name in dict.fromkeys(term.features) if scale else ():
        power = signed_exponent(term.powers[name], law.coefficients) if name in term.powers else 0.0
        tokens = law.tokens or 1.0
        product = _times(product, _factor(*ranges.get(name, (tokens, tokens)), power, term.logs.get(name)))
    return product


def _factor(least: Value, greatest: Value, power: float, reference: float | None) -> Range:
    """The range of u^p, or of u^p ln(u/r), for u between two values.

    The second turns once, at u = r exp(-1/p), where it is -r^p / (e p).
    """

    def at(u: Value) -> Value:
        value: Value = u**power
        return value if reference is None else value * np.log(u / reference)

    if least is greatest:
        value = at(least)
        return value, value
    ends = at(least), at(greatest)
    low, high = np.minimum(*ends), np.maximum(*ends)
    if reference is None or power == 0:
        return low, high
    turn, turned = math.log(reference) - 1.0 / power, -np.exp(power * math.log(reference) - 1.0) / power
    inside = (np.log(least) < turn) & (turn < np.log(greatest))
    return np.where(inside, np.minimum(low, turned), low), np.where(inside, np.maximum(high, turned), high)


def _times(a: Range, b: Range) -> Range:
    """The range of a product of two independent factors."""
    if a[0] is a[1] and b[0] is b[1]:
        product = a[0] * b[0]
        return product, product
    products = [x * y for x in _ends(a) for y in _ends(b)]
    return reduce(np.minimum, products), reduce(np.maximum, products)


def _ends(a: Range) -> Range | tuple[Value]:
    return a[:1] if a[0] is a[1] else a
