"""Published models by name, and the resolution of names from logs, files or the command line.

search_spaces/models has a file for some models, and shapes.json for the others: further shapes, other names
of a shape (fine-tunes that keep their parent's), and owners of repositories. studies/model_shapes says where each is from.
"""

import csv
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from objectives import outside
from objectives.plugins import documents, folder, normalised

MODELS = "search_spaces.models"
LONGEST = 500  # characters of a name or path
Words = tuple[str, ...]
#: What a name may have besides: how a model was trained on, which program its file is for; a date, 2507 or 0528.
BESIDES = re.compile(
    r"instruct|chat|it|base|pt|hf|meta|thinking|reasoning|preview|gguf|mlx|mlc|onnx|awq|gptq|mtp|model|unsloth|bnb|qat|"
    r"2[3-6](?:0[1-9]|1[0-2])|(?:0[1-9]|1[0-2])(?:[0-2]\d|3[01])"
)
FORMAT = re.compile(
    r"[\W_]+(?:ud[\W_]+)?(?:[it]?q\d+(?:f\d+)?(?:[\W_]+(?:\d|k|nl|xxs|xs|xl|s|m|l|small|medium|large|f16))*|b?f16|fp?(?:8|16|32)|"
    r"(?:mx|nv)fp4(?:[\W_]+moe)?|[2-8][\W_]?bit|int[48]|w\d+a\d+|g\d+|"
    r"\d{5}-of-\d{5}|i1|rk\d{4}|awq|gptq|bnb|dwq|gguf|ggml|mlx|mlc|onnx|ov|mnn|rkllm|pte|litertlm|safetensors|dynamic)$"
)
WORD, VERSION = re.compile(r"\d+(?:\.\d+)*|[a-z]+"), re.compile(r"(?<![a-z])v(?=\d)")


def models_named(text: str) -> tuple[str, ...]:
    """Return the ids of published models that a name may mean: one, none, or several.

    Read past are owners (`meta-llama/`, `Qwen_`), words such as Instruct and dates where a model's own name has none, formats (`-Q4_K_M`), and, in
    a name without dots, how the digits of a version are parted (`llama_v3_2_1b`).
    """
    if normalised(text) in documents(MODELS):
        return (normalised(text),)
    for reading in _readings(text) if len(text) < LONGEST else ():
        words = WORD.findall(reading)
        for shape in (_shape, _parted) if "." not in reading else (_shape,):
            alike = _by_words(shape).get(shape(words), set())
            own = [(len(besides), model) for model, besides in alike if besides <= set(words)]
            models = {model for length, model in own if length == max(own)[0]} or {model for model, _ in alike}
            if own or len(models) > 1:
                return tuple(sorted(models))
    return ()


@cache
def further() -> Mapping[str, Mapping[str, Any]]:
    """Return the content of shapes.json: `models` and `aliases` by name, `owners`."""
    content: dict[str, Any] = outside.json_of(folder(MODELS) / "shapes.json", outside.MB)
    return content


@cache
def further_models() -> Mapping[str, Mapping[str, Any]]:
    """Return the models without a file of their own by id: name, the keys of config.json, the published count, source."""
    return {normalised(name): {"name": name, **entry} for name, entry in further()["models"].items()}


@cache
def model_ids() -> tuple[str, ...]:
    """Return the ids of all published models, those with a file of their own first."""
    return (*documents(MODELS), *further_models())


@dataclass(frozen=True)
class Trained:
    """What is known of a published model's training: tokens, and bytes of English in one, None where nobody says; year and month, licence.

    `model` is the id of its shape, `name` its own. made_by: pruning or distillation, where it was made from another model.
    """

    name: str
    model: str
    tokens: float | None
    bytes_per_token: float | None
    date: str
    licence: str
    made_by: str = ""


@cache
def trained_models() -> tuple[Trained, ...]:
    """Return the published models whose release is known, from trained.csv, the newest first; studies/parity says where each is from."""
    text = outside.text(folder(MODELS) / "trained.csv", outside.MB)
    rows = [
        Trained(
            row["model"],
            models_named(row["model"])[0],
            float(row["tokens"]) if row["tokens"] else None,
            float(row["bytes_per_token"]) if row["bytes_per_token"] else None,
            row["date"],
            row["licence"],
            row["made_by"],
        )
        for row in csv.DictReader(text.splitlines())
    ]
    return tuple(sorted(rows, key=lambda each: each.date, reverse=True))


@cache
def _by_words(shape: Callable[[list[str]], Words]) -> Mapping[Words, set[tuple[str, frozenset[str]]]]:
    """Ids by the words of every name that give the shape, with the name's words besides."""
    names = [(name, name) for name in model_ids()]
    names += [(alias, normalised(name)) for name, aliases in further()["aliases"].items() for alias in aliases]
    index: dict[Words, set[tuple[str, frozenset[str]]]] = {}
    for name, model in names:
        words = WORD.findall(VERSION.sub("", name.lower()))
        index.setdefault(shape(words), set()).add((model, frozenset(filter(BESIDES.fullmatch, words))))
    return index


def _readings(text: str) -> Iterator[str]:
    """The name without its folder and its format, then without its owner too."""
    name = VERSION.sub("", text.strip().lower().rstrip("/").rpartition("/")[2].removeprefix("models--"))
    while (shorter := FORMAT.sub("", name)) != name:
        name = shorter
    yield name
    owner, *rest = re.split("--|_", name, maxsplit=1)
    if rest and owner in further()["owners"]:
        yield rest[0]


def _shape(words: list[str]) -> Words:
    return tuple(word for word in words if not BESIDES.fullmatch(word))


def _parted(words: list[str]) -> Words:
    return tuple(part for word in _shape(words) for part in word.split("."))
