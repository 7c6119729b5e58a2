"""Optuna's model-based samplers: one architecture at a time from all evaluations, restarted from the log alone."""

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

from optuna.samplers import BaseSampler
from optuna.trial import FrozenTrial, TrialState, create_trial

from nas.problem.evaluations import Evaluations
from nas.record.folder import versions
from nas.search.strategy import StrategyContext
from nas.strategies._optuna import Encoding, OptunaStrategy, Repeats, quiet, usable
from nas.strategies._variation import content

DECISIVE = ("numpy", "scipy", "optuna", "torch")


class OneByOne(OptunaStrategy):
    """A sampler that proposes one architecture at a time from all evaluations; `make(seed)` builds it.

    It is built again from the seed and the number of architectures so far, so that what is asked
    next follows from the seed and the log alone: `restore` needs no generator state and samples
    nothing.
    """

    def __init__(
        self,
        context: StrategyContext,
        encoding: Encoding,
        repeats: Repeats,
        batch: int,
        make: Callable[[int], BaseSampler],
    ) -> None:
        super().__init__(context, encoding, repeats)
        self.batch, self.make = batch, make
        self.told, self.digest = 0, hashlib.blake2b(digest_size=16)
        self.versions, self.known = versions(DECISIVE), context.known_rows
        if context.known is not None:
            self._take_over(context.known, 0)

    def _take_over(self, evaluations: Evaluations, known: int) -> None:
        """Evaluations become finished trials, but for the first, which are known; all of them reach the sampler."""
        self.told, self.digest = len(evaluations), hashlib.blake2b(content(evaluations), digest_size=16)
        self.seen.add(evaluations.keys)
        with quiet():
            self.study.add_trials(self._trials(evaluations[slice(known, None)]))

    def tell(self, evaluations: Evaluations) -> None:
        """Objective values and violations, kept count of."""
        super().tell(evaluations)
        self.told += len(evaluations)
        self.digest.update(content(evaluations))

    def state(self) -> dict[str, Any]:
        """The number of evaluations, their hash, and the versions of what decides the next proposal."""
        return {"told": self.told, "digest": self.digest.hexdigest(), "versions": self.versions}

    def restore(self, state: Mapping[str, Any], evaluations: Evaluations) -> bool:
        """The rows become the study's trials, if they are those that the state was taken after."""
        digest = hashlib.blake2b(content(evaluations), digest_size=16).hexdigest()
        if state != {"told": len(evaluations), "digest": digest, "versions": self.versions}:
            return False
        self._take_over(evaluations, self.known)
        self.start = [row for row in self.start if self.seen.rows(self.space.keys(row[None]))[0] < 0]
        return True

    def _trials(self, evaluations: Evaluations) -> list[FrozenTrial]:
        """Rows as the finished trials that asking and telling would have left."""
        violations = [dict(zip(self.constraints, row, strict=True)) for row in evaluations.violations.tolist()]
        parameters = [self._parameters(genotype) for genotype in evaluations.genotypes]
        values = self._values(evaluations).tolist()
        rows = zip(parameters, violations, values, usable(evaluations).tolist(), strict=True)
        return [
            create_trial(
                state=TrialState.COMPLETE if fit else TrialState.FAIL,
                params=params,
                distributions=self.distributions,
                values=values if fit else None,
                constraints=excess if fit else None,
            )
            for params, excess, values, fit in rows
        ]

    def _wanted(self, at_most: int) -> int:
        """A batch, or all given designs at once."""
        return min(max(self.batch, len(self.start)), at_most)

    def _sampler(self, draw: int) -> BaseSampler:
        return self.make(self._seeded(len(self.seen), draw))
