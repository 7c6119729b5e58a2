"""How a law follows from quantities that are sums of parts, so that exact frontiers need no enumeration."""

import math
from collections.abc import Iterator
from functools import reduce
from types import MappingProxyType

import numpy as np

from objectives.loss_law.features import COUNTS, MADE_OF, OWNERS
from objectives.loss_law.form import Term, signed_exponent
from objectives.loss_law.law import Law
from objectives.parts import Composition, additive
from search_spaces.arrays import FloatArray

BOUNDED = (  # quantities that an FFN adds to: a box of FFNs holds a range of them
    *(name for name, owner in OWNERS.items() if owner == "ffn"),
    *(name for name in COUNTS if name != "attention_parameters"),
)
Value = FloatArray | float
Range = tuple[Value, Value]  # the least and the greatest; one object twice where they are the same


def composition_of(law: Law) -> Composition:
    """A sum where each term belongs to one part and never turns, else a function of additive quantities.

    A quantity that the loss may both rise and fall with is asked for as a range (0): the value is then the
    sum of each term's least over it, which lies at an end or where a power times a logarithm turns. A quantity
    made of others has the range that theirs allow, and a product of sums the least of the ranges of its factors.
    """
    directions = dict(_directions(law))
    if law.separable and directions:
        return additive("loss")
    return Composition(MappingProxyType(directions), lambda *u: _least(law, _ranges(law, directions, iter(u))))


def _directions(law: Law) -> Iterator[tuple[str, int]]:
    """The additive quantities that change the loss: 1 or -1 where it rises or falls with one, 0 where it may do both."""
    found: dict[str, set[int]] = {}
    for name in law.law_form.features:
        if OWNERS[name] == "training":
            continue
        if signs := {s for term in law.law_form.every_term if name in term.features for s in _signs(term, name, law)}:
            for part, power in MADE_OF.get(name, {name: 1.0}).items():
                found.setdefault(part, set()).update(sign if power > 0 else -sign for sign in signs)
    for name, signs in found.items():
        yield name, 1 if name not in BOUNDED else signs.pop() if len(signs) == 1 else 0


def _signs(term: Term, name: str, law: Law) -> set[int]:
    """In which directions a term may go as a quantity grows; none where it does not change."""
    scale = term.sign * law.coefficients[term.scale]
    power = signed_exponent(term.powers[name], law.coefficients) if name in term.powers else 0.0
    if scale == 0 or (power == 0 and name not in term.logs):
        return set()
    if law.law_form.factors or set(term.logs) - {name} or (name in term.logs and power):
        return {-1, 1}  # a logarithm of something else, or another factor, may be negative
    return {1 if scale * (power or 1.0) > 0 else -1}


def _ranges(law: Law, directions: dict[str, int], columns: Iterator[FloatArray]) -> dict[str, Range]:
    """The range of each quantity from the columns that its composition is given, in order."""
    ranges: dict[str, Range] = {}
    for name, direction in directions.items():
        least = next(columns)
        ranges[name] = (least, least if direction else next(columns))
    for name in law.law_form.features:
        if name in MADE_OF and MADE_OF[name].keys() <= ranges.keys():
            powers = (_power(ranges[part], power) for part, power in MADE_OF[name].items())
            ranges[name] = reduce(_times, powers)
    return ranges


def _power(of: Range, power: float) -> Range:
    """The range of a power of a positive quantity."""
    if of[0] is of[1]:
        value = of[0] ** power
        return value, value
    low, high = of if power > 0 else of[::-1]
    return low**power, high**power


def _least(law: Law, ranges: dict[str, Range]) -> FloatArray:
    """The loss of quantities, of ranges the least that its terms allow; without quantities a number."""
    form = law.law_form
    with np.errstate(over="ignore", invalid="ignore"):
        total = _sum(form.terms, law, ranges)
        for terms in form.factors.values():
            total = _times(total, _multiplier(terms, law, ranges))
        return np.asarray(np.exp(total[0]) if form.of == "log_loss" else total[0])


def _multiplier(terms: dict[str, Term], law: Law, ranges: dict[str, Range]) -> Range:
    """The range of a sum that multiplies: as close as can be where it is a curve of one quantity, else term by term."""
    names, curve = {name for term in terms.values() for name in term.features}, _curve(terms, law)
    if curve is None or len(names) != 1 or not names <= ranges.keys():
        return _sum(terms, law, ranges)
    return _curved(*curve, ranges[names.pop()])


def _curve(terms: dict[str, Term], law: Law) -> tuple[float, float, float, float] | None:
    """The sum as a + b ln u + c u^p; None where it is another."""
    a = b = c = p = 0.0
    for term in terms.values():
        scale = term.sign * law.coefficients[term.scale]
        if not term.features:
            a += scale
        elif not term.powers and len(term.logs) == 1:
            a, b = a - scale * math.log(*term.logs.values()), b + scale
        elif not term.logs and len(term.powers) == 1 and c == 0.0:
            c, p = scale, signed_exponent(next(iter(term.powers.values())), law.coefficients)
        else:
            return None
    return a, b, c, p


def _curved(a: float, b: float, c: float, p: float, of: Range) -> Range:
    """The range of a + b t + c e^(p t) for t = ln u between two values: it turns once at most, where e^(p t) is -b/(c p)."""

    def at(t: Value) -> Value:
        value: Value = a + b * t + c * np.exp(p * t)
        return value

    low, high = np.log(of[0]), np.log(of[1])
    if of[0] is of[1]:
        value = at(low)
        return value, value
    values = [at(low), at(high)]
    if c * p != 0.0 and b / (c * p) < 0.0:
        values.append(at(np.clip(math.log(-b / (c * p)) / p, low, high)))
    return reduce(np.minimum, values), reduce(np.maximum, values)


def _sum(terms: dict[str, Term], law: Law, ranges: dict[str, Range]) -> Range:
    """The range of a sum whose terms are taken one by one."""
    low: Value = 0.0
    high: Value = 0.0
    for each in (_term(term, law, ranges) for term in terms.values()):
        low, high = low + each[0], high + each[1]
    return low, high


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
