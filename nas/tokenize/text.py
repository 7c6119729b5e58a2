"""What `tokenize` prints: a table over the vocabulary, what its columns mean, sizes that were not counted."""

from nas.terminal.console import say
from nas.terminal.styles import FAINT, Styled
from nas.terminal.tables import table
from nas.tokenize.counting import RARE
from nas.tokenize.result import Result, Row

HEADER = ("tokenizer", "vocabulary", "bytes/token", "characters/token", "unigram nats", "tokens", "rare")


def say_result(result: Result) -> None:
    """Print the text, the table and what is to be known of it."""
    texts = result.texts
    documents = texts.source.documents
    say(
        f"{documents:,} {'document' if documents == 1 else 'documents'}, {texts.total_bytes:,} bytes: trained on {texts.trained_bytes:,}, "
        f"counted on {texts.held_bytes:,} that are held out"
    )
    table(HEADER, [cells(row) for row in result.rows], spare=("characters/token", "tokens"))
    say(
        Styled(
            "  unigram nats: loss per token of frequencies in the training text; "
            f"rare: entries seen there fewer than {RARE} times",
            FAINT,
        )
    )
    for size, reason in result.not_counted.items():
        say(f"Not counted: {size:,}: {reason}")


def cells(row: Row) -> list[str]:
    """A row of the table."""
    nats = "-" if row.unigram_nats is None else f"{row.unigram_nats:.3f}"
    return [
        row.tokenizer,
        f"{row.vocabulary:,}",
        f"{row.bytes_per_token:.3f}",
        f"{row.characters_per_token:.3f}",
        nats,
        f"{row.tokens:,}",
        f"{100 * row.rare:.1f} %",
    ]
