"""Marks on the fields of a study: what a continuation of a run may change, and what `devices` and `compare` vary.

A field without a mark must agree on a continuation, and is the same in all cases and runs of such a study.
"""

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


@dataclass(frozen=True)
class Named:
    """A key that a run records only where its study names it."""


@dataclass(frozen=True)
class PerCase:
    """A key that a case of `devices` may have for itself: what its costs depend on besides the device."""


@dataclass(frozen=True)
class PerRun:
    """A key that a comparison sets in each of its runs, so that no study of it does."""


@dataclass(frozen=True)
class SingleRun:
    """A key that a comparison refuses; `instead`: what to do."""

    instead: str


ALWAYS, FREE, AT_START = Part(), Free(), AtStart()
CASE, NAMED, RUN = PerCase(), Named(), PerRun()
STRATEGY, ANSWER = Part("strategy"), Part("answer", always=False)
