"""A study's raw configuration: defaults < preset < file < flags, with where each value came from."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from pathlib import Path as FilePath
from typing import Any

from nas.errors import UsageError
from nas.files import yaml_source
from nas.files.faults import CHOOSE, Path, near_file, unknown
from nas.problem.objective import EXTRAPOLATION, INSIDE
from nas.study.catalogue import NAMED, id_and_mode
from nas.study.configuration import IN_TEXT, IN_TOKENS
from nas.study.value_parsers import split_budgets, split_names, written_only
from nas.terminal.flags import flag_name
from objectives.plugins import documents

OTHERS = {  # keys of files that hold more than one study, and the command that takes them
    "studies": ("a comparison of several", "compare"),
    **dict.fromkeys(("cases", "workloads", "models", "as_fast_as"), ("cases on several devices", "devices")),
}
CARRIED = "candidates"  # of a study that was written beside candidates: the file that it is of
ADDED = (("budgets",), ("params",), ("only",))
EXAMPLES = {"--set": "params.population=50", "--param": "population=50", "--cap": "optuna_gp=60"}


def layered(
    flags: Mapping[str, Any], settings: Sequence[str], config: str | None
) -> tuple[dict[str, Any], dict[Path, str]]:
    """The merged raw study and the origin (`file:line` or flag) of every value.

    `flags` are study keys, `settings` the texts of --set, `config` a file or the name of a shipped study.
    """
    return over(*(from_file(config) if config else ({}, {})), flags, settings)


def over(
    raw: dict[str, Any], origins: dict[Path, str], flags: Mapping[str, Any], settings: Sequence[str]
) -> tuple[dict[str, Any], dict[Path, str]]:
    """Flags over a raw study, and its preset beneath."""
    raw, given = deepcopy(raw), {**flags, **parsed_settings(settings)}
    raw = {key: value for key, value in raw.items() if (IN_TEXT | IN_TOKENS).get(key) not in given}
    if given.get("algo", raw.get("algo")) != raw.get("algo"):
        raw = {key: value for key, value in raw.items() if key != "params"}  # they were the other strategy's
    limits = raw.get("budgets")
    if "outside" in given and raw.get("outside", "allow") != "allow" and isinstance(limits, Mapping):
        raw["budgets"] = {name: limit for name, limit in limits.items() if (name, limit) != (EXTRAPOLATION, INSIDE)}
    for name, value in given.items():
        origin = flag_name(name) if name in flags else f"--set {name}"
        place(raw, origins, tuple(name.split(".")), value, origin)
    presets = documents("nas.study.presets")
    if "preset" not in raw and is_about_a_device(raw):
        raw["preset"] = "device"
    if "outside" not in raw and isinstance(raw.get("law"), str) and of_ones_own(raw["law"]):
        raw["outside"] = "mark"  # a law of one's own recommends what its rows cover
    chosen = raw.get("preset", "paper")
    if isinstance(chosen, str) and chosen in presets:
        shipped, _ = yaml_source.read(presets[chosen])
        if "preset" in flags and all(key in raw and (key,) in origins and key not in given for key in shipped):
            raise UsageError(
                f"--preset: expected a study that leaves conventions open, got one that sets {', '.join(shipped)}; "
                "change those there or with --set"
            )
        raw |= {key: value for key, value in shipped.items() if key not in raw}
    return raw, origins


def is_about_a_device(raw: Mapping[str, Any]) -> bool:
    """Whether a raw study names a device or a limit: its limits are then limits on that device, unless it asks for the paper's closed form."""
    if raw.get("latency") == "closed_form":
        return False
    budgets = raw.get("budgets")
    limits = list(budgets.values()) if isinstance(budgets, Mapping) else [budgets]
    return any(  # what a study refuses later says nothing here
        value not in ("", "none")
        if isinstance(value, str)
        else isinstance(value, (int, float)) or (isinstance(value, (list, tuple, Mapping)) and len(value) > 0)
        for value in (*(raw.get(key) for key in ("device", "devices", "chip")), *limits)
    )


def of_ones_own(named: Any) -> bool:
    """Whether a device, space or law is none that ships but a file or a mapping of the user's."""
    return isinstance(named, dict) or (isinstance(named, str) and id_and_mode(named)[0].endswith((".yaml", ".yml")))


def from_file(config: str, command: str = "run") -> tuple[dict[str, Any], dict[Path, str]]:
    """Content of a study file given by path or by the name of a shipped one; one for another command is refused."""
    path = located(config)
    content, origins = yaml_source.read(path, own=path.parent == FilePath(config))
    content = yaml_source.keys_of(content or None, path, "see 'plas init'")
    content.pop(CARRIED, None)
    for key, (what, other) in OTHERS.items():
        if key in content and command != other:
            raise UsageError(f"{path}: expected a study, got {what}; plas {other} --config {config} runs them")
    return beside(path, content), origins


def located(config: str, inside: str = "config.yaml") -> FilePath:
    """The file of a study given by path, by its run folder (the file `inside` it), or by the name of a shipped one."""
    path, shipped = FilePath(config), documents("configs")
    if not exists(path) and config in shipped:
        path = shipped[config]
    elif not exists(path):
        message = unknown("a file or a shipped study", config, shipped)
        if message.endswith(CHOOSE):
            message = message.removesuffix(CHOOSE) + near_file(path, CHOOSE)
        raise UsageError(f"config: {message}")
    return path / inside if path.is_dir() and (path / inside).exists() else path


def exists(path: FilePath) -> bool:
    """Whether something is there; a name that no file can have is not."""
    try:
        return path.exists()
    except OSError:
        return False


def beside(path: FilePath, content: dict[str, Any]) -> dict[str, Any]:
    """File names in a study are relative to the study's own folder."""
    for key in (*NAMED, "seed_from", "device_columns"):
        if key in content:
            content[key] = _placed(path, content[key])
    if isinstance(known := split_names(content.get("known")), list):
        content["known"] = [str(path.parent / each) if isinstance(each, str) else each for each in known]
    if isinstance(train := content.get("train"), dict):
        content["train"] = _texts_placed(path, train)
    if isinstance(models := content.get("baselines"), list):
        content["baselines"] = [_with_place(path, each) for each in models]
    if isinstance(devices := content.get("devices"), dict):
        content["devices"] = {label: _placed(path, each) for label, each in devices.items()}
    elif isinstance(devices := split_names(devices), list):
        content["devices"] = [_placed(path, each) for each in devices]
    if isinstance(chip := content.get("chip"), dict) and "base" in chip:
        content["chip"] = {**chip, "base": _placed(path, chip["base"])}
    if isinstance(training := content.get("training"), dict) and "device" in training:
        content["training"] = {**training, "device": _placed(path, training["device"])}
    if "laws" in content:
        laws = split_names(content["laws"])
        content["laws"] = [_placed(path, each) for each in laws] if isinstance(laws, list) else laws
    return content


def _texts_placed(path: FilePath, train: dict[str, Any]) -> dict[str, Any]:
    """Texts, tokenizer and recipe of `train` from where the study lies; words that are no files as they are."""
    placed = dict(train)
    for key in ("data", "validation"):
        if isinstance(names := split_names(train.get(key)), list):
            placed[key] = [str(path.parent / n) if isinstance(n, str) and n != "stdlib" else n for n in names]
    if isinstance(named := train.get("tokenizer"), str) and named != "bytes":
        placed["tokenizer"] = str(path.parent / named)
    return placed | {"recipe": _placed(path, train["recipe"])} if "recipe" in train else placed


def _with_place(path: FilePath, model: Any) -> Any:
    """A baseline whose config.json is named from where the study lies."""
    named = model.get("config") if isinstance(model, dict) else None
    return {**model, "config": str(path.parent / named)} if isinstance(named, str) else model


def _placed(path: FilePath, named: Any) -> Any:
    """A file's name from where the study lies; anything else as it is."""
    is_name = isinstance(named, str) and named.endswith((".yaml", ".yml", ".csv", ".jsonl"))
    return str(path.parent / named) if is_name and not FilePath(named).is_absolute() else named


def as_parameters(value: Any) -> Any:
    """--param name=value texts as a mapping, each value read as YAML."""
    texts = isinstance(value, list) and all(isinstance(item, str) for item in value)
    return parsed_settings(value, "--param") if texts else value


def parsed_settings(settings: Sequence[str], flag: str = "--set") -> dict[str, Any]:
    """`path=value` texts; the value is read as YAML."""
    parsed = {}
    for setting in settings:
        path, sign, value = setting.partition("=")
        if not sign or not path.strip():
            raise UsageError(f"{flag}: expected name=value, got {setting!r}; write for example {flag} {EXAMPLES[flag]}")
        parsed[path.strip()] = yaml_source.parse(value, f"{flag} {path.strip()}")[0]
    return parsed


def place(raw: dict[str, Any], origins: dict[Path, str], path: Path, value: Any, origin: str) -> None:
    """Put a flag's value over the file's; budgets, params and axes of `only` add key by key."""
    try:
        if path == ("budgets",):
            value = split_budgets(value)
        elif path == ("only",):
            value = written_only(value)
        elif path == ("params",):
            value = as_parameters(value)
    except ValueError as error:
        raise UsageError(f"{origin}: {error}") from None
    target: Any = raw
    for i, part in enumerate(path[:-1]):
        origins.setdefault(path[: i + 1], origin)
        child = target.get(part)
        if part == "deltas" and isinstance(child, str) and child != "none":
            raise UsageError(
                f"{origin}: expected deltas written out in the study, got the file {child}; change it there"
            )
        if path[:2] == ("space", "axes") and not isinstance(child, dict):
            values = ",".join(map(str, value)) if isinstance(value, list) else value
            raise UsageError(
                f"{origin}: expected a space written out in the study, got its name; write --only {path[-1]}={values}"
            )
        if not isinstance(child, dict):
            child = target[part] = {}
        target = child
    last = path[-1]
    if path in ADDED and isinstance(target.get(last, {}), dict) and isinstance(value, dict):
        target[last] = {**target.get(last, {}), **value}
        origins.update({(*path, key): f"{origin} {key}" if origin == flag_name(path[0]) else origin for key in value})
    else:
        target[last] = value
    for known in [
        known for known in origins if known[: len(path)] == path and len(known) > len(path) and path[:1] not in ADDED
    ]:
        del origins[known]
    origins[path] = origin


def preset_keys() -> set[str]:
    """Every key of times and memory that presets set: all but the loss law, what is outside of it and the models beside it, which a study that is recorded keeps."""
    return {key for path in documents("nas.study.presets").values() for key in yaml_source.read(path)[0]} - {
        "law",
        "outside",
        "baselines",
    }
