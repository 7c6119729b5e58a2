"""The part of a study's space that its engine is known to run as it was trained."""

from typing import Any

import numpy as np

from nas.files.faults import Faults
from nas.study.configuration import StudyConfig
from objectives.engines import RUNS, TOP_1, Runs, engine_of, kinds_of_rule
from search_spaces.axes_schema import Conditions, Rule
from search_spaces.mixes import Mixes
from search_spaces.specification import SpaceSpecification, largest_top_k


def run_by_engine(
    config: StudyConfig, space: SpaceSpecification | None, faults: Faults
) -> tuple[SpaceSpecification | None, list[str]]:
    """The space without what the study's engine is not known to run, and the sentence that says what was left out.

    Nothing is left out without an engine, or of one that `objectives/engines.yaml` does not know, which is said.
    """
    if space is None or not config.engine:
        return space, []
    name = engine_of(config.engine)
    if (engine := RUNS.get(name)) is None:
        return space, [f"what {name} runs is not known here ({', '.join(RUNS)} are): no design is left out for it"]
    content = space.model_dump(mode="json", by_alias=True, exclude_none=True)
    left_out = [
        *_formats(name, engine, config, content, faults),
        *_experts(name, engine, space, content, faults),
        *_layers(name, engine, space, content, faults),
    ]
    if not left_out:
        return space, []
    return SpaceSpecification.model_validate(content), [
        f"left out, as {name} is not known to run it as trained: {', '.join(left_out)}"
    ]


def _formats(name: str, engine: Runs, config: StudyConfig, content: dict[str, Any], faults: Faults) -> list[str]:
    """Formats among the designs' own that go; one that all designs have is refused."""
    own = content["axes"].get("precision")
    given = own or [config.precision]
    kept = [each for each in given if engine.runs_format(each)]
    if not kept:
        known, got = ", ".join(engine.formats), ", ".join(given)
        faults.add(
            ("precision",),
            f"expected a format that {name} is known to run, {known}, got {got}; choose one, or drop engine",
        )
    elif own:
        content["axes"]["precision"] = kept
    return [each for each in given if each not in kept]


def _experts(name: str, engine: Runs, space: SpaceSpecification, content: dict[str, Any], faults: Faults) -> list[str]:
    """That designs with one expert a token go, where the engine renormalises its weight."""
    axes, conditions = space.axes, space.conditions
    if engine.top_1_routing or 1 not in axes.top_k or max(axes.n_experts) == 1 or (conditions.min_top_k or 1) > 1:
        return []
    kept = [n for n in axes.n_experts if n == 1 or any(2 <= k <= largest_top_k(n, conditions) for k in axes.top_k)]
    if not kept:
        faults.add(("engine",), f"expected one that runs {TOP_1}, all that {space.name} has, got {name}; add top_k 2")
        return []
    content["axes"]["n_experts"] = kept
    content["conditions"]["min_top_k"] = 2
    return [f"{TOP_1} (weights are renormalised)"]


def _layers(name: str, engine: Runs, space: SpaceSpecification, content: dict[str, Any], faults: Faults) -> list[str]:
    """Rules that go: those of a kind that not every design of the space, with experts or without, is run with."""
    sparse, square = {n > 1 for n in content["axes"]["n_experts"]}, space.axes.n_heads is None

    def runs(rule: Rule) -> bool:
        kinds = kinds_of_rule(rule)
        return all(engine.runs_kind(kind, sparse=s, square=square) for kind in kinds for s in sparse)

    kept = [rule for rule in space.rules if runs(rule)]
    gone = dict.fromkeys(kind for rule in space.rules if rule not in kept for kind in kinds_of_rule(rule))
    if not gone:
        return []
    conditions, axes = Conditions.model_validate(content["conditions"]), space.axes
    valid = (
        Mixes.from_rules(axes.depth, kept, conditions).valid.any(axis=1) if kept else np.zeros(len(axes.depth), bool)
    )
    if not valid.any():
        faults.add(
            ("engine",), f"expected one that runs layers of {space.name}, got {name}; choose another, or add full"
        )
        return []
    content["axes"]["depth"] = [axes.depth[i] for i in np.flatnonzero(valid).tolist()]
    content["axes"]["layers"] = [rule.model_dump(mode="json") for rule in kept]
    return [f"layers of {kind}" for kind in gone]
