"""Serving beside the roofline: tokens drafted ahead, experts in slow memory, prompts read on another chip."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, Literal, TypeVar

import numpy as np
from pydantic import BaseModel, ConfigDict

from objectives.device import SlowMemory
from objectives.plugins import packaged
from search_spaces.architectures import Architectures
from search_spaces.arrays import FloatArray
from search_spaces.columns import drafted_of, slow_share_of

Drafter = Literal["mtp", "draft"]
FALL = 0.95  # of the probability of acceptance from position to position
Probability = TypeVar("Probability", float, FloatArray)


def accepted_of(first: Probability, drafted: int) -> Probability:
    """Return the expected number of accepted tokens if the first is accepted with probability a: Σ_{j=1..n} a (0.95 a)^(j-1)."""
    return sum((first * (FALL * first) ** j for j in range(drafted)), 0.0 * first)


@dataclass(frozen=True)
class Acceptance:
    """The share of n drafted tokens that is accepted, by n.

    One number a is the probability that the first is accepted: further ones are by less, position j with a (0.95 a)^(j - 1).
    Source: 22 published sequences by position, tokens per step 3.2 % off in the median where one is left out; docs/serving.md.
    """

    each: float | None = None
    shares: Mapping[int, float] = field(default_factory=dict)

    def written(self) -> float | dict[str, float] | None:
        """Return plain content."""
        return {str(n): share for n, share in self.shares.items()} or self.each

    def accepted(self, drafted: int) -> float:
        """Return the expected number of accepted tokens a step: Σ_{j=1..n} a (0.95 a)^(j-1), or n times the share at n.

        Between stated n the share is interpolated, beyond them that of the nearest.
        """
        if self.each is not None:
            return float(accepted_of(self.each, drafted))
        known = sorted(self.shares)
        return drafted * float(np.interp(drafted, known, [self.shares[n] for n in known]))


@dataclass(frozen=True)
class HotExperts:
    """Experts that fast memory copies when the others are slow: their share, and the share of reads that they serve.

    hits: as measured, of no other use of the model; wait_ms: that a layer waits in a step for reads of both kinds.
    """

    share: float = 0.0
    hits: float = 0.0
    wait_ms: float = 0.0


@dataclass(frozen=True)
class Serving:
    """What is drafted ahead, where experts lie, and which chip reads the prompts.

    speculation, experts_in: words of `search_spaces.columns`. draft: one architecture, n = 1, in the study's format;
    draft_apart: what it takes is counted elsewhere, of pairs of models. position_cost: share of a plain step that a further
    position takes beside its operators; None: position_bits over the bits of a weight. position_overlap: share of a sequence's
    further positions in a step that choose experts which its first one chose. mtp_nats: what training with a head for
    multi-token prediction adds to the loss. prompts: the scenario of the chip that reads prompts, None: the same; of that
    scenario link: bytes/s by which it hands the KV cache over, 0 where both chips share their memory. stated: what drafts with
    an acceptance of the study's own.
    """

    speculation: str = "none"
    experts_in: str = "fast"
    acceptance: Mapping[Drafter, Acceptance] = field(default_factory=dict)
    draft: Architectures | None = None
    draft_apart: bool = False
    hot: HotExperts = HotExperts()
    position_cost: float | None = None
    position_bits: float = 0.0
    position_overlap: float = 0.0
    mtp_nats: float = 0.0
    prompts: Any = None  # a `Scenario`, which stands above: it holds how it serves
    link: float = 0.0
    stated: frozenset[Drafter] = frozenset()

    @property
    def plain(self) -> bool:
        """True if one chip reads and writes token by token from one memory."""
        return self.speculation == "none" and self.experts_in == "fast" and self.prompts is None

    @cached_property
    def drafter(self) -> str:
        """The kind of draft: mtp, draft, or "" for none."""
        return drafted_of(self.speculation)[0]

    @property
    def drafts_itself(self) -> bool:
        """True if a head of the model drafts."""
        return self.drafter == "mtp"

    @property
    def with_draft(self) -> bool:
        """True if a draft model is counted."""
        return self.drafter == "draft" and not self.draft_apart

    @cached_property
    def drafted(self) -> int:
        """n, tokens drafted in a step."""
        return drafted_of(self.speculation)[1]

    @cached_property
    def accepted(self) -> float:
        """Expected number of accepted tokens a step.

        Raises:
            ValueError: nothing says it.
        """
        if not self.drafted:
            return 0.0
        known = next((a for kind, a in self.acceptance.items() if kind == self.drafter), None)
        if known is None:
            raise ValueError(
                f"acceptance: expected the share of drafted tokens that {self.speculation} has accepted, got none; "
                f"give acceptance.{self.drafter}"
            )
        return known.accepted(self.drafted)

    @property
    def acceptance_stated(self) -> bool:
        """True if the study gives the acceptance itself."""
        return not self.drafter or self.drafter in self.stated

    @cached_property
    def slow_share(self) -> float:
        """Share of layers whose experts (for a dense design, the FFN) lie in slow memory."""
        return slow_share_of(self.experts_in)


class TypicalAcceptance(BaseModel):
    """The probability that the first drafted token is accepted: median and range over models, tasks and contexts."""

    model_config = ConfigDict(extra="forbid")
    share: float
    least: float
    most: float


class TypicalSlow(BaseModel):
    """Host memory: GB/s, and the extra ms that a layer waits with hot experts."""

    model_config = ConfigDict(extra="forbid")
    bandwidth: float
    hot: float


class TypicalServing(BaseModel):
    """The figures of `serving.yaml`, which explains each."""

    model_config = ConfigDict(extra="forbid")
    acceptance: dict[Drafter, TypicalAcceptance]
    position_bits: float
    position_overlap: float
    mtp_nats: float
    slow: TypicalSlow


@cache
def shipped() -> TypicalServing:
    """Return the shipped figures."""
    return TypicalServing.model_validate(packaged("objectives.typical", "serving"))


def typical_serving() -> Serving:
    """Return serving without drafts or slow memory, with the shipped figures for when they are used."""
    known = shipped()
    return Serving(
        acceptance={kind: Acceptance(each.share) for kind, each in known.acceptance.items()},
        position_bits=known.position_bits,
        position_overlap=known.position_overlap,
        mtp_nats=known.mtp_nats,
    )


def with_typical_rates(memory: SlowMemory) -> SlowMemory:
    """Return slow memory with a rate from public measurements if its file states none."""
    if memory.bandwidth is not None:
        return memory
    return memory.model_copy(update={"bandwidth": shipped().slow.bandwidth * 1e9, "typical": True})
