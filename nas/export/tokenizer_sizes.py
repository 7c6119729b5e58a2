"""The tokenizer of each candidate: one for all of them, or from a folder with several sizes that of its vocabulary."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from nas.errors import UsageError
from nas.export.tokenizer import Tokenizer, folders_by_size, tokenizer_for


@dataclass(frozen=True, eq=False)
class Tokenizers:
    """One tokenizer for every vocabulary, or one for each of several sizes."""

    given: str
    one: Tokenizer | None
    by_size: Mapping[int, Tokenizer]

    @property
    def size(self) -> int | None:
        """The vocabulary of candidates without one of their own; None: the tokenizer says nothing of it."""
        return None if self.one is None or self.given == "bytes" else self.one.size

    def of(self, vocabulary: int) -> Tokenizer:
        """The tokenizer of a vocabulary that `refuse_other_sizes` let through."""
        return self.by_size[vocabulary] if self.one is None else self.one

    def refuse_other_sizes(self, vocabularies: Iterable[int]) -> None:
        """Refuse vocabularies that a folder of several sizes has no tokenizer for.

        Raises:
            UsageError: with these sizes.
        """
        wanted = set(vocabularies)
        if self.one is not None or not (lacking := sorted(wanted - set(self.by_size))):
            return
        raise UsageError(
            f"tokenizer: expected a tokenizer of {_listed(lacking)} entries in {self.given}, got {_listed(self.by_size)}; "
            "make them with the recipe in docs/vocabulary.md, or give one of these with --vocabulary"
        )


def tokenizers_for(given: str) -> Tokenizers:
    """The tokenizer `bytes`, that of a path, or those of a folder that holds one folder per size.

    Raises:
        UsageError: none there, or one whose folder has the name of another size.
    """
    places = {} if given == "bytes" else folders_by_size(Path(given))
    found = {size: tokenizer_for(str(place)) for size, place in places.items()}
    for size, tokenizer in found.items():
        if tokenizer.size != size:
            raise UsageError(
                f"tokenizer: expected {size:,} entries in {tokenizer.kind}, got {tokenizer.size:,}; rename the folder"
            )
    return Tokenizers(given, None if found else tokenizer_for(given), found)


def _listed(sizes: Iterable[int]) -> str:
    return ", ".join(f"{size:,}" for size in sorted(sizes))
