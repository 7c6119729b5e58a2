"""What `tokenize` found: a row for each tokenizer, sizes that the text is not enough for, the curve."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from nas.errors import UsageError
from nas.export.encoding import reader_of
from nas.export.tokenizer import byte_level
from nas.tokenize.counting import LEAST_PER_ENTRY, Counts, Progress, counted, smaller
from nas.tokenize.texts import Texts
from nas.tokenize.training import Merge
from objectives import outside
from objectives.display_text import LONGEST, escaped
from objectives.token_curve import Size, TokenCurve

TRAINED = "byte-level BPE"


@dataclass(frozen=True)
class Row:
    """What was counted of one tokenizer on the held-out text; `rare` is a share of its entries, unigram_nats None where counts are few."""

    tokenizer: str
    vocabulary: int
    bytes_per_token: float
    characters_per_token: float
    unigram_nats: float | None
    tokens: int
    trained_tokens: int
    rare: float


@dataclass(frozen=True)
class Result:
    """Rows by vocabulary, sizes that were not counted with the reason, and the text."""

    rows: list[Row]
    not_counted: dict[int, str]
    texts: Texts


def result_of(
    texts: Texts, sizes: Sequence[int], merges: Sequence[Merge], given: Mapping[str, Any], progress: Progress
) -> Result:
    """Counts of every size that the text is enough for, and of given tokenizers by their paths.

    Raises:
        UsageError: the text is enough for none of them.
    """
    largest = {TRAINED: reader_of(byte_level(merges).files["tokenizer.json"], TRAINED)} if sizes else {}
    found = counted(texts, {**given, **largest}, progress)
    rows, not_counted = [], dict[int, str]()
    if sizes:
        counts = found.pop(TRAINED)
        for size in reversed(sizes):
            counts = smaller(counts, merges, size)
            if reason := too_small(counts, size, texts):
                not_counted[size] = reason
            else:
                rows.append(row(TRAINED, counts, texts))
    rows += [row(named(path), counts, texts) for path, counts in found.items()]
    if not rows:
        raise UsageError("\n".join(f"--vocabularies: {size:,}: {text}" for size, text in sorted(not_counted.items())))
    return Result(sorted(rows, key=lambda each: each.vocabulary), dict(sorted(not_counted.items())), texts)


def too_small(counts: Counts, size: int, texts: Texts) -> str:
    """Why a text is not enough for a size; "" where it is."""
    if counts.vocabulary < size:
        return (
            f"expected a text with pairs for so many entries, got {counts.vocabulary:,} in {texts.trained_bytes:,} bytes; "
            "give more text"
        )
    if counts.per_entry < LEAST_PER_ENTRY:
        wanted = texts.total_bytes * LEAST_PER_ENTRY / counts.per_entry / outside.MB
        return (
            f"expected {LEAST_PER_ENTRY} tokens of training text an entry, got {counts.per_entry:.1f}; "
            f"give {wanted:.3g} MB of text or a smaller size"
        )
    return ""


def named(path: str) -> str:
    """A given tokenizer's name: of its folder, or of its file where that has one of its own."""
    place = Path(path).resolve()
    return place.parent.name if place.name == "tokenizer.json" else place.name


def row(name: str, counts: Counts, texts: Texts) -> Row:
    """The row of a tokenizer; a given one's frequencies are left out where tokens are few for its entries.

    Raises:
        UsageError: it makes no tokens of the text.
    """
    tokens = int(counts.held.sum())
    if tokens == 0:
        raise UsageError(f"--tokenizer: expected tokens of the text, got none by {name}; give one for this text")
    return Row(
        name,
        counts.vocabulary,
        texts.held_bytes / tokens,
        texts.held_characters / tokens,
        counts.unigram_nats() if counts.per_entry >= LEAST_PER_ENTRY else None,
        tokens,
        int(counts.trained.sum()),
        counts.rare,
    )


def curve_of(name: str, result: Result) -> TokenCurve:
    """The curve through the trained sizes; where none was trained, through the given tokenizers.

    Raises:
        UsageError: two of them have one size.
    """
    trained = [each for each in result.rows if each.tokenizer == TRAINED]
    kept = trained or result.rows
    sizes = [
        Size(vocabulary=each.vocabulary, bytes_per_token=each.bytes_per_token, unigram_nats=each.unigram_nats)
        for each in kept
    ]
    if len({size.vocabulary for size in sizes}) < len(sizes):
        raise UsageError(
            "--out: expected tokenizers of different sizes for a curve, got two of one size; leave one out"
        )
    return TokenCurve(
        name=escaped(name)[:LONGEST],
        description=f"{', '.join(dict.fromkeys(each.tokenizer for each in kept))}, counted on held-out text",
        source=result.texts.source,
        trained_on=result.texts.trained_bytes if trained else None,
        counted_on=result.texts.held_bytes,
        sizes=sizes,
    )


def content(result: Result) -> dict[str, Any]:
    """Everything as plain content."""
    return {
        "source": result.texts.source.model_dump(mode="json", exclude_defaults=True),
        "trained_on": result.texts.trained_bytes,
        "counted_on": result.texts.held_bytes,
        "tokenizers": [asdict(each) for each in result.rows],
        "not_counted": [{"vocabulary": size, "reason": text} for size, text in result.not_counted.items()],
    }
