"""What public rows say of speculation, where a study says nothing of its own."""

from functools import cache

from pydantic import BaseModel, ConfigDict

from objectives.packaged import packaged
from objectives.serving import Acceptance, Drafter, Serving


class TypicalServing(BaseModel):
    """Acceptance by what drafts and by drafted tokens, what a further position costs, overlap of positions, effect on the loss."""

    model_config = ConfigDict(extra="forbid")
    acceptance: dict[Drafter, dict[int, float]]
    position_cost: float
    position_overlap: float
    mtp_nats: float


@cache
def shipped() -> TypicalServing:
    """The figures that ship."""
    return TypicalServing.model_validate(packaged("objectives.typical", "serving"))


def typical_serving() -> Serving:
    """Serving without anything drafted or slow, with the figures that ship for where something is."""
    known = shipped()
    return Serving(
        acceptance={kind: Acceptance(shares=shares) for kind, shares in known.acceptance.items()},
        position_cost=known.position_cost,
        position_overlap=known.position_overlap,
        mtp_nats=known.mtp_nats,
    )
