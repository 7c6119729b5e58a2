"""Trains one byte-level BPE, of which every smaller one is the beginning."""

from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile
from threading import Event, Thread

from nas.export.tokenizer import END, SMALLEST
from objectives import outside

LEAST_PAIRS = 2  # times that a pair must be seen to become an entry
LOOKED_S = 0.1  # between two looks at whether the training has ended

Merge = tuple[str, str]


def trained_merges(texts: Iterator[str], vocabulary: int) -> list[Merge]:
    """Pairs of pieces that BPE joins, in their order, for a vocabulary: bytes, the end token, an entry per merge.

    Training adds the most frequent pair, the smaller one of equals, again and again, so that the first merges are those of every smaller
    vocabulary. Text is split as by GPT-2 before: words with their space, numbers, signs, spaces. A merge whose result is an entry already
    is left out. Fewer merges are returned where no pair is left that is seen twice.
    """
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        min_frequency=LEAST_PAIRS,
        special_tokens=[END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    in_a_thread(texts, lambda parts: tokenizer.train_from_iterator(parts, trainer))
    return distinct(outside.parsed(tokenizer.to_str())["model"]["merges"])[: vocabulary - SMALLEST]


def in_a_thread(texts: Iterator[str], work: Callable[[Iterator[str]], None]) -> None:
    """Do work on texts in a thread of its own: in the main thread the package does not let Ctrl-C through.

    Raises:
        KeyboardInterrupt: at once; the texts end for the thread, and with the program the thread.
        Exception: whatever ended the work.
    """
    interrupted, errors = Event(), list[Exception]()

    def worked() -> None:
        try:
            work(takewhile(lambda _: not interrupted.is_set(), texts))
        except Exception as error:
            errors.append(error)

    thread = Thread(target=worked, daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(LOOKED_S)
    except KeyboardInterrupt:
        interrupted.set()
        raise
    if errors:
        raise errors[0]


def distinct(merges: Sequence[Sequence[str]]) -> list[Merge]:
    """The merges that make an entry which no merge before them has made."""
    entries, found = {END}, list[Merge]()
    for left, right in merges:
        if left + right not in entries:
            entries.add(left + right)
            found.append((left, right))
    return found
