"""How a law that is no sum of parts follows from quantities that are, so that exact frontiers need no enumeration."""

from types import MappingProxyType

import numpy as np

from objectives.features import OWNERS
from objectives.form import Term, signed_exponent
from objectives.law import Law
from objectives.parts import Composition
from search_spaces.arrays import FloatArray

BOUNDED = ("ffn", "whole")  # quantities that an FFN adds to: their direction decides


def monotone(law: Law) -> Composition | None:
    """The law as a function of additive quantities; None where it may turn in one that an FFN adds to."""
    quantities = {}
    for name in law.law_form.features:
        if OWNERS[name] == "training":
            continue
        found = {s for term in law.law_form.terms.values() if name in term.features for s in _signs(term, name, law)}
        if OWNERS[name] in BOUNDED and len(found) > 1:
            return None
        quantities[name] = found.pop() if len(found) == 1 else 1
    names = tuple(quantities)
    return Composition(MappingProxyType(quantities), lambda *u: _loss(law, dict(zip(names, u, strict=True))))


def _signs(term: Term, name: str, law: Law) -> set[int]:
    """In which directions a term may go as a quantity grows."""
    scale = term.sign * law.coefficients[term.scale]
    if scale == 0:
        return set()
    others = [other for other in term.logs if other != name]
    if others or (name in term.logs and name in term.powers):
        return {-1, 1}  # a logarithm of something else may be negative
    if name in term.logs:
        return {1 if scale > 0 else -1}
    slope = scale * signed_exponent(term.powers[name], law.coefficients)
    return {1 if slope > 0 else -1} if slope else set()


def _loss(law: Law, quantities: dict[str, FloatArray]) -> FloatArray:
    """The law of quantities given as columns of equal length."""
    form, some = law.law_form, next(iter(quantities.values()))

    def feature(name: str) -> FloatArray:
        return np.full_like(some, law.tokens) if name == "tokens" else quantities[name]

    total: FloatArray = np.zeros_like(some)
    for term in form.values(feature, law.coefficients).values():
        total = total + term
    return np.exp(total) if form.of == "log_loss" else total
