"""The work of `tokenize`: texts read, tokenizers trained and counted, the table printed, the curve written."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from nas.errors import UsageError
from nas.export.encoding import reader_of, refuse_without_package
from nas.export.tokenizer import MOST_BYTES, SMALLEST, byte_level
from nas.files.own_files import made_folder
from nas.files.tables import refuse_existing, refuse_used, write
from nas.files.yaml_source import dump
from nas.terminal.console import say_json
from nas.terminal.progress import Stages, Ticker
from nas.tokenize.request import TokenizeRequest
from nas.tokenize.result import TRAINED, Result, content, curve_of, result_of
from nas.tokenize.text import say_result
from nas.tokenize.texts import Texts, read
from nas.tokenize.training import Merge, trained_merges
from objectives import outside
from objectives.quantities import counted

USUAL = "4k,8k,16k,32k,64k"
MOST = 10_000_000


def execute(request: TokenizeRequest) -> None:
    """Count, print, write.

    Raises:
        UsageError: sizes, texts or tokenizers that cannot be used, or no size that the text is enough for.
    """
    sizes = sizes_of(request.vocabularies, given=bool(request.tokenizers))
    refuse_without_package()
    if request.out is not None:
        refuse_existing("--out", request.out)
    if request.save is not None:
        refuse_used("--save-tokenizers", request.save)
    given = {path: existing(path) for path in request.tokenizers}
    quiet = request.quiet or request.json
    Stages(quiet=quiet)("reading the texts")
    texts = read(request.texts)
    ticker = Ticker((2 if sizes else 1) * texts.total_bytes, quiet=quiet)
    merges = merges_of(texts, max(sizes), ticker) if sizes else []
    result = result_of(texts, sizes, merges, given, lambda more: advance(ticker, more, "bytes counted"))
    ticker.close()
    if request.json:
        say_json(content(result))
    else:
        say_result(result)
    write_files(request, result, merges)


def sizes_of(text: str | None, *, given: bool) -> list[int]:
    """Sizes to train, ascending, each once.

    Raises:
        UsageError: something else than whole numbers from 257.
    """
    if text is None and given:
        return []
    found = set[int]()
    for part in (text or USUAL).split(","):
        try:
            number = counted(part.strip(), "8k")
        except ValueError:
            number = 0.5
        if not (number.is_integer() and SMALLEST <= number <= MOST):
            raise UsageError(
                f"--vocabularies: expected whole numbers from {SMALLEST} (bytes and the end token) to {MOST:,} by comma, as "
                f"4k,8192,32k where 4k is 4,000, got {part.strip()!r}; correct it"
            )
        found.add(int(number))
    return sorted(found)


def existing(path: str) -> Any:
    """A tokenizer that exists: a tokenizer.json, or the one in a folder.

    Raises:
        UsageError: none is there, or it cannot be read.
    """
    place = Path(path) / "tokenizer.json" if Path(path).is_dir() else Path(path)
    try:
        tokenizer = reader_of(outside.content(place, MOST_BYTES), path)
    except OSError as error:
        raise UsageError(
            f"--tokenizer: expected a tokenizer.json or a folder with one, got {path} ({error.strerror}); check the path"
        ) from None
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def merges_of(texts: Texts, vocabulary: int, ticker: Ticker) -> list[Merge]:
    """Merges for a vocabulary, from the part of the text that is not held out."""

    def training_part() -> Iterator[str]:
        for text, size, held in texts.parts():
            if not held:
                yield text
            advance(ticker, size, "bytes trained on")

    return trained_merges(training_part(), vocabulary)


def advance(ticker: Ticker, more: int, what: str) -> None:
    """Show that `more` bytes are done."""
    ticker.done += more
    ticker(ticker.done, lambda: what)


def write_files(request: TokenizeRequest, result: Result, merges: list[Merge]) -> None:
    """The curve and the tokenizers, where they are wanted."""
    if request.out is not None:
        curve = curve_of(request.out.stem, result).model_dump(mode="json", exclude_defaults=True)
        write(request.out, "# Counted by plas tokenize.\n" + dump(curve))
    if request.save is not None:
        save(request.save, [row.vocabulary for row in result.rows if row.tokenizer == TRAINED], merges)


def save(folder: Path, sizes: Sequence[int], merges: list[Merge]) -> None:
    """Each trained tokenizer in a folder of its size."""
    for size in sizes:
        place = made_folder(folder / str(size))
        for name, written in byte_level(merges[: size - SMALLEST]).files.items():
            write(place / name, written)
