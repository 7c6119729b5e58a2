"""The tokenizer of an exported directory: a byte-level one made here, or a given one, copied and checked."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nas.errors import UsageError
from objectives import outside

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
    ids = {character: byte for byte, character in enumerate(_characters())} | {END: SMALLEST - 1}
    return ids | {left + right: SMALLEST + i for i, (left, right) in enumerate(merges)}


def _characters() -> list[str]:
    """The printable character that stands for each byte, as byte-level tokenizers write it."""
    printable = {*range(33, 127), *range(161, 173), *range(174, 256)}
    shifted = iter(range(256, 512))
    return [chr(byte) if byte in printable else chr(next(shifted)) for byte in range(256)]


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
