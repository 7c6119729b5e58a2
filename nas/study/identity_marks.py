"""Marks on the fields of a study that say what a continuation of a run may change; a field without one must agree."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Part:
    """The part of a run's identity that a key belongs to; a key without a mark belongs to `scenario`.

    always: every run has recorded it. Of any other key a run of an earlier version has none: absent is its default.
    """

    name: str = "scenario"
    always: bool = True


@dataclass(frozen=True)
class Free:
    """A key that may differ; `recorded`: a continuation takes the value that was last given from the run's folder."""

    recorded: bool = True


@dataclass(frozen=True)
class AtStart:
    """A key that other keys have taken in when a run began; a continuation that names it is refused."""


ALWAYS, FREE, AT_START = Part(), Free(), AtStart()
STRATEGY, ANSWER = Part("strategy"), Part("answer", always=False)
