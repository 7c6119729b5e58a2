"""The space of a study: the one it names, with the formats, the tokens and the limits on kinds of layers that it gives beside it.

Such limits, `full_layers>=4` or `kv_shared<=0`, stand among the budgets and are conditions of the space. Loss laws do not see of
which kinds layers are: nothing but limits keeps the cheapest kind from winning everywhere.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from pydantic import ValidationError

from nas.files.faults import Faults, meant, unknown
from nas.study.configuration import StudyConfig
from objectives.device import Device
from objectives.engines import EXPERTS, RUNS, TOP_1, Runs, engine_of, kinds_of_rule
from objectives.quantities import counted
from objectives.token_curve import TokenCurve
from search_spaces.axes_schema import CAPABILITIES, OF_NAMES, OF_RULES, UPPER, Axes, Conditions, Rule
from search_spaces.columns import OF_SERVING
from search_spaces.mixes import Mixes
from search_spaces.specification import SpaceSpecification, largest_top_k, smallest_top_k


def study_space(
    config: StudyConfig, space: SpaceSpecification | None, curve: TokenCurve | None, faults: Faults
) -> SpaceSpecification | None:
    """The space with the study's formats, limits, and tokens: several are its axis of them, one leaves it without.

    Vocabularies as well, each of a size that `curve` counts.
    """
    limits = _layer_limits(config.budgets, faults)
    heads = _heads(config, space, faults)
    sizes = heads.get("vocabulary") or (space and space.axes.vocabulary) or []
    try:
        if curve is not None and sizes:
            curve.bytes_per_token(np.array(sizes))
    except ValueError as error:
        faults.add(("vocabulary",), str(error).removeprefix("vocabulary: "))
    serving = {name: words for name in OF_SERVING if (words := getattr(config.serving, name))}
    if space is None or (
        config.tokens is None and not (config.precisions or config.devices or limits or heads or serving)
    ):
        return space if space is None or space.axes.device is None else _without_devices(space)
    content = _within(space, limits, faults)
    content["axes"].pop("device", None)
    if config.devices:
        content["axes"]["device"] = list(config.devices)
    content["axes"] |= heads
    if config.precisions:
        content["axes"]["precision"] = list(dict.fromkeys(config.precisions))
    for name, words in serving.items():
        content["axes"] |= {name: words}
        if len(words) == 1:
            content["axes"].pop(name)
    if config.tokens is not None:
        content["axes"].pop("tokens", None)
    if isinstance(config.tokens, list):
        content["axes"]["tokens"] = config.tokens
    try:
        return SpaceSpecification.model_validate(content)
    except ValidationError as error:
        for each in error.errors():
            text = str(each.get("ctx", {}).get("error", each["msg"]))
            at = next((name for name in ("tokens", "device", *heads, *OF_SERVING) if name in each["loc"]), "precisions")
            faults.add((at,), text.removeprefix(f"axes.{at}: "))
        return space


def narrowed(space: SpaceSpecification, only: Mapping[str, Sequence[Any]], faults: Faults) -> SpaceSpecification:
    """The space of the designs whose axes have the values of `only` alone: numbers, words, or `8..24` with both ends, of which one may be open.

    Values of other axes that none of these designs has go as well. A value that no design has, or an axis that there is not, is a fault.
    """
    stated = {name: values for name, values in space.axes if values is not None}
    axes = {n: space.kv_axis() if n == "n_kv_heads" else v for n, v in stated.items() if n not in (OF_RULES, OF_NAMES)}
    called = {name: meant(name, stated) for name in only}
    for name, axis in called.items():
        if name != axis and [*called.values()].count(axis) > 1:
            faults.add(("only", name), f"expected {axis} under one name, got it under two; drop one")
    only = {called[name]: values for name, values in only.items()}
    for name in only.keys() - axes.keys():
        faults.add(("only", name), unknown(f"an axis of numbers or words of {space.name}", name, axes))
    wanted = {name: values for name, values in only.items() if name in axes}
    kept = {
        name: [v for v in axes[name] if any(_is(v, written) for written in values)] for name, values in wanted.items()
    }
    if all(kept.values()):
        kept |= _having_designs(space.model_copy(update={"axes": space.axes.model_copy(update=kept)}))
    for name, values in wanted.items():
        for written in (text for text in values if not any(_is(value, text) for value in kept[name])):
            shown, beside = ", ".join(map(str, axes[name])), " beside the others" * (len(wanted) > 1)
            low, dash, high = str(written).partition("-")
            remedy = f"write {low}..{high}" if dash and low and high else "correct it"
            text = f"expected values that some design of {space.name} has{beside}, of {shown}, got {written}; {remedy}"
            faults.add(("only", name), text)
    if not all(kept.values()) and not faults.lines:
        faults.add(("only",), f"expected values that some design of {space.name} has together, got none; loosen one")
    if faults.lines or all(kept[name] == axes[name] for name in kept):
        return space
    label = "-".join([space.name, *(f"{name}-{'.'.join(map(str, values))}" for name, values in wanted.items())])
    content = space.model_dump(mode="json", by_alias=True, exclude_none=True)
    content |= {"name": re.sub(r"[^A-Za-z0-9_.-]", "_", label)[:60], "description": f"{space.name}, narrowed"}
    try:
        return SpaceSpecification.model_validate({**content, "axes": {**content["axes"], **kept}})
    except ValidationError as error:
        faults.add_validation(error, ("only",), SpaceSpecification)
        return space


def _is(value: Any, text: Any) -> bool:
    """Whether a value of an axis is what was written: the same number or word, or inside `8..24`."""
    low, dots, high = str(text).partition("..")
    try:
        if dots:
            least, most = counted(low or 0, "8"), counted(high, "24") if high else math.inf
            return not isinstance(value, str) and least <= value <= most
        return str(value).lower() == str(text).strip().lower() or float(value) == counted(text, "32k")
    except ValueError:
        return False


def _having_designs(space: SpaceSpecification) -> dict[str, list[Any]]:
    """The experts and widths of a space that some design has; the space need not be valid otherwise."""
    axes, conditions = space.axes, space.conditions
    experts = [
        n for n in axes.n_experts
        if any(smallest_top_k(n, conditions) <= k <= largest_top_k(n, conditions) for k in axes.top_k)
    ]  # fmt: skip
    fitting = [bool(valid.any()) for valid in space.heads().valid]
    limit = conditions.max_expert_ffn_ratio or math.inf
    least = [0] if axes.expert_size is None else axes.expert_size
    widths = [w for w, fits in zip(axes.width, fitting, strict=True) if fits and min(least) <= limit * w]
    return {"n_experts": experts, "width": widths}


def _without_devices(space: SpaceSpecification) -> SpaceSpecification:
    """The space of designs that are all on one device, which the study holds."""
    return space.model_copy(update={"axes": space.axes.model_copy(update={"device": None})})


def without_axes(config: StudyConfig, axes: Axes) -> StudyConfig:
    """The study without a vocabulary of all designs where its space has an axis of them."""
    return config if axes.vocabulary is None else config.model_copy(update={"vocabulary": 0, "tied": True})


def _heads(config: StudyConfig, space: SpaceSpecification | None, faults: Faults) -> dict[str, list[Any]]:
    """Axes of vocabulary and tying: those that the study gives by naming several; beside an axis of one the study's value of the other."""
    given = {"vocabulary": config.vocabulary, "tied": config.tied}
    several = {name: value for name, value in given.items() if isinstance(value, list)}
    axes = {name for name in given if space is not None and getattr(space.axes, name) is not None}
    for name in axes - several.keys():
        if (name,) in faults.origins and given[name] not in (0, True):
            text = f"expected several beside the space's axis of them, got {given[name]}; drop it, or give a list"
            faults.add((name,), text)
    if not several and not axes:
        return {}
    if config.vocabulary == 0 and "vocabulary" not in axes:
        faults.add(("vocabulary",), "expected a vocabulary beside an axis of tied, got none; give one, or several")
    besides = (
        {"vocabulary": config.vocabulary, "tied": False} if config.tied is False else {"vocabulary": config.vocabulary}
    )
    alone = {name: [value] for name, value in besides.items() if name not in {*several, *axes}}
    return {**several, **alone}


def _layer_limits(budgets: Mapping[str, Any], faults: Faults) -> dict[str, int]:
    """The limits on capabilities among a study's budgets, by name."""
    found = dict[str, int]()
    for name in CAPABILITIES:
        try:
            limit = _most if name in UPPER else _least
            found |= {name: limit(name, budgets[name])} if name in budgets else {}
        except ValueError as error:
            faults.add(("budgets", name), str(error))
    return found


def _least(name: str, written: Any) -> int:
    """The limit of `>=4`.

    Raises:
        ValueError: no whole number of at least 1, or another side.
    """
    text = str(written).strip()
    number = text.removeprefix(">=").strip()
    if not text.startswith(">="):
        raise ValueError(f"expected {name}>=limit, at least, got {name}={written}; write for example '{name}>=4'")
    if not number.isdecimal() or int(number) < 1:
        raise ValueError(
            f"expected a whole number of at least 1, got {number}; no loss law sees the layers' kinds, and without a lower "
            "limit the cheapest would win everywhere: raise it"
        )
    return int(number)


def _most(name: str, written: Any) -> int:
    """The limit of `<=0`.

    Raises:
        ValueError: no whole number, or another side.
    """
    text = str(written).strip()
    if not text.isdecimal():
        raise ValueError(
            f"expected {name}<=limit, at most, a whole number of layers, got {name}={written}; write for example '{name}<=0'"
        )
    return int(text)


def _within(space: SpaceSpecification, limits: Mapping[str, int], faults: Faults) -> dict[str, Any]:
    """The space's content within the limits, without depths that none of its mixes of layers is within at."""
    content = space.model_dump(mode="json", by_alias=True, exclude_none=True)
    if space.axes.layers is None:
        for name in limits:
            faults.add(
                ("budgets", name),
                f"expected a space with axes.layers, got {space.name}, whose layers are all of full attention; drop it",
            )
        return content
    for name, limit in limits.items():
        condition = CAPABILITIES[name]
        tighter = min if name in UPPER else max
        content["conditions"][condition] = tighter(limit, content["conditions"].get(condition, limit))
    valid = Mixes.from_rules(
        space.axes.depth, space.axes.layers, Conditions.model_validate(content["conditions"])
    ).valid
    content["axes"]["depth"] = [space.axes.depth[i] for i in np.flatnonzero(valid.any(axis=1)).tolist()]
    if not content["axes"]["depth"]:
        asked = " and ".join(f"{name} {'<=' if name in UPPER else '>='} {limit:,}" for name, limit in limits.items())
        faults.add(("budgets",), f"expected limits that some layers of {space.name} meet, got {asked}; loosen one")
        return space.model_dump(mode="json", by_alias=True, exclude_none=True)
    return content


def run_by_engine(
    config: StudyConfig, space: SpaceSpecification | None, devices: Iterable[Device], faults: Faults
) -> tuple[SpaceSpecification | None, list[str]]:
    """The space without what the engine is not known to run, and the sentence that says what was left out.

    The engine is the study's, else the one that every measured profile of its devices is of, where picks must be usual. Nothing is left out without an engine, of a device's that runs none of the formats, or of one of which nothing is known; of the
    study's own that is said.
    """
    measured = {engine_of(p.engine) for device in devices for p in device.profiles if p.mode == device.mode}
    of_devices = measured.pop() if len(measured) == 1 and config.outside != "allow" else ""
    name = engine_of(config.engine or of_devices)
    if space is None or not name:
        return space, []
    if (engine := RUNS.get(name)) is None:
        unknown_one = f"what {name} runs is not known here ({', '.join(RUNS)} are): no design is left out for it"
        return space, [unknown_one] if config.engine else []
    if not config.engine and not any(map(engine.runs_format, space.axes.precision or [config.precision])):
        return space, []
    content = space.model_dump(mode="json", by_alias=True, exclude_none=True)
    left_out = [
        *_formats(name, engine, config, content, faults),
        *_experts(name, engine, space, content, faults),
        *_layers(name, engine, space, content, faults),
    ]
    if not left_out:
        return space, []
    whose = "" if config.engine else ", whose times the device has,"
    return SpaceSpecification.model_validate(content), [
        f"left out, as {name}{whose} is not known to run it as trained: {', '.join(left_out)}"
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
    """That designs with experts go, or with one expert a token, where the engine does not run them or renormalises its weight."""
    axes, conditions = space.axes, space.conditions
    if max(axes.n_experts) == 1:
        return []
    if not engine.experts:
        if 1 not in axes.n_experts:
            faults.add(
                ("engine",),
                f"expected one that runs {EXPERTS}, which all of {space.name} has, got {name}; add 1 to n_experts",
            )
            return []
        content["axes"] |= {"n_experts": [1], "top_k": [1]}
        return [EXPERTS]
    if engine.top_1_routing or 1 not in axes.top_k or (conditions.min_top_k or 1) > 1:
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
