"""A tokenizer as a GGUF file holds it: byte-level BPE that splits text as GPT-2 does; of others a file has none.

Source: `src/llama-vocab.cpp` of llama.cpp 0.5.0 (llama-cpp-python 0.3.36).
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from nas.export.tokenizer import Tokenizer, ids_in
from objectives import outside

KEY = "tokenizer.ggml"
NORMAL, CONTROL, USER_DEFINED = 1, 3, 4  # types of entries
PLAIN = {"dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "byte_fallback", "ignore_merges"}


def holds_tokenizer(tokenizer: Tokenizer, vocabulary: int) -> bool:
    """Whether a file of a vocabulary can hold a tokenizer: one of exactly that size, split as llama.cpp splits for GPT-2."""
    return tokenizer.size == vocabulary and splits_as_gpt2(tokenizer)


def tokenizer_keys(tokenizer: Tokenizer, vocabulary: int) -> dict[str, Any]:
    """The metadata of a tokenizer: entries, their types, merges, special ids; where a file cannot hold it, that there is none."""
    if not holds_tokenizer(tokenizer, vocabulary):
        return {f"{KEY}.model": "none"}
    content = outside.parsed(tokenizer.files["tokenizer.json"].decode())
    ids, added = ids_in(content), {each["content"]: each for each in content.get("added_tokens") or []}
    tokens = sorted(ids, key=ids.__getitem__)
    merges = [pair if isinstance(pair, str) else " ".join(pair) for pair in content["model"].get("merges", [])]
    return {
        f"{KEY}.model": "gpt2",
        f"{KEY}.pre": "gpt-2",
        f"{KEY}.tokens": tokens,
        f"{KEY}.token_type": [_type(added.get(token)) for token in tokens],
        f"{KEY}.merges": merges,
        f"{KEY}.bos_token_id": tokenizer.eos if tokenizer.bos is None else tokenizer.bos,  # else llama.cpp takes 11
        f"{KEY}.eos_token_id": tokenizer.eos,
        f"{KEY}.padding_token_id": tokenizer.pad,
        f"{KEY}.add_bos_token": False,
    }


def tokenizer_digest(metadata: Mapping[str, Any]) -> str:
    """The tokenizer of a file's metadata in a few words, with a hash of everything that it holds."""
    held = {key: value for key, value in metadata.items() if key.startswith(f"{KEY}.")}
    digest = hashlib.sha256(json.dumps(held, sort_keys=True).encode()).hexdigest()[:12]
    return f"{held.get(f'{KEY}.model')} of {len(held.get(f'{KEY}.tokens', [])):,} tokens, {digest}"


def splits_as_gpt2(tokenizer: Tokenizer) -> bool:
    """Whether text is split and merged as by GPT-2; without merges bytes stay bytes, however it is split."""
    content = outside.parsed(tokenizer.files["tokenizer.json"].decode())
    model, before = content.get("model"), content.get("pre_tokenizer")
    if not isinstance(model, dict) or not isinstance(before, dict):
        return False
    if model.get("type") != "BPE" or any(model.get(name) for name in PLAIN) or content.get("normalizer") is not None:
        return False
    level = before.get("type") == "ByteLevel" and not before.get("add_prefix_space")
    ids = ids_in(content).values()
    return level and (before.get("use_regex", True) or not model.get("merges")) and sorted(ids) == list(range(len(ids)))


def _type(added: Mapping[str, Any] | None) -> int:
    if added is None:
        return NORMAL
    return CONTROL if added.get("special") else USER_DEFINED
