"""Published models, and architectures written out, to compare with."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from os.path import isdir
from pathlib import Path
from typing import Any

from nas.errors import UsageError
from nas.files import yaml_source
from nas.files.faults import Faults, unknown
from nas.problem.objective import Baseline, Budget, PickQuery
from nas.problem.problem import Problem
from nas.study.config_file import architecture_of, read_config, text_part
from objectives.display_text import shown_name
from objectives.plugins import documents, normalised
from objectives.published_models import MODELS, further_models, model_ids, models_named
from search_spaces.architectures import Architectures, one
from search_spaces.columns import unknown_columns


def baselines_of(given: Sequence[str | Mapping[str, Any]], faults: Faults) -> list[Baseline]:
    """The models to compare with, each by name, columns or its config.json."""
    found = []
    for i, item in enumerate(given):
        try:
            found.append(baseline(item))
        except (UsageError, ValueError) as error:
            faults.add(("baselines", i), str(error))
    return found


def baseline(item: str | Mapping[str, Any]) -> Baseline:
    """A published model by name, the model of a config.json (its content, or `{config: path}`; `name` gives another, `towers: true` holds them too), or columns.

    Raises:
        UsageError: no such model, or a config.json that columns do not hold.
        ValueError: columns that are no architecture, a line a fault.
    """
    if isinstance(item, Mapping) and "config" in item:
        label, architecture = _of_config(item)
    elif isinstance(item, Mapping) and "model_type" in item:
        label, architecture = (
            str(item.get("name", item["model_type"])),
            architecture_of(text_part({key: value for key, value in item.items() if key != "name"})),
        )
    else:
        label, architecture = _of_columns(item)
    return Baseline(shown_name(label), architecture)


def model_named(text: str) -> Baseline:
    """A published model by its name, or the one that a config.json, or a folder with one, describes.

    Raises:
        UsageError: no such model, or a config.json that columns do not hold.
    """
    path = config_path(text)
    return baseline(text if path is None else {"config": str(path)})


def _of_config(item: Mapping[str, Any]) -> tuple[str, Architectures]:
    """Name and architecture of `{config: path}`.

    Raises:
        UsageError: other keys beside it, or a config.json that columns do not hold.
    """
    if others := [str(key) for key in item if key not in ("config", "name", "towers")]:
        raise UsageError(f"{', '.join(others)}: expected config, name and towers alone, got more; the file says it")
    given, towers = item["config"], item.get("towers", False)
    if not isinstance(towers, bool):
        raise UsageError(f"towers: expected true or false, got {towers!r}; write towers: true")
    if not isinstance(given, str):
        raise UsageError(
            f"config: expected the path of a config.json, got {given!r}; write {{config: model/config.json}}"
        )
    path = Path(given, "config.json") if isdir(given) else Path(given)
    return str(item.get("name", _name_of(path))), read_config(path, towers=towers)


def _name_of(path: Path) -> str:
    """The folder of a config.json, another file's own name."""
    own = path.resolve()
    return own.parent.name if own.name == "config.json" and own.parent.name else own.stem


def config_path(text: str) -> Path | None:
    """The config.json that a text names, itself or by its folder; None for a published model's name."""
    path = Path(text)
    if path.suffix == ".json":
        return path
    return path / "config.json" if normalised(text) not in documents(MODELS) and isdir(path) else None


def _of_columns(item: str | Mapping[str, Any]) -> tuple[str, Architectures]:
    """Name and architecture of a published model, or of columns.

    Raises:
        UsageError: no such model.
        ValueError: columns that are no architecture.
    """
    if isinstance(item, str):
        return _published(item)
    columns = {key: value for key, value in item.items() if key not in ("name", "source")}
    return str(item.get("name", "custom")), one(columns)


@lru_cache
def _published(name: str) -> tuple[str, Architectures]:
    """Name and architecture of a published model.

    Raises:
        UsageError: none has that name, or several.
    """
    ids = models_named(name)
    if len(ids) > 1:
        raise UsageError(f"expected one published model, got {name!r}, which may be {' or '.join(ids)}; take one")
    if not ids:
        raise UsageError(unknown("a published model", name, model_ids()))
    if ids[0] in further_models():
        entry = further_models()[ids[0]]
        return entry["name"], architecture_of(entry["config"])
    return _of_columns(yaml_source.read(documents(MODELS)[ids[0]])[0])


def architecture_from(text: str) -> Architectures:
    """An architecture from `depth=16,width=2048,…`."""
    pairs = [part.partition("=") for part in re.split(r"[,\s]+", text.strip()) if part]
    if not pairs or not all(sign for _, sign, _ in pairs):
        raise UsageError(f"architecture: expected name=value pairs, got {text!r}; write depth=16,width=2048,…")
    if faults := unknown_columns([name for name, _, _ in pairs]):
        raise UsageError("\n".join(f"architecture: {fault}" for fault in faults))
    try:
        return one({name: value for name, _, value in pairs})
    except ValueError as error:
        raise UsageError(str(error)) from None


def baseline_questions(problem: Problem, known: Baseline) -> list[PickQuery]:
    """The picks at most as slow as a baseline: of any memory, of its memory, dense of its memory, of twice its memory.

    Memory is that of the weights, memory_gb; each is asked without the LM head on both, and with it on both, or, where
    vocabulary is a gene, with the own one of each.

    Raises:
        ValueError: the latency model does not cover the baseline.
    """
    own = int(known.architecture.vocabulary[0])
    with_head = () if problem.scenario.latency == "closed_form" or not own else (own,)
    asked = []
    heads = {size: f"LM head of {size:,}" if size else "no LM head" for size in (0, problem.vocabulary, *with_head)}
    for vocabulary, head in ({None: "own LM heads"} if problem.space.own_heads else heads).items():
        variant = problem.with_vocabulary(vocabulary)
        theirs = variant.assess(variant.headed(known.architecture))
        label = f"{known.label}, {head}"
        as_fast, same, twice = (
            Budget(metric, factor * float(theirs[metric][0]))
            for metric, factor in (("total_ms", 1), ("memory_gb", 1), ("memory_gb", 2))
        )
        at_once = PickQuery(label, as_fast, vocabulary, known.label)
        asked += [
            at_once,
            replace(at_once, label=f"{label}, equal memory", within=(same,)),
            replace(at_once, label=f"{label}, equal memory, dense", within=(same,), dense=True),
            replace(at_once, label=f"{label}, twice the memory", within=(twice,)),
        ]
    return asked
