"""Counts how often tokenizers use each of their entries, on the training part and on the held-out part of a text."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from nas.export.tokenizer import SMALLEST, ids_of
from nas.tokenize.texts import Texts
from nas.tokenize.training import Merge
from search_spaces.arrays import IntArray

BATCH = 1_000_000  # bytes of text that are tokenized at once
LEAST_PER_ENTRY = 50  # tokens of training text an entry, on average, below which frequencies say little
RARE = 20  # times in the training text below which an entry is called rare
SMOOTHING = 0.5  # added to every count

Progress = Callable[[int], None]


@dataclass(frozen=True, eq=False)
class Counts:
    """How often each entry is seen in the training part and in the held-out part, (V,) each."""

    trained: IntArray
    held: IntArray

    @property
    def vocabulary(self) -> int:
        """How many entries there are."""
        return len(self.trained)

    @property
    def per_entry(self) -> float:
        """Tokens of the training part for each entry, on average."""
        return float(self.trained.sum()) / self.vocabulary

    @property
    def rare(self) -> float:
        """The share of entries that are seen fewer than 20 times in the training part."""
        return float((self.trained < RARE).mean())

    def unigram_nats(self) -> float:
        """Nats per held-out token of frequencies in the training part: −Σ q_i ln p_i.

        Where q_i is the share of entry i in the held-out part and p_i = (c_i + ½)/(Σ c + V/2) with its counts c_i in the training part
        (Krichevsky and Trofimov 1981), so that an entry that was not seen there has a probability.
        """
        p = (self.trained + SMOOTHING) / (self.trained.sum() + SMOOTHING * self.vocabulary)
        return float(-(self.held * np.log(p)).sum() / self.held.sum())


def counted(texts: Texts, tokenizers: Mapping[str, Any], progress: Progress) -> dict[str, Counts]:
    """Counts of tokenizers by their names, every one on the same documents; `progress` gets the bytes that were counted."""
    found = {name: np.zeros((2, entries(tokenizer)), dtype=np.int64) for name, tokenizer in tokenizers.items()}
    for batch, size in batches(texts):
        for name, tokenizer in tokenizers.items():
            for side, parts in enumerate(batch):
                ids = [each.ids for each in tokenizer.encode_batch_fast(parts, add_special_tokens=False)]
                found[name][side] += np.bincount(np.fromiter(chain(*ids), np.int64), minlength=found[name].shape[1])
            progress(size)
    return {name: Counts(*both) for name, both in found.items()}


def batches(texts: Texts) -> Iterator[tuple[tuple[list[str], list[str]], int]]:
    """Documents to train on and held out, about a megabyte at once, with their bytes."""
    batch: tuple[list[str], list[str]] = ([], [])
    size = 0
    for text, length, held in texts.parts():
        batch[held].append(text)
        size += length
        if size >= BATCH:
            yield batch, size
            batch, size = ([], []), 0
    if size:
        yield batch, size


def entries(tokenizer: Any) -> int:
    """Ids that a tokenizer uses: its largest and those below it."""
    return int(max(tokenizer.get_vocab(with_added_tokens=True).values())) + 1


def smaller(counts: Counts, merges: Sequence[Merge], vocabulary: int) -> Counts:
    """Counts of the tokenizer with the first entries only, of a byte-level BPE with these merges.

    What the larger one joins last the smaller one leaves apart: merges are undone from the last to the first, a count of the entry becoming
    one of each of its two pieces. That is exact, as one merge alone makes an entry.
    """
    ids = ids_of(merges)
    both = np.stack([counts.trained, counts.held])
    for entry in range(counts.vocabulary - 1, vocabulary - 1, -1):
        for piece in merges[entry - SMALLEST]:
            both[:, ids[piece]] += both[:, entry]
    return Counts(*both[:, :vocabulary])
