"""What a term of a loss law multiplies of quantities that belong to one part each: its logarithm is a sum of parts."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from objectives.loss_law.features import feature, part_of
from objectives.loss_law.form import Term, signed_exponent
from search_spaces.architectures import Architectures
from search_spaces.arrays import FloatArray
from search_spaces.columns import Part


@dataclass(frozen=True)
class LogProduct:
    """ln Π x^p Π exp(c ln a ln b) = Σ p ln x + Σ c ln a ln b.

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
