"""The form of a loss law: what its terms are, which coefficients are linear and which are exponents.

    u(x) = Σ_j scale_j · sign_j · Π_f x_f^(±exponent) · Π_g ln(x_g / reference_g) · Π_(a, b) exp(crossed · ln x_a · ln x_b)

and the loss is u, or exp(u), or u times further such sums; terms that are joined count (Σ_j u_j^κ)^(1/κ) together, so that with
κ above 1 the largest of them holds the loss up and the others do less. Scales are linear, so that a fit searches over the exponents
alone; a form with factors, joined terms, crossed exponents, bent quantities or terms of dense or sparse designs alone is for published laws,
which are not fitted here.
"""

import importlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any, Literal, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from objectives.loss_law.features import MOVED_BY, OWNERS, feature, part_of
from objectives.plugins import importable
from objectives.quantities import Name
from search_spaces.architectures import Architectures
from search_spaces.arrays import FloatArray
from search_spaces.columns import Part


class Bend(BaseModel):
    """A quantity made of another: a rising function of it with coefficients of the law.

    saturation, start s and most M: 1/v = 1/(u − 1 + 1/(1/s − 1/M)) + 1/M, so that v(1) = s and v < M.
    repetition, unique U and decay R: v = u up to U, beyond it U + U·R·(1 − exp(−(u/U − 1)/R)).

    Source: Clark et al. 2022, eq. 1, of experts; Muennighoff et al. 2023, eq. 5 and 6, of tokens and parameters.
    `coefficients` names start and most, or the factors of U and then R.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    of: str
    by: Literal["saturation", "repetition"]
    coefficients: tuple[str, ...] = Field(min_length=2)

    def value(self, quantity: FloatArray | float, c: Mapping[str, Any]) -> FloatArray | float:
        """The bent quantity of one or of many, under one law or under many draws, coefficients (draws, 1)."""
        first: list[FloatArray | float]
        last: FloatArray | float
        *first, last = (c[name] for name in self.coefficients)
        if self.by == "saturation":
            inner = quantity - 1.0 + 1.0 / (1.0 / first[0] - 1.0 / last)
            return 1.0 / (1.0 / inner + 1.0 / last)
        unique = math.prod(first)
        beyond = np.maximum(quantity / unique - 1.0, 0.0)
        return np.minimum(quantity, unique) + unique * last * -np.expm1(-beyond / last)


Feature = Callable[[str], FloatArray]
Coefficients = Mapping[str, Any]  # numbers by name, or those of many draws as columns (draws, 1)
EXPONENT = (0.0, 3.0)


def beyond_floats() -> np.errstate:
    """Let what has no floating-point number be ∞ or NaN, without a warning."""
    return np.errstate(over="ignore", invalid="ignore", divide="ignore")


class Term(BaseModel):
    """One term: its scale, exponents per quantity ("-alpha" falls), logarithms with their reference.

    crossed: coefficients by the two quantities whose logarithms they multiply in the exponent, "a b"; u^(α + γ ln v) is
    powers {u: α} and crossed {"u v": γ}. only: the term is 0 for designs of the other kind; dense is one expert.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    scale: str
    powers: dict[str, str] = {}
    logs: dict[str, float] = {}
    crossed: dict[str, str] = {}
    sign: Literal[-1, 1] = 1
    any_sign: bool = Field(False, description="Whether the scale may be negative.")
    only: Literal["dense", "sparse"] | None = None

    @property
    def features(self) -> tuple[str, ...]:
        """The quantities that the term depends on, those that decide whether it counts aside."""
        return tuple(
            dict.fromkeys([*self.powers, *self.logs, *(name for pair in self.crossed for name in pair.split())])
        )

    @property
    def plain(self) -> bool:
        """Whether it is a product of powers and logarithms for every design."""
        return not self.crossed and self.only is None

    @property
    def part(self) -> Part | None:
        """The part of an architecture that alone decides the term; None when several do."""
        if not self.plain or not set(self.features) <= set(OWNERS):
            return None
        owners = {OWNERS[name] for name in self.features if name != "width"} - {"training"}
        if not owners <= {"base", "attention", "ffn"} or len(owners) > 1:
            return None
        found: Part = next(iter(owners), "base")  # type: ignore[arg-type]
        return found

    @property
    def turns(self) -> bool:
        """Whether it may rise and fall along one axis of the FFN: a logarithm beside a power, or two logarithms."""
        logs = [axis for name in self.logs for axis in MOVED_BY.get(name, ())]
        powers = {axis for name in self.powers for axis in MOVED_BY.get(name, ())}
        return len(set(logs)) < len(logs) or bool(powers.intersection(logs))


class Form(BaseModel):
    """Terms by name; what they add up to; further sums that multiply it; the scale of a fit's residuals; bounds of exponents.

    bent: quantities that the terms may name besides the known ones, each a rising function of one of these.
    joined: positive terms that count together by the power mean's sum of coefficient κ > 0, whose name is `join`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    terms: dict[Name, Term] = Field(min_length=1)
    factors: dict[Name, dict[Name, Term]] = {}
    of: Literal["loss", "log_loss"] = "loss"
    residuals: Literal["loss", "log_loss"] = "loss"
    bounds: dict[str, tuple[float, float]] = {}
    bent: dict[str, Bend] = {}
    joined: tuple[Name, ...] = ()
    join: str = ""

    @model_validator(mode="after")
    def _known(self) -> "Form":
        faults = self._faults_of_terms()
        faults += [
            f"bounds.{e}: expected an exponent of the terms; remove it" for e in self.bounds if e not in self.exponents
        ]
        faults += [
            f"bounds.{e}: expected two finite numbers, the lower first, got {low:g} and {high:g}; correct them"
            for e, (low, high) in self.bounds.items()
            if not -np.inf < low <= high < np.inf
        ]
        if len(set(self.scales)) < len(self.scales) or set(self.scales) & set(self.exponents):
            faults.append("terms: expected a scale of its own in every term, other than the exponents; rename them")
        if self.of == "log_loss" and self.residuals == "loss":
            faults.append("residuals: expected log_loss where the terms add up to log_loss, got loss; write log_loss")
        if self.of == "log_loss" and self.factors:
            faults.append("factors: expected none where the terms add up to log_loss, got some; remove them")
        faults += self._faults_of_joined()
        if faults:
            raise ValueError("\n".join(faults))
        return self

    def _faults_of_joined(self) -> list[str]:
        if bool(self.joined) != bool(self.join):
            return ["joined: expected terms and in join the name of their coefficient, got one of both; add the other"]
        faults = [
            f"joined: expected terms that are positive, got {name!r}; correct it"
            for name in self.joined
            if name not in self.terms or self.terms[name].logs or self.terms[name].only or self.terms[name].sign < 0
        ]
        if self.joined and (self.of != "loss" or self.factors):
            faults.append("joined: expected terms that add up to the loss without factors; remove them")
        return faults

    def _faults_of_terms(self) -> list[str]:
        known = (*OWNERS, *self.bent)
        faults = [
            f"terms.{name}: expected quantities among {', '.join(known)}, got {feature!r}; correct it"
            for name, term in self.named_terms
            for feature in term.features
            if feature not in known
        ]
        faults += [
            f"bent.{name}: expected a name of its own and of: one of {', '.join(OWNERS)}, got {bend.of!r}; correct it"
            for name, bend in self.bent.items()
            if bend.of not in OWNERS or name in OWNERS
        ]
        faults += [
            f"terms.{name}.crossed: expected two quantities of the term's powers, got {pair!r}; correct it"
            for name, term in self.named_terms
            for pair in term.crossed
            if len(pair.split()) != 2 or not set(pair.split()) <= set(term.powers) - set(term.logs)
        ]
        return faults + [
            f"terms.{name}: expected logarithms of a quantity over a positive finite number, got {at:g}; correct it"
            for name, term in self.named_terms
            for at in term.logs.values()
            if not 0 < at < np.inf
        ]

    @property
    def named_terms(self) -> tuple[tuple[str, Term], ...]:
        """Every term of the sum and of the sums that multiply it, with its name."""
        return tuple(item for sum_ in (self.terms, *self.factors.values()) for item in sum_.items())

    @property
    def scales(self) -> tuple[str, ...]:
        """Linear coefficients, one per term, in order."""
        return tuple(term.scale for _, term in self.named_terms)

    @property
    def exponents(self) -> tuple[str, ...]:
        """Exponents in the order of their first use."""
        return tuple(dict.fromkeys(name for _, term in self.named_terms for name in _exponents(term)))

    @property
    def coefficients(self) -> tuple[str, ...]:
        """All coefficients: each term's scale, then the exponents it brings; last those that bend a quantity."""
        names = [name for _, term in self.named_terms for name in (term.scale, *_exponents(term))]
        names += [name for bend in self.bent.values() for name in bend.coefficients]
        return tuple(dict.fromkeys([*names, *([self.join] if self.join else [])]))

    @property
    def features(self) -> tuple[str, ...]:
        """Every quantity that the law depends on, those that others are made of in place of these."""
        named = [name for _, term in self.named_terms for name in term.features]
        kinds = ["n_experts"] if any(term.only for _, term in self.named_terms) else []
        return tuple(dict.fromkeys([*(self.bent[name].of if name in self.bent else name for name in named), *kinds]))

    @property
    def fitted(self) -> bool:
        """Whether a fit finds its coefficients: one sum of plain terms of known quantities."""
        return not (self.factors or self.bent or self.joined) and all(term.plain for term in self.terms.values())

    def faults_of(self, c: Mapping[str, float]) -> list[str]:
        """Coefficients that give no loss, `coefficients.NAME: …`: of joined terms, of what joins them, of what bends a quantity."""
        needed = {name: "that bends a quantity" for bend in self.bent.values() for name in bend.coefficients}
        joined = [*(self.terms[name].scale for name in self.joined), *([self.join] if self.join else [])]
        needed |= dict.fromkeys(joined, "of joined terms")
        faults = [
            f"coefficients.{name}: expected a positive number {of}, got {c[name]:g}; correct it"
            for name, of in needed.items()
            if name in c and not c[name] > 0.0
        ]
        ends = [(b.coefficients[0], b.coefficients[-1]) for b in self.bent.values() if b.by == "saturation"]
        return faults + [
            f"coefficients.{start}: expected less than {most}, {c[most]:g}, got {c[start]:g}; correct it"
            for start, most in ends
            if start in c and most in c and not c[start] < c[most]
        ]

    def bound(self, exponent: str) -> tuple[float, float]:
        """Range in which a fit looks for an exponent."""
        return self.bounds.get(exponent, EXPONENT)

    @beyond_floats()
    def values(self, feature: Feature, c: Coefficients) -> dict[str, FloatArray | float]:
        """The terms, each (n,) or a number, of many draws (draws, n) or (draws, 1), times the factors, joined ones by their shares of what they count together.

        `feature` gives the quantities that none is made of.
        """
        powers: dict[tuple[str, str], FloatArray] = {}

        def quantity(name: str) -> FloatArray:
            bend = self.bent.get(name)
            return feature(name) if bend is None else np.asarray(bend.value(feature(bend.of), c))

        found = {name: _value(term, quantity, c, powers) for name, term in self.terms.items()}
        for terms in self.factors.values():
            factor = sum(_value(term, quantity, c, powers) for term in terms.values())
            found = {name: value * factor for name, value in found.items()}
        return found | shares({name: found[name] for name in self.joined}, c[self.join]) if self.joined else found

    def irreducible(self, c: Mapping[str, float]) -> float:
        """What a loss that is a sum keeps however large a model is, nats; 0 of any other."""
        if self.of != "loss" or self.factors:
            return 0.0
        return sum(
            term.sign * c[term.scale]
            for name, term in self.terms.items()
            if not term.features and name not in self.joined
        )

    def loss(self, total: FloatArray) -> FloatArray:
        """The loss of the sum of the terms; infinite where it is beyond floating point."""
        with beyond_floats():
            return total if self.of == "loss" else np.exp(total)


def shares(values: Mapping[str, FloatArray | float], power: FloatArray | float) -> dict[str, FloatArray | float]:
    """Each term's share of what the terms count together, in proportion to u^κ; they add up to it."""
    largest = reduce(np.maximum, values.values())
    powers = {name: (value / largest) ** power for name, value in values.items()}
    total = sum(powers.values())
    return {name: largest * each * total ** (1.0 / power - 1.0) for name, each in powers.items()}


def _exponents(term: Term) -> tuple[str, ...]:
    return (*(name.removeprefix("-") for name in term.powers.values()), *term.crossed.values())


def signed_exponent(written: str, c: Mapping[str, float]) -> float:
    """The power of a quantity as written in a term, "alpha" or "-alpha"."""
    return -c[written[1:]] if written.startswith("-") else c[written]


def _value(
    term: Term, feature: Feature, c: Coefficients, powers: dict[tuple[str, str], FloatArray]
) -> FloatArray | float:
    value: FloatArray | float = term.sign * c[term.scale]
    for name, written in term.powers.items():
        if (name, written) not in powers:
            powers[name, written] = feature(name) ** signed_exponent(written, c)
        value = value * powers[name, written]
    for name, reference in term.logs.items():
        value = value * np.log(feature(name) / reference)
    for pair, written in term.crossed.items():
        first, second = (np.log(feature(name)) for name in pair.split())
        value = value * np.exp(c[written] * first * second)
    if term.only is not None:
        value = value * ((feature("n_experts") == 1.0) == (term.only == "dense"))
    return value


def named_form(form: str | Form) -> Form:
    """A shipped form by its name, or the given one.

    Raises:
        ValueError: no such form.
    """
    if isinstance(form, Form):
        return form
    choices = importable("objectives.law_forms")
    if form not in choices:
        raise ValueError(f"form: expected one of {', '.join(choices)}, got {form!r}; choose one")
    found: Form = importlib.import_module(f"objectives.law_forms.{form}").FORM
    return found


@dataclass(frozen=True)
class LogProduct:
    """What a term multiplies of quantities that belong to one part each: ln Π x^p Π exp(c ln a ln b) = Σ p ln x + Σ c ln a ln b.

    Along the axes of the FFN its quantities are powers of E, K, m and d, so that their part of the sum is linear in ln E
    and in ln m: over a range of FFNs it is least and greatest at corners.
    """

    powers: tuple[tuple[str, float], ...]
    pairs: tuple[tuple[str, str, float], ...] = ()

    @classmethod
    def of_term(cls, term: Term, coefficients: dict[str, float]) -> Self:
        """All that it can hold of a term: no quantity that has a logarithm of its own, and pairs only where it can hold every one.

        Of a term with fewer than two such quantities nothing.
        """
        pairs: list[tuple[str, str]] = [(pair.split()[0], pair.split()[1]) for pair in term.crossed]
        whole = all(part_of(a) == part_of(b) and part_of(a) in ("base", "attention") for a, b in pairs)
        left = {*term.logs, *(name for pair in pairs if not whole for name in pair)}
        powers = {name: signed_exponent(by, coefficients) for name, by in term.powers.items()}
        kept = {name: power for name, power in powers.items() if part_of(name) is not None and name not in left}
        if len(kept) < 2:
            return cls(())
        crossed = ((*pair, coefficients[by]) for pair, by in zip(pairs, term.crossed.values(), strict=True) if whole)
        return cls(tuple(each for each in kept.items() if each[1]), tuple(each for each in crossed if each[2]))

    @property
    def names(self) -> set[str]:
        """The quantities that it holds."""
        return {name for name, _ in self.powers} | {name for a, b, _ in self.pairs for name in (a, b)}

    def of_part(self, architectures: Architectures, part: Part) -> FloatArray | None:
        """The part's own terms of the sum, (n,); None of a part without."""
        logs = {name: np.log(feature(architectures, name)) for name in self.names if part_of(name) == part}
        terms = [power * logs[name] for name, power in self.powers if name in logs]
        terms += [by * logs[a] * logs[b] for a, b, by in self.pairs if a in logs]
        return sum(terms[1:], terms[0]) if terms else None
