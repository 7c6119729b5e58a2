"""Tokenizers: a byte-level one made here, or given ones, copied and checked, one for all candidates or one per vocabulary; texts as their ids."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from nas.errors import UsageError
from objectives import outside
from search_spaces.arrays import AnyArray

MOST_BYTES = 200 * outside.MB  # Gemma's tokenizer.json has 33
FILE = "tokenizer.json"
END = "<|endoftext|>"
SMALLEST = 257  # ids of a byte-level tokenizer without merges: bytes and the end token
ENDS = (END, "</s>", "<eos>", "<|end_of_text|>", "<|im_end|>")  # end tokens of files that do not name theirs
COPIED = (
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"),
    *("vocab.json", "merges.txt", "tokenizer.model", "chat_template.jinja"),
)


@dataclass(frozen=True, eq=False)
class Tokenizer:
    """Files of a tokenizer, how many ids it uses, and its special ids."""

    kind: str
    size: int
    eos: int
    bos: int | None
    pad: int
    files: Mapping[str, bytes]


def tokenizer_for(given: str) -> Tokenizer:
    """The tokenizer `bytes`, the one of a directory, or that of a tokenizer.json alone.

    Raises:
        UsageError: no tokenizer.json, one without an end token, or several.
    """
    if given == "bytes":
        return byte_level()
    if sizes := folders_by_size(Path(given)):
        raise UsageError(
            f"tokenizer: expected one tokenizer, got those of {', '.join(f'{size:,}' for size in sizes)} entries in {given}; "
            f"name one, as {next(iter(sizes.values()))}"
        )
    return _from_file(Path(given)) if Path(given).is_file() else _from_folder(Path(given))


def folders_by_size(folder: Path) -> dict[int, Path]:
    """Folders of tokenizers below a folder, by the sizes that name them, ascending."""
    try:
        below = [] if not folder.is_dir() or (folder / FILE).exists() else list(folder.iterdir())
        found = [place for place in below if place.name.isdecimal() and (place / FILE).is_file()]
    except OSError:  # who reads a tokenizer there says why it cannot be read
        return {}
    return {int(place.name): place for place in sorted(found, key=lambda place: int(place.name))}


def refuse_larger(tokenizer: Tokenizer, vocabulary: int) -> None:
    """A tokenizer must fit the vocabulary: ids beyond the embedding crash every stack.

    Raises:
        UsageError: it does not.
    """
    if tokenizer.size > vocabulary:
        raise UsageError(
            f"tokenizer: expected at most the vocabulary's {vocabulary:,} ids, got {tokenizer.size:,} in {tokenizer.kind}; "
            f"give --vocabulary {tokenizer.size} or more, or a smaller tokenizer"
        )


def byte_level(merges: Sequence[tuple[str, str]] = ()) -> Tokenizer:
    """One id per byte, an end token, then one per merge of two pieces: any text; without merges 257 ids and no training."""
    vocabulary = ids_of(merges)
    end = {"id": SMALLEST - 1, "content": END, "single_word": False, "lstrip": False, "rstrip": False}
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": bool(merges)}
    content: dict[str, Any] = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{**end, "normalized": False, "special": True}],
        "normalizer": None,
        "pre_tokenizer": level,
        "post_processor": None,
        "decoder": level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": vocabulary,
            "merges": [list(pair) for pair in merges],
        },
    }
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": END,
        "pad_token": END,
        "clean_up_tokenization_spaces": False,
        "model_max_length": 1_000_000_000,
    }
    files = {"tokenizer.json": _json(content), "tokenizer_config.json": _json(settings)}
    kind = f"a byte-level BPE of {len(vocabulary):,} entries" if merges else "bytes"
    return Tokenizer(kind, len(vocabulary), SMALLEST - 1, None, SMALLEST - 1, files)


def ids_of(merges: Sequence[tuple[str, str]]) -> dict[str, int]:
    """The ids of a byte-level tokenizer's pieces: bytes, the end token, what each merge makes."""
    printable = {*range(33, 127), *range(161, 173), *range(174, 256)}
    shifted = iter(range(256, 512))  # characters that stand for the other bytes, as byte-level tokenizers write them
    ids = {chr(byte if byte in printable else next(shifted)): byte for byte in range(256)} | {END: SMALLEST - 1}
    return ids | {left + right: SMALLEST + i for i, (left, right) in enumerate(merges)}


def _json(content: Any) -> bytes:
    return (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode()


def _from_folder(folder: Path) -> Tokenizer:
    content = _read(folder / "tokenizer.json")
    settings = _read(folder / "tokenizer_config.json")
    ids = ids_in(content)
    if not ids:
        raise UsageError(f"tokenizer: expected a vocabulary in {folder / 'tokenizer.json'}, got none; give another")
    eos, bos, pad = (_id(settings.get(f"{name}_token"), ids) for name in ("eos", "bos", "pad"))
    if eos is None:
        raise UsageError(
            f"tokenizer: expected an eos_token in {folder / 'tokenizer_config.json'} that tokenizer.json knows, "
            f"got {settings.get('eos_token')!r}; add it"
        )
    files = {name: outside.content(folder / name, MOST_BYTES) for name in COPIED if (folder / name).is_file()}
    return Tokenizer(str(folder), max(ids.values()) + 1, eos, bos, eos if pad is None else pad, files)


def _from_file(path: Path) -> Tokenizer:
    """A tokenizer.json without its settings: the end token is one of the usual names."""
    ids = ids_in(_read(path))
    end = next((name for name in ENDS if name in ids), None)
    if end is None:
        raise UsageError(
            f"tokenizer: expected an end token in {path} ({', '.join(ENDS)}), got none; "
            "add one, or give a folder whose tokenizer_config.json names its eos_token"
        )
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": end, "pad_token": end}
    files = {"tokenizer.json": outside.content(path, MOST_BYTES), "tokenizer_config.json": _json(settings)}
    return Tokenizer(str(path), max(ids.values()) + 1, ids[end], None, ids[end], files)


def _read(path: Path) -> dict[str, Any]:
    try:
        content = outside.json_of(path, MOST_BYTES)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "no JSON"
        raise UsageError(
            f"tokenizer: expected 'bytes' or a folder with {path.name}, got {path} ({reason}); check the path"
        ) from None
    return content if isinstance(content, dict) else {}


def ids_in(content: Mapping[str, Any]) -> dict[str, int]:
    """Every token's id, of the model and of those added."""
    model = content.get("model")
    vocabulary = model.get("vocab") if isinstance(model, dict) else None
    if isinstance(vocabulary, list):  # Unigram: [token, score] in the order of their ids
        vocabulary = {str(entry[0]): i for i, entry in enumerate(vocabulary)}
    added = content.get("added_tokens") or []
    return {**(vocabulary or {}), **{str(t["content"]): int(t["id"]) for t in added}}


def _id(token: Any, ids: Mapping[str, int]) -> int | None:
    text = token.get("content") if isinstance(token, dict) else token
    return ids.get(text) if isinstance(text, str) else None


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


def encoder_of(tokenizer: Tokenizer) -> "Bytes | _Pieces":
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
    """A byte is its own id; `head` gives only so many; `several` encodes documents at once. Both say how many bytes they stand for."""

    def ids(self, content: bytes, where: str) -> AnyArray:
        """Every byte."""
        return np.frombuffer(content, dtype=np.uint8)

    def several(self, documents: Sequence[tuple[str, bytes]]) -> list[tuple[AnyArray, int]]:
        """Every byte of each document."""
        return [(self.ids(content, name), len(content)) for name, content in documents]

    def head(self, content: bytes, where: str, most: int) -> tuple[AnyArray, int]:
        """The first bytes."""
        found = self.ids(content[:most], where)
        return found, len(found)


class _Pieces:
    """Ids of Hugging Face's `tokenizers`."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.reader = reader_of(tokenizer.files["tokenizer.json"], tokenizer.kind)

    def _text(self, content: bytes, where: str) -> str:
        try:
            return content.decode("utf-8")
        except UnicodeDecodeError as error:
            raise UsageError(
                f"{where}: expected UTF-8 text, got {error.reason}; convert it, or --tokenizer bytes"
            ) from None

    def ids(self, content: bytes, where: str) -> AnyArray:
        """Every piece."""
        return self.several([(where, content)])[0][0]

    def several(self, documents: Sequence[tuple[str, bytes]]) -> list[tuple[AnyArray, int]]:
        """Every piece of each document; the package encodes them on all cores."""
        texts = [self._text(content, name) for name, content in documents]
        encoded = [pieces.ids for pieces in self.reader.encode_batch_fast(texts, add_special_tokens=False)]
        return [(np.array(ids, np.uint32), len(doc[1])) for ids, doc in zip(encoded, documents, strict=True)]

    def head(self, content: bytes, where: str, most: int) -> tuple[AnyArray, int]:
        """The first pieces."""
        text = self._text(content, where)
        found = self.reader.encode(text, add_special_tokens=False)
        ids = np.array(found.ids[:most], dtype=np.uint32)
        end = len(text) if len(ids) == len(found.ids) else found.offsets[len(ids) - 1][1] if len(ids) else 0
        return ids, len(text[:end].encode())
