"""Loss laws as functions of quantities that are sums over parts, so that exact frontiers need no enumeration."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from itertools import product
from types import MappingProxyType
from typing import Self

import numpy as np

from objectives.loss_law.coverage import ULPS, LeftBy, Range, Region, Value, extrapolation, kinds_of
from objectives.loss_law.features import COUNTS, MADE_OF, OF_TRAINING, OWNERS, WITH_EMBEDDINGS, part_of
from objectives.loss_law.form import Form, LogProduct, Term, signed_exponent
from objectives.loss_law.law import Law
from objectives.loss_law.layer_deltas import QUANTITIES, LayerCosts
from objectives.parts import Composition, Quantity, additive
from search_spaces.arrays import BoolArray, FloatArray

BOUNDED = (  # quantities that follow the FFN or the depth: a box of FFNs, or a group of depths, holds a range of them
    *("depth", *(name for name, owner in OWNERS.items() if owner == "ffn")),
    *(*COUNTS, *QUANTITIES),
)
Ranges = Mapping[Quantity, Range]


def composition_of(law: Law) -> Composition:
    """Return a sum if each term belongs to one part and is monotone, else a function of additive quantities.

    A quantity that the loss may both rise and fall with is asked for as a range (0): the value is then the
    sum of each term's least over it, which lies at an end or where a power times a logarithm turns. A quantity
    made of others has the range that theirs allow, and a product of sums the least of the ranges of its factors. What
    a law prices is asked for in the same way: where no design of the ranges is priced, the loss is infinite.
    """
    if law.separable and SumOfTerms.of(law).directions():
        return additive("loss")
    return composition_of_all((law,), lambda losses: losses[0])


def composition_of_all(laws: Sequence[Law], value: Callable[[list[FloatArray]], FloatArray]) -> Composition:
    """Return a function that rises weakly with the loss of several laws, in terms of additive quantities."""
    layers = _layers(laws)
    sums, directions = [SumOfTerms.of(*each) for each in zip(laws, layers, strict=True)], dict[Quantity, int]()
    for each in sums:
        for name, sign in each.directions().items():
            directions[name] = sign if directions.get(name, sign) == sign else 0

    def at_quantities(*columns: FloatArray) -> FloatArray:
        ranges = _ranges(directions, iter(columns))
        return value([_least(each, ranges) for each in sums])

    return Composition(MappingProxyType(directions), at_quantities)


def extrapolation_of(law: Law) -> Composition:
    """Return how far designs lie beyond the rows of a law, as a function of additive quantities; for ranges the least value in them."""
    of_training = (*OF_TRAINING, "vocabulary")
    names = dict.fromkeys(["n_experts", *(name for region in law.regions.values() for name in region.names)])
    parts = dict.fromkeys(part for name in names for part in _made_of(name) if part not in of_training)
    directions: dict[Quantity, int] = {part: 0 if bounded(part) else 1 for part in parts}

    def at_quantities(*columns: FloatArray, left_by: LeftBy = Region.excess) -> FloatArray:
        ranges = _ranges(directions, iter(columns))
        experts = np.asarray(ranges["n_experts"][1])

        def range_of(name: str) -> Range | None:
            return None if name in OF_TRAINING and law.tokens is None else _range_of(name, law, ranges)

        excess = kinds_of(law.regions, experts, range_of, law.covered_vocabularies, left_by)
        return extrapolation(excess, len(columns[0]))

    return Composition(MappingProxyType(directions), at_quantities, partial(at_quantities, left_by=Region.left))


def _layers(laws: Sequence[Law]) -> list[Mapping[Quantity, float]]:
    """Costs of kinds of layers per law, nats per additive quantity: of all kinds together where all laws have the same."""
    costs = {LayerCosts(tuple(law.layer_deltas.items()), law.layer_context) for law in laws}
    if len(costs) == 1:
        return [{each: 1.0 for each in costs if each.deltas}] * len(laws)
    by_kind = {kind: name for name, kind in QUANTITIES.items()}
    return [{by_kind[kind]: delta for kind, delta in law.layer_deltas.items()} for law in laws]


@dataclass(frozen=True, eq=False)
class FactoredTerm:
    """A term as scale · exp(product) · Π powers · Π logarithms · Π crossed powers.

    product: what belongs to one part of an architecture each, a sum of parts; of other quantities squares: exponents p and c of
    u^p exp(c ln² u), crossing: those of pairs, whose exponents are the term's; those of `term.logs` have theirs besides.
    """

    term: Term
    scale: float
    product: LogProduct
    squares: Mapping[str, tuple[float, float]]
    crossing: tuple[str, ...]

    @classmethod
    def of(cls, term: Term, c: dict[str, float]) -> Self:
        """Return a term of a law with its coefficients, without factors that change nothing."""
        product = LogProduct.of_term(term, c)
        pairs = {tuple(pair.split()): c[by] for pair, by in term.crossed.items() if c[by]}
        crossing = {name for first, second in pairs if first != second for name in (first, second)} - product.names
        powers = {name: signed_exponent(by, c) for name, by in term.powers.items()}
        squares = {
            name: (0.0 if name in crossing else power, pairs.get((name, name), 0.0))
            for name, power in powers.items()
            if name not in {*product.names, *term.logs}
        }
        kept = {name: exponents for name, exponents in squares.items() if any(exponents)}
        return cls(term, term.sign * c[term.scale], product, kept, tuple(sorted(crossing)))

    def signs(self, form: Form, c: dict[str, float]) -> Iterator[tuple[Quantity, set[int]]]:
        """Return the directions in which the term may move as each of its quantities grows."""
        if self.scale == 0.0:
            return
        up = 1 if self.scale > 0.0 else -1
        either = bool(
            form.factors or self.term.logs
        )  # another factor, or a logarithm of something else, may be negative
        if self.product.names:
            yield self.product, {1, -1} if either else {up}
        for name, (power, square) in self.squares.items():
            yield name, {1, -1} if either or square else {up if power > 0.0 else -up}
        for name in self.crossing:
            yield name, {1, -1}
        for name in self.term.logs:
            power = signed_exponent(self.term.powers[name], c) if name in self.term.powers else 0.0
            alone = not form.factors and len(self.term.logs) == 1 and not power
            yield name, {up} if alone else {1, -1}


@dataclass(frozen=True, eq=False)
class SumOfTerms:
    """A law with factored terms: those of the sum, by name, and those of each sum that multiplies it."""

    law: Law
    terms: Mapping[str, FactoredTerm]
    factors: tuple[tuple[FactoredTerm, ...], ...]
    layers: Mapping[Quantity, float]

    @classmethod
    def of(cls, law: Law, layers: Mapping[Quantity, float] = MappingProxyType({})) -> Self:
        """Return the factored terms of a law; `layers` are its costs of layer kinds, nats per additive quantity."""
        form, c = law.law_form, law.coefficients
        terms = {name: FactoredTerm.of(term, c) for name, term in form.terms.items()}
        factors = tuple(tuple(FactoredTerm.of(term, c) for term in of.values()) for of in form.factors.values())
        return cls(law, terms, factors, layers)

    def directions(self) -> dict[Quantity, int]:
        """Return the additive quantities that change the loss: 1 or -1 if it rises or falls with one, 0 if it may do both."""
        law, found = self.law, dict[Quantity, set[int]]()
        if law.penalty is not None:
            found |= {"active_parameters": {-1}, "n_experts": {1, -1}}
        found |= {name: {1 if cost > 0.0 else -1} for name, cost in self.layers.items()}
        for name, signs in self._signs():
            for part, power in _made_of(name).items():
                found.setdefault(part, set()).update(sign if power > 0 else -sign for sign in signs)
        return {
            name: 1 if not bounded(name) else signs.pop() if len(signs) == 1 else 0 for name, signs in found.items()
        }

    def _signs(self) -> Iterator[tuple[Quantity, set[int]]]:
        """In which directions the loss may go as a quantity grows, those that are bent by what they are made of."""
        law, form = self.law, self.law.law_form
        for term in (*self.terms.values(), *(term for sum_ in self.factors for term in sum_)):
            for name, signs in term.signs(form, law.coefficients):
                made = form.bent[name].of if isinstance(name, str) and name in form.bent else name
                if not isinstance(made, str) or OWNERS[made] != "training":
                    yield made, signs
        kinds = bool(law.prices_sparse) or any(term.only for _, term in form.named_terms)
        for name in dict.fromkeys([*law.prices, *law.prices_sparse, *(["n_experts"] if kinds else [])]):
            yield name, {1, -1}


def _made_of(name: Quantity) -> Mapping[Quantity, float]:
    """The additive quantities that one follows from, with the sign of how."""
    if not isinstance(name, str):
        return {name: 1.0}
    if name in WITH_EMBEDDINGS:  # of a vocabulary of the law's own
        return {"width": 1.0, name.removesuffix("_with_embeddings"): 1.0}
    return dict(MADE_OF.get(name, {name: 1.0}).items())


def bounded(quantity: Quantity) -> bool:
    """Whether a range of FFNs or of depths holds a range of a quantity."""
    if isinstance(quantity, LogProduct):
        return any(part_of(name) in ("ffn", "base") for name in quantity.names)
    return isinstance(quantity, LayerCosts) or quantity in BOUNDED


def _ranges(directions: Mapping[Quantity, int], columns: Iterator[FloatArray]) -> Ranges:
    """The range of each quantity from the columns that its composition is given, in order."""
    ranges: dict[Quantity, Range] = {}
    for name, direction in directions.items():
        least = next(columns)
        ranges[name] = (least, least if direction else next(columns))
    return ranges


def _least(of: SumOfTerms, ranges: Ranges) -> FloatArray:
    """The loss of quantities, of ranges the least that its terms allow; without quantities a number."""
    law, form = of.law, of.law.law_form
    with np.errstate(over="ignore", invalid="ignore"):
        total = _sum(of, ranges)
        for terms in of.factors:
            total = _times(total, _multiplier(terms, law, ranges))
        loss = form.loss(np.asarray(total[0]))
    if law.penalty is not None:
        sparse = np.asarray(ranges["n_experts"][1]) > 1.0
        loss = loss + law.penalty.nats(np.asarray(ranges["active_parameters"][1]), sparse)
    for name, delta in of.layers.items():
        loss = loss + delta * np.asarray(ranges[name][0])
    loss = loss + law.mtp if law.mtp else loss
    if (cost := law.vocabulary_cost) is not None:
        loss = cost.priced(loss, cost.here or 0)
    unpriced = _unpriced(law, ranges)
    return loss if unpriced is None else np.where(unpriced, np.inf, loss)


def _sum(of: SumOfTerms, ranges: Ranges) -> Range:
    """The range of the sum of a law's terms, taken one by one; of those that are joined, which rises with each, as one."""
    law, joined = of.law, list[Range]()
    found: Range = (0.0,) * 2
    for name, term in of.terms.items():
        if name in law.law_form.joined:
            joined.append(_added((math.log(term.scale),) * 2, _log_of(term, law, ranges)))
        else:
            found = _added(found, _term(term, law, ranges))
    if joined:
        power = law.coefficients[law.law_form.join]
        found = _added(found, _of_ends(lambda *logs: _together(logs, power), *joined))
    return found


def _together(logs: Sequence[Value], power: float) -> Value:
    """What positive terms count together, (Σ u^κ)^(1/κ) with κ `power`, of their logarithms; no power is beyond floating point."""

    def of_two(a: Value, b: Value) -> Value:
        value: Value = np.maximum(a, b) + np.log(1.0 + np.exp(-power * np.abs(a - b))) / power
        return value

    value: Value = np.exp(reduce(of_two, logs))
    return value


def _multiplier(terms: Sequence[FactoredTerm], law: Law, ranges: Ranges) -> Range:
    """The range of a sum that multiplies: as close as can be where it is a curve of one quantity, else term by term."""
    names, curve = {name for each in terms for name in each.term.features}, _curve(terms, law)
    if curve is None or len(names) != 1:
        return reduce(_added, (_term(each, law, ranges) for each in terms))
    return _curved(*curve, _range_of(names.pop(), law, ranges))


def _curve(terms: Sequence[FactoredTerm], law: Law) -> tuple[float, float, float, float] | None:
    """The sum as a + b ln u + c u^p; None where it is another."""
    a = b = c = p = 0.0
    for each in terms:
        term, scale = each.term, each.scale
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


def _range_of(name: str, law: Law, ranges: Ranges) -> Range:
    """The range of any quantity of a law: as it is, made of others, bent, with the law's embeddings, or the law's tokens."""
    if name in MADE_OF:
        return reduce(
            _times, (_power(_range_of(part, law, ranges), power) for part, power in MADE_OF[name].items())
        )  # as `feature` does
    if name in WITH_EMBEDDINGS:
        tables = law.vocabulary * (1.0 if law.tied else 2.0) * ranges["width"][0]
        return _of_ends(lambda body: body + tables, ranges[name.removesuffix("_with_embeddings")])
    if (bend := law.law_form.bent.get(name)) is not None:
        return _of_ends(lambda u: bend.value(u, law.coefficients), _range_of(bend.of, law, ranges))
    of_training = (
        ((law.vocabulary_cost and law.vocabulary_cost.here) or np.nan) if name == "vocabulary" else law.tokens or 1.0
    )
    return ranges.get(name, (of_training, of_training))


def _counts(term: Term, ranges: Ranges) -> BoolArray:
    """Where a term of dense or of sparse designs counts; ranges never hold both."""
    dense: BoolArray = np.asarray(ranges["n_experts"][1]) == 1.0
    return dense if term.only == "dense" else ~dense


def _unpriced(law: Law, ranges: Ranges) -> BoolArray | None:
    """Where a law prices no design of the ranges; None for a law that prices every design."""
    found = [_apart(_range_of(name, law, ranges), *ends) for name, ends in law.prices.items()]
    if law.prices_sparse:
        sparse = np.asarray(ranges["n_experts"][1]) > 1.0
        found += [_apart(_range_of(name, law, ranges), *ends) & sparse for name, ends in law.prices_sparse.items()]
    return np.logical_or.reduce(found) if found else None


def _apart(found: Range, least: float, most: float) -> BoolArray:
    """Where a range has nothing in common with another."""
    apart: BoolArray = (np.asarray(found[1]) < least * (1 - ULPS)) | (np.asarray(found[0]) > most * (1 + ULPS))
    return apart


def _term(of: FactoredTerm, law: Law, ranges: Ranges) -> Range:
    """The range of a term: the product of its factors', each of one quantity, those whose exponents cross together."""
    if of.scale == 0.0:
        return (0.0,) * 2
    found = _times((of.scale,) * 2, _of_ends(np.exp, _log_of(of, law, ranges)))
    for name, reference in of.term.logs.items():
        power = signed_exponent(of.term.powers[name], law.coefficients) if name in of.term.powers else 0.0
        found = _times(found, _factor(*_range_of(name, law, ranges), power, reference))
    if of.term.only is None:
        return found
    counts = _counts(of.term, ranges)
    return np.where(counts, found[0], 0.0), np.where(counts, found[1], 0.0)


def _log_of(of: FactoredTerm, law: Law, ranges: Ranges) -> Range:
    """The range of the logarithm of a term without its scale and logarithms: a sum, each quantity by itself or in its pairs."""
    found: Range = ranges[of.product] if of.product.names else (0.0,) * 2
    for name, (power, square) in of.squares.items():
        each = _range_of(name, law, ranges)
        found = _added(found, _squared(each, power, square) if square else _log(each, power))
    return _added(found, _crossing(of, law, ranges)) if of.crossing else found


def _crossing(of: FactoredTerm, law: Law, ranges: Ranges) -> Range:
    """The range of Σ p ln u + Σ c ln u ln v, each pair of two: linear in each ln u, so that it ends at corners."""
    c, term = law.coefficients, of.term
    values: list[Value] = []
    pairs = [(*pair.split(), by) for pair, by in term.crossed.items()]
    mixed = [(u, v, c[by]) for u, v, by in pairs if u != v and u in of.crossing]
    for corner in product(*(_ends(_range_of(name, law, ranges)) for name in of.crossing)):
        logs = {name: np.log(end) for name, end in zip(of.crossing, corner, strict=True)}
        powers: Value = sum(signed_exponent(term.powers[name], c) * logs[name] for name in of.crossing)
        values.append(powers + sum(by * logs[u] * logs[v] for u, v, by in mixed))
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


def _power(of: Range, power: float) -> Range:
    """The range of u^p of a positive quantity."""
    low, high = of if power > 0.0 else of[::-1]
    return _of_ends(lambda end: end**power, (low, high))


def _log(of: Range, power: float) -> Range:
    """The range of p ln u of a positive quantity."""
    low, high = of if power > 0.0 else of[::-1]
    return _of_ends(lambda end: power * np.log(end), (low, high))


def _squared(of: Range, power: float, square: float) -> Range:
    """The range of p t + c t² for t = ln u between two values: it turns at −p / 2 c."""
    values = [power * t + square * t**2 for t in map(np.log, _ends(of))]
    if len(values) > 1:
        turn = np.clip(-power / (2.0 * square), np.log(of[0]), np.log(of[1]))
        values.append(power * turn + square * turn**2)
    least = reduce(np.minimum, values)
    return least, least if len(values) == 1 else reduce(np.maximum, values)


def _added(a: Range, b: Range) -> Range:
    """The range of a sum of two independent quantities."""
    return _of_ends(lambda x, y: x + y, a, b)


def _of_ends(rising: Callable[..., Value], *of: Range) -> Range:
    """The range of a rising function of independent quantities."""
    low = rising(*(least for least, _ in of))
    return low, low if all(least is greatest for least, greatest in of) else rising(*(greatest for _, greatest in of))


def _times(a: Range, b: Range) -> Range:
    """The range of a product of two independent factors."""
    if a[0] is a[1] and b[0] is b[1]:
        product_of = a[0] * b[0]
        return product_of, product_of
    products = [x * y for x in _ends(a) for y in _ends(b)]
    return reduce(np.minimum, products), reduce(np.maximum, products)


def _ends(a: Range) -> Range | tuple[Value]:
    return a[:1] if a[0] is a[1] else a
