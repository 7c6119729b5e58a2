"""What public rows say of speculation and of slow memory, where a study or a device says nothing of its own."""

from functools import cache

from pydantic import BaseModel, ConfigDict

from objectives.device import SlowMemory
from objectives.plugins import packaged
from objectives.serving import Acceptance, Drafter, Serving


class TypicalAcceptance(BaseModel):
    """The probability that a first drafted token is accepted: median, and ends of what models, tasks and contexts have."""

    model_config = ConfigDict(extra="forbid")
    share: float
    least: float
    most: float


class TypicalSlow(BaseModel):
    """Host memory: GB/s, ms more that a layer waits with hot experts."""

    model_config = ConfigDict(extra="forbid")
    bandwidth: float
    hot: float


class TypicalServing(BaseModel):
    """The figures of `serving.yaml`, which says what each is."""

    model_config = ConfigDict(extra="forbid")
    acceptance: dict[Drafter, TypicalAcceptance]
    position_bits: float
    position_overlap: float
    mtp_nats: float
    slow: TypicalSlow


@cache
def shipped() -> TypicalServing:
    """The figures that ship."""
    return TypicalServing.model_validate(packaged("objectives.typical", "serving"))


def typical_serving() -> Serving:
    """Serving without anything drafted or slow, with the figures that ship for where something is."""
    known = shipped()
    return Serving(
        acceptance={kind: Acceptance(each.share) for kind, each in known.acceptance.items()},
        position_bits=known.position_bits,
        position_overlap=known.position_overlap,
        mtp_nats=known.mtp_nats,
    )


def with_typical_rates(memory: SlowMemory) -> SlowMemory:
    """Slow memory with the rate of public rows where its file states none."""
    if memory.bandwidth is not None:
        return memory
    return memory.model_copy(update={"bandwidth": shipped().slow.bandwidth * 1e9, "typical": True})
