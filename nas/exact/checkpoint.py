"""Checkpoints of a long solution, so that it resumes after a kill: plain content by section, never code."""

import json
import time
from collections.abc import Callable, Mapping
from typing import Any

from nas.problem.problem import Problem

SAVE_EVERY_S = 2.0


def section_of(kind: str, problem: Problem, *further: str) -> str:
    """Return a name that is unique to a question about the space: method, vocabulary, settings, objectives, exact budgets."""
    objectives = [objective.name for objective in problem.objectives]
    limits = [[budget.metric, budget.limit] for budget in problem.budgets]
    settings = [{name: values.tolist() for name, values in problem.space.settings.items()}] * bool(
        problem.space.settings
    )
    return json.dumps([kind, problem.vocabulary, *settings, objectives, limits, *further])


class SolverCheckpoint:
    """Saved sections by name; `keep` receives all of them every SAVE_EVERY_S seconds."""

    def __init__(
        self, kept: Mapping[str, Any] | None = None, keep: Callable[[Mapping[str, Any]], None] = lambda sections: None
    ) -> None:
        self.sections, self.keep, self.saved = dict(kept or {}), keep, time.monotonic()

    def read(self, section: str) -> dict[str, Any]:
        """Return the content of a section; empty if nothing was written."""
        found: dict[str, Any] = self.sections.get(section, {})
        return found

    @property
    def due(self) -> bool:
        """True if it is time to write again."""
        return time.monotonic() - self.saved >= SAVE_EVERY_S

    def write(self, section: str, content: dict[str, Any]) -> None:
        """Replace a section and save all of them."""
        self.sections[section] = content
        self.keep(self.sections)
        self.saved = time.monotonic()
