"""Texts as token ids: one per byte, or by a tokenizer.json."""

from importlib.util import find_spec
from typing import Any, Protocol

import numpy as np

from nas.errors import UsageError
from nas.export.tokenizer import Tokenizer
from search_spaces.arrays import AnyArray


class Encoder(Protocol):
    """Ids of a document; `head` only so many, and how many bytes they stand for."""

    def ids(self, content: bytes, where: str) -> AnyArray:
        """All of them."""

    def head(self, content: bytes, where: str, most: int) -> tuple[AnyArray, int]:
        """The first `most` at most, and their bytes of text."""


def encoder_of(tokenizer: Tokenizer) -> Encoder:
    """The encoder of a tokenizer.

    Raises:
        UsageError: its package is missing, or it cannot be read.
    """
    return Bytes() if tokenizer.kind == "bytes" else _Pieces(tokenizer)


def refuse_without_package() -> None:
    """See that the package is there which reads, and trains, a tokenizer.json.

    Raises:
        UsageError: it is not.
    """
    if find_spec("tokenizers") is None:
        raise UsageError(
            "--tokenizer: expected the package tokenizers, got none; pip install 'plas-codesign[tokenize]'"
        )


def reader_of(content: bytes, name: str) -> Any:
    """The package's own tokenizer of a tokenizer.json's content.

    Raises:
        UsageError: the package is missing, or cannot read it.
    """
    refuse_without_package()
    from tokenizers import Tokenizer as Reader

    try:
        return Reader.from_buffer(content)
    except Exception as error:  # the package raises Exception itself
        reason = str(error).splitlines()[0][:200]
        raise UsageError(f"--tokenizer: expected a tokenizer, got {name} ({reason}); give another") from None


class Bytes:
    """A byte is its own id."""

    def ids(self, content: bytes, where: str) -> AnyArray:
        """Every byte."""
        return np.frombuffer(content, dtype=np.uint8)

    def head(self, content: bytes, where: str, most: int) -> tuple[AnyArray, int]:
        """The first bytes."""
        found = self.ids(content[:most], where)
        return found, len(found)


class _Pieces:
    """Ids of Hugging Face's `tokenizers`."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.reader = reader_of(tokenizer.files["tokenizer.json"], tokenizer.kind)

    def _encoded(self, content: bytes, where: str) -> tuple[str, Any]:
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError as error:
            raise UsageError(
                f"{where}: expected UTF-8 text, got {error.reason}; convert it, or --tokenizer bytes"
            ) from None
        return text, self.reader.encode(text, add_special_tokens=False)

    def ids(self, content: bytes, where: str) -> AnyArray:
        """Every piece."""
        return np.array(self._encoded(content, where)[1].ids, dtype=np.uint32)

    def head(self, content: bytes, where: str, most: int) -> tuple[AnyArray, int]:
        """The first pieces."""
        text, found = self._encoded(content, where)
        ids = np.array(found.ids[:most], dtype=np.uint32)
        end = len(text) if len(ids) == len(found.ids) else found.offsets[len(ids) - 1][1] if len(ids) else 0
        return ids, len(text[:end].encode())
