"""Tokenizers of several sizes, each in a folder of its size, from merges made here."""

from itertools import islice, product
from pathlib import Path

from nas.export.tokenizer import SMALLEST, Tokenizer, byte_level

SIZES = (260, 300, 400)
LETTERS = ("Ġ", *"etaoinshrdlu")
MERGES = list(product(LETTERS, LETTERS[1:]))


def tokenizer_of(size: int) -> Tokenizer:
    """One of a size: pairs of frequent letters."""
    return byte_level(list(islice(MERGES, size - SMALLEST)))


def folder_of(folder: Path) -> Path:
    """A folder of them, each in one of its size."""
    for size in SIZES:
        place = folder / str(size)
        place.mkdir(parents=True)
        for name, content in tokenizer_of(size).files.items():
            (place / name).write_bytes(content)
    return folder
