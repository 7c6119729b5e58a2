"""How a law follows from quantities that are sums of parts, so that exact frontiers need no enumeration."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import product
from types import MappingProxyType

import numpy as np

from objectives.loss_law.features import COUNTS, MADE_OF, OWNERS, WITH_EMBEDDINGS
from objectives.loss_law.form import Term, signed_exponent, together
from objectives.loss_law.law import Law
from objectives.loss_law.layer_deltas import SHARES
from objectives.loss_law.ranges import ULPS
from objectives.parts import Composition, additive
from search_spaces.arrays import BoolArray, FloatArray

BOUNDED = (  # quantities that an FFN adds to: a box of FFNs holds a range of them
    *(name for name, owner in OWNERS.items() if owner == "ffn"),
    *(name for name in COUNTS if name != "attention_parameters"),
)
Value = FloatArray | float
Range = tuple[Value, Value]  # the least and the greatest; one object twice where they are the same
Ranges = Callable[[str], Range]


def composition_of(law: Law) -> Composition:
    """A sum where each term belongs to one part and never turns, else a function of additive quantities.

    A quantity that the loss may both rise and fall with is asked for as a range (0): the value is then the
    sum of each term's least over it, which lies at an end or where a power times a logarithm turns. A quantity
    made of others has the range that theirs allow, and a product of sums the least of the ranges of its factors. What
    a law prices is asked for in the same way: where no design of the ranges is priced, the loss is infinite.
    """
    if law.separable and _directions(law):
        return additive("loss")
    return composition_of_all((law,), lambda losses: losses[0])


def composition_of_all(laws: Sequence[Law], value: Callable[[list[FloatArray]], FloatArray]) -> Composition:
    """A function of the losses of several laws, weakly rising in each, as one of additive quantities."""
    directions: dict[str, int] = {}
    for law in laws:
        for name, sign in _directions(law).items():
            directions[name] = sign if directions.get(name, sign) == sign else 0

    def at_quantities(*columns: FloatArray) -> FloatArray:
        ranges = _ranges(directions, iter(columns))
        return value([_least(law, ranges) for law in laws])

    return Composition(MappingProxyType(directions), at_quantities)


def _directions(law: Law) -> dict[str, int]:
    """The additive quantities that change the loss: 1 or -1 where it rises or falls with one, 0 where it may do both."""
    domain = {*law.domain, *law.prices_sparse, *(["n_experts"] if law.prices_sparse else [])}
    found: dict[str, set[int]] = {} if law.penalty is None else {"parameters": {-1}}
    found |= {name: {1} for name, kind in SHARES.items() if kind in law.layer_deltas}
    for name in dict.fromkeys([*law.law_form.features, *sorted(domain)]):
        signs = {1, -1} if name in domain else _signs_of(law, name)
        if OWNERS[name] == "training" or not signs:
            continue
        for part, power in _made_of(name).items():
            found.setdefault(part, set()).update(sign if power > 0 else -sign for sign in signs)
    return {name: 1 if name not in BOUNDED else signs.pop() if len(signs) == 1 else 0 for name, signs in found.items()}


def _made_of(name: str) -> Mapping[str, float]:
    """The additive quantities that one follows from, with the sign of how."""
    if name in WITH_EMBEDDINGS:  # of a vocabulary of the law's own
        return {"width": 1.0, name.removesuffix("_with_embeddings"): 1.0}
    return MADE_OF.get(name, {name: 1.0})


def _signs_of(law: Law, name: str) -> set[int]:
    """In which directions a law's loss may go as a quantity grows; what is made of it by bending grows with it."""
    names = (name, *(bent for bent, bend in law.law_form.bent.items() if bend.of == name))
    terms = law.law_form.every_term
    found = {sign for term in terms for each in names if each in term.features for sign in _signs(term, each, law)}
    return {1, -1} if name == "n_experts" and any(term.only for term in terms) else found


def _signs(term: Term, name: str, law: Law) -> set[int]:
    """In which directions a term may go as a quantity grows; none where it does not change."""
    scale = term.sign * law.coefficients[term.scale]
    power = signed_exponent(term.powers[name], law.coefficients) if name in term.powers else 0.0
    crossed = any(law.coefficients[by] for pair, by in term.crossed.items() if name in pair.split())
    if scale == 0 or (power == 0 and name not in term.logs and not crossed):
        return set()
    if law.law_form.factors or set(term.logs) - {name} or (name in term.logs and power) or crossed:
        return {-1, 1}  # a logarithm of something else, or another factor, may be negative
    return {1 if scale * (power or 1.0) > 0 else -1}


def _ranges(directions: Mapping[str, int], columns: Iterator[FloatArray]) -> dict[str, Range]:
    """The range of each quantity from the columns that its composition is given, in order."""
    ranges: dict[str, Range] = {}
    for name, direction in directions.items():
        least = next(columns)
        ranges[name] = (least, least if direction else next(columns))
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
        loss = form.loss(np.asarray(total[0]))
    if law.penalty is not None:
        loss = loss + law.penalty.nats(np.asarray(ranges["parameters"][1]))
    for name, kind in SHARES.items():
        if kind in law.layer_deltas:
            loss = loss + law.layer_deltas[kind] * np.asarray(ranges[name][0])
    unpriced = _unpriced(law, ranges)
    return loss if unpriced is None else np.where(unpriced, np.inf, loss)


def _multiplier(terms: dict[str, Term], law: Law, ranges: dict[str, Range]) -> Range:
    """The range of a sum that multiplies: as close as can be where it is a curve of one quantity, else term by term."""
    names, curve = {name for term in terms.values() for name in term.features}, _curve(terms, law)
    if curve is None or len(names) != 1:
        return _sum(terms, law, ranges)
    return _curved(*curve, _range_of(names.pop(), law, ranges))


def _curve(terms: dict[str, Term], law: Law) -> tuple[float, float, float, float] | None:
    """The sum as a + b ln u + c u^p; None where it is another."""
    a = b = c = p = 0.0
    for term in terms.values():
        scale = term.sign * law.coefficients[term.scale]
        if not term.plain:
            return None
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
    joined: list[Range] = []
    for name, term in terms.items():
        each = _term(term, law, lambda quantity: _range_of(quantity, law, ranges))
        if term.only is not None:
            counts = _counts(term, ranges)
            each = np.where(counts, each[0], 0.0), np.where(counts, each[1], 0.0)
        if name in law.law_form.joined:
            joined.append(each)
        else:
            low, high = low + each[0], high + each[1]
    if joined:  # what they count together rises with each
        power = law.coefficients[law.law_form.join]
        low, high = (
            total + together(ends, power) for total, ends in zip((low, high), zip(*joined, strict=True), strict=True)
        )
    return low, high


def _range_of(name: str, law: Law, ranges: dict[str, Range]) -> Range:
    """The range of any quantity of a law: as it is, made of others, bent, with the law's embeddings, or the law's tokens."""
    if name in MADE_OF:
        return reduce(_times, (_power(ranges[part], power) for part, power in MADE_OF[name].items()))
    if name in WITH_EMBEDDINGS:
        tables = law.vocabulary * (1.0 if law.tied else 2.0) * ranges["width"][0]
        least, greatest = ranges[name.removesuffix("_with_embeddings")]
        return _mapped(least, greatest, lambda body: body + tables)
    if (bend := law.law_form.bent.get(name)) is not None:
        return _mapped(*_range_of(bend.of, law, ranges), lambda u: bend.value(u, law.coefficients))
    tokens = law.tokens or 1.0
    return ranges.get(name, (tokens, tokens))


def _mapped(least: Value, greatest: Value, rising: Callable[[Value], Value]) -> Range:
    low = rising(least)
    return low, low if least is greatest else rising(greatest)


def _counts(term: Term, ranges: dict[str, Range]) -> BoolArray:
    """Where a term of dense or of sparse designs counts; ranges never hold both."""
    dense: BoolArray = np.asarray(ranges["n_experts"][1]) == 1.0
    return dense if term.only == "dense" else ~dense


def _unpriced(law: Law, ranges: dict[str, Range]) -> BoolArray | None:
    """Where a law prices no design of the ranges; None for a law that prices every design."""
    found = [_apart(_range_of(name, law, ranges), *ends) for name, ends in law.domain.items()]
    if law.prices_sparse:
        sparse = np.asarray(ranges["n_experts"][1]) > 1.0
        found += [_apart(_range_of(name, law, ranges), *ends) & sparse for name, ends in law.prices_sparse.items()]
    return np.logical_or.reduce(found) if found else None


def _apart(found: Range, least: float, most: float) -> BoolArray:
    """Where a range has nothing in common with another."""
    apart: BoolArray = (np.asarray(found[1]) < least * (1 - ULPS)) | (np.asarray(found[0]) > most * (1 + ULPS))
    return apart


def _term(term: Term, law: Law, range_of: Ranges) -> Range:
    """The range of a term: the product of its factors', each of one quantity, those whose exponents cross together."""
    scale = term.sign * law.coefficients[term.scale]
    found: Range = (scale, scale)
    together = {name for pair in term.crossed for name in pair.split()}
    for name in dict.fromkeys(term.features) if scale else ():
        if name not in together:
            power = signed_exponent(term.powers[name], law.coefficients) if name in term.powers else 0.0
            found = _times(found, _factor(*range_of(name), power, term.logs.get(name)))
    return _times(found, _crossing(term, law, range_of, sorted(together))) if together and scale else found


def _crossing(term: Term, law: Law, range_of: Ranges, names: list[str]) -> Range:
    """The range of Π u^p · Π exp(c ln u ln v): its logarithm is linear in each ln u, so that it ends at corners."""
    c = law.coefficients
    values: list[Value] = []
    for corner in product(*(_ends(range_of(name)) for name in names)):
        logs = {name: np.log(end) for name, end in zip(names, corner, strict=True)}
        powers: Value = sum(signed_exponent(term.powers[name], c) * logs[name] for name in names)
        pairs = [(*pair.split(), by) for pair, by in term.crossed.items()]
        values.append(np.exp(powers + sum(c[by] * logs[first] * logs[second] for first, second, by in pairs)))
    least = reduce(np.minimum, values)
    return least, least if len(values) == 1 else reduce(np.maximum, values)


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
        product_of = a[0] * b[0]
        return product_of, product_of
    products = [x * y for x in _ends(a) for y in _ends(b)]
    return reduce(np.minimum, products), reduce(np.maximum, products)


def _ends(a: Range) -> Range | tuple[Value]:
    return a[:1] if a[0] is a[1] else a
