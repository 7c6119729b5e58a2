"""Resolves the flags of `train`: device, texts, recipe, and every training that follows."""

import os
import re

from nas.errors import UsageError
from nas.export.candidates import Chosen, chosen, with_vocabulary
from nas.export.recipe import Recipe, load_recipe
from nas.export.tokenizer import Tokenizer
from nas.files.faults import unknown
from nas.record.candidates import read_seeds
from nas.train.corpus import Sources
from nas.train.jobs import How, Job, jobs_of
from nas.train.request import TrainRequest

PRECISIONS = ("fp32", "bf16")
NAME = re.compile(r"[A-Za-z0-9_]{1,40}")
MOST_TOKENS = 10**15


def how_of(request: TrainRequest) -> How:
    """Device, precision, threads.

    Raises:
        UsageError: none of the choices.
    """
    if not re.fullmatch(r"cpu|cuda(:[0-9]{1,3})?", request.device):
        raise UsageError(f"--device: expected cpu, cuda or cuda:INDEX, got {request.device!r}; correct it")
    precision = request.precision or ("fp32" if request.device == "cpu" else "bf16")
    if precision not in PRECISIONS:
        raise UsageError(f"--precision: {unknown('a precision', precision, PRECISIONS)}")
    threads = request.threads or max(1, (os.cpu_count() or 1) // request.workers)
    between = whole_numbers("--losses-after", request.losses_after, 1, MOST_TOKENS) if request.losses_after else []
    return How(request.device, precision, threads, request.last_steps, request.checkpoint_s, between)


def sources_of(request: TrainRequest) -> Sources:
    """Paths of the data, further texts by name.

    Raises:
        UsageError: a text without a name, or one name twice.
    """
    texts: dict[str, str] = {}
    for pair in request.texts:
        name, sign, path = pair.partition("=")
        if not (sign and path and NAME.fullmatch(name)) or name in texts:
            raise UsageError(
                f"--text: expected NAME=PATH, a new name of letters, digits and underscores, got {pair!r}; correct it"
            )
        texts[name] = path
    return Sources(tuple(request.data), tuple(request.evaluation), texts, request.evaluation_tokens)


def recipe_of(request: TrainRequest) -> Recipe:
    """The recipe, with the lengths of the request."""
    given = {"sequence_length": request.sequence_length, "global_batch": request.batch}
    return load_recipe(request.recipe).model_copy(update={k: v for k, v in given.items() if v is not None})


def whole_numbers(flag: str, text: str, least: int, most: int) -> list[int]:
    """Numbers by comma, each once.

    Raises:
        UsageError: something else.
    """
    found: list[int] = []
    for part in text.split(","):
        try:
            number = float(part)
        except ValueError:
            number = float("nan")
        if not (least <= number <= most and number.is_integer()):
            raise UsageError(
                f"{flag}: expected whole numbers from {least} by comma, as 200000,1e6, got {text!r}; correct it"
            )
        found += [] if int(number) in found else [int(number)]
    return found


def planned(request: TrainRequest, recipe: Recipe, tokenizer: Tokenizer) -> list[Job]:
    """Every training of the request."""
    tokens = whole_numbers("--tokens", request.tokens, 1, MOST_TOKENS)
    found: Chosen = chosen(request.source, request.how, None, [], {})
    own = {} if request.source.is_dir() else read_seeds(request.source)
    given = None if request.seeds is None else whole_numbers("--seeds", request.seeds, 0, 2**31)
    seeds = [given or own.get(name) or [0] for name in found.ids]
    architectures = with_vocabulary(found.architectures, request.vocabulary, tokenizer.size)
    return jobs_of(architectures, found.ids, seeds, tokens, recipe, tokenizer)
