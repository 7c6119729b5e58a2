"""Counts the optima, and finds the one design that is best for all cases at once."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nas.devices.answers import Answer, Answers
from nas.devices.transfer import Transfer
from nas.problem.dominance import rounded
from search_spaces.arrays import FloatArray


@dataclass(frozen=True)
class Optimum:
    """A design that is the pick of some cases: its key and their numbers, in order."""

    key: int
    cases: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Universal:
    """One design for all cases that have a pick; of least worst regret, since its loss is the same in every case.

    Where nothing is within the limits of all of them: the design that is in most, then of the lowest loss. regret: its
    loss over each case's pick, nats, (n,), NaN without a pick; violation: as in `Transfer`, (n,). `exact`: of the whole
    space; else among the members of all frontiers and all picks.
    """

    key: int
    fits: int
    of: int
    exact: bool
    regret: FloatArray
    violation: FloatArray

    @property
    def for_all(self) -> bool:
        """Whether it is within the limits of every case that has a pick."""
        return self.fits == self.of

    @property
    def worst(self) -> float:
        """The largest regret among the cases that it fits, nats."""
        return float(np.nanmax(np.where(self.violation <= 0.0, self.regret, np.nan)))


def optima(answers: Sequence[Answer]) -> tuple[Optimum, ...]:
    """The distinct picks, those of most cases first, then by their first case."""
    found: dict[int, list[int]] = {}
    for i, answer in enumerate(answers):
        if answer.pick is not None:
            found.setdefault(int(answer.pick.keys[0]), []).append(i)
    ordered = sorted(found.items(), key=lambda item: (-len(item[1]), item[1][0]))
    return tuple(Optimum(key, tuple(cases)) for key, cases in ordered)


def best_for_all(answers: Answers) -> int | None:
    """Key of the design that fits most cases, of these the one of lowest loss, of these the first; of an enumerated
    space alone, None of a larger one and where no case has a pick."""
    if answers.fits is None or not answers.fits.any():
        return None
    problem = answers.answers[0].case.problem
    keys = np.flatnonzero(answers.fits == answers.fits.max())
    losses = rounded(problem.evaluate(problem.space.genotypes(keys), ("loss",)).metrics["loss"])
    return int(keys[np.argmin(losses)])


def universal(answers: Answers, transfer: Transfer, known: int | None) -> Universal | None:
    """The design for all cases; `known` is that of the whole space, evaluated with the transfers. None without a pick."""
    picked = np.array([answer.pick is not None for answer in answers.answers])
    if not picked.any():
        return None
    fits = (transfer.violations[picked] <= 0.0).sum(axis=0)
    if known is None:
        place = int(np.lexsort((rounded(transfer.losses), -fits))[0])
    else:
        place = int(np.searchsorted(transfer.keys, known))
    regret = transfer.losses[place] - np.array([answer.loss for answer in answers.answers])
    return Universal(
        int(transfer.keys[place]),
        int(fits[place]),
        int(picked.sum()),
        known is not None,
        regret,
        np.where(picked, transfer.violations[:, place], np.nan),
    )
