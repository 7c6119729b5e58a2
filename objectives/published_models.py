"""Published models by name: which there are, and which one a name in a log, of a file or on a command line means.

search_spaces/models has a file for each model that `devices --models all` ranks, and shapes.json for the others: further shapes, other names
of a shape (fine-tunes that keep their parent's), and owners of repositories. studies/model_shapes says where each is from.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from objectives import outside
from objectives.plugins import documents, folder, normalised

MODELS = "search_spaces.models"
Words = tuple[str, ...]
#: Words that say nothing of the shape: how a model was trained on, who made it, which program its file is for.
WORDLESS = frozenset(
    [
        "instruct",
        "chat",
        "it",
        "base",
        "pt",
        "hf",
        "meta",
        "thinking",
        "reasoning",
        "preview",
        "gguf",
        "mlx",
        "mlc",
        "onnx",
        "awq",
        "gptq",
        "mtp",
        "model",
        "unsloth",
        "bnb",
        "qat",
        "v",
    ]
)
FORMAT = re.compile(
    r"[\W_]+(?:ud[\W_]+)?(?:[it]?q\d+(?:f\d+)?(?:[\W_]+(?:\d|k|nl|xxs|xs|xl|s|m|l|small|medium|large|f16))*|b?f16|fp?(?:8|16|32)|(?:mx|nv)fp4(?:[\W_]+moe)?|"
    r"[2-8][\W_]?bit|int[48]|w\d+a\d+|awq|gptq|bnb|gguf|mlx|mlc|onnx|dynamic)$"
)
WORD = re.compile(r"\d+(?:\.\d+)*|[a-z]+")
DATE = re.compile(r"2[3-6](?:0[1-9]|1[0-2])|(?:0[1-9]|1[0-2])(?:[0-2]\d|3[01])")  # 2507, 0528


def models_named(text: str) -> tuple[str, ...]:
    """Ids of the published models that a name means: the one, none, or several that the name does not tell apart.

    Read past are owners (`meta-llama/`, `Qwen_`), words such as Instruct, formats (`-Q4_K_M`), a date that no model's own name has, and, in a name
    without dots, how the digits of a version are parted (`llama_v3_2_1b`).
    """
    for reading in _readings(text):
        words = _words(reading)
        undated = tuple(word for word in words if not DATE.fullmatch(word))
        parted = [] if "." in reading else [_parted(words), _parted(undated)]
        for index, tried in zip((False, False, True, True), (words, undated, *parted), strict=False):
            if ids := _by_words(parted=index).get(tried):
                return ids
    return ()


@cache
def further() -> Mapping[str, Mapping[str, Any]]:
    """What shapes.json says: `models` by their names, `aliases` by id, `owners`."""
    content: dict[str, Any] = outside.json_of(folder(MODELS) / "shapes.json", outside.MB)
    return content


@cache
def further_models() -> Mapping[str, Mapping[str, Any]]:
    """Columns, name and source by id of the models that have no file of their own."""
    return {normalised(name): {"name": name, **columns} for name, columns in further()["models"].items()}


@cache
def model_ids() -> tuple[str, ...]:
    """Ids of all published models, those that are ranked first."""
    return (*documents(MODELS), *further_models())


@cache
def _by_words(*, parted: bool) -> Mapping[Words, tuple[str, ...]]:
    """Ids by the words of every name."""
    names = [(name, name) for name in model_ids()]
    names += [(alias, name) for name, aliases in further()["aliases"].items() for alias in aliases]
    index: dict[Words, set[str]] = {}
    for name, model in names:
        words = _words(normalised(name))
        index.setdefault(_parted(words) if parted else words, set()).add(model)
    return {words: tuple(sorted(models)) for words, models in index.items()}


def _readings(text: str) -> Iterator[str]:
    """The name without its folder and its format, then without its owner too."""
    name = text.strip().lower().rstrip("/").rpartition("/")[2].removeprefix("models--")
    while (shorter := FORMAT.sub("", name)) != name and shorter:
        name = shorter
    yield name
    owner, mark, rest = re.split(r"(--|_)", name, maxsplit=1) if re.search(r"--|_", name) else (name, "", "")
    if mark and owner in further()["owners"]:
        yield rest


def _words(name: str) -> Words:
    """Runs of letters and numbers that say something of the shape."""
    return tuple(word for word in WORD.findall(name) if word not in WORDLESS)


def _parted(words: Words) -> Words:
    return tuple(part for word in words for part in word.split("."))
