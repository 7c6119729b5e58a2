"""Scores of a model with other blocks on a text, in batches, each kept at once so that a killed measurement goes on."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nas.errors import PlasError, UsageError
from nas.export.documents import documents
from nas.export.hf_config import refuse_missing
from nas.export.tokenizer import encoder_of, refuse_larger, tokenizer_for
from nas.record.jsonl_log import Record
from objectives import outside
from plas_blocks.surgery import importance_of, mixed, shapes_of
from plas_blocks.variants import Shape, Variant
from search_spaces.arrays import FloatArray, IntArray

LOG = "scores.jsonl"
CALIBRATED = 8  # sequences on which the channels of a feed-forward are ranked


@dataclass(frozen=True)
class Reading:
    """How a text is scored: tokens at most, of a sequence, sequences at once."""

    text: Path
    tokens: int
    length: int
    batch: int


@dataclass(frozen=True, eq=False)
class Scorer:
    """A model with the sequences that it is scored on, (n, length)."""

    model: Any
    ids: IntArray
    batch: int
    shapes: tuple[Shape, ...]
    importance: FloatArray

    def loss(self, chosen: Mapping[int, Variant]) -> float:
        """Mean cross entropy per predicted token in nats, with some layers replaced.

        Raises:
            PlasError: it is not finite.
        """
        import torch
        from torch.nn import functional

        total, count = 0.0, 0
        with torch.no_grad(), mixed(self.model, chosen, self.importance):
            for start in range(0, len(self.ids), self.batch):
                part = torch.from_numpy(self.ids[start : start + self.batch])
                logits = self.model(input_ids=part, use_cache=False).logits[:, :-1].float()
                total += float(functional.cross_entropy(logits.flatten(0, 1), part[:, 1:].flatten(), reduction="sum"))
                count += part[:, 1:].numel()
        if not np.isfinite(total):
            raise PlasError(
                f"score: expected a finite loss, got {total} with {dict(chosen)}; the weights may be damaged"
            )
        return total / count


READ = (".json", ".safetensors", ".bin", ".model")  # what transformers may open
MOST_BYTES = 1_000_000 * outside.MB


def scorer(folder: Path, reading: Reading) -> Scorer:
    """The model of a folder, with the text as its token ids; without a tokenizer.json a byte is a token.

    Raises:
        UsageError: no model, no text, layers of another build.
    """
    refuse_missing("blocks")
    from transformers import AutoModelForCausalLM

    if not (folder / "config.json").is_file():
        raise UsageError(f"{folder}: expected a Hugging Face model's folder, got no config.json in it; name another")
    try:
        for file in (file for file in folder.iterdir() if file.suffix in READ):
            outside.checked(file, MOST_BYTES)
        model: Any = AutoModelForCausalLM.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{folder}: expected a model, got {str(error).splitlines()[0][:200]}; complete the folder"
        ) from None
    model.eval()
    ids = _ids(folder, reading, int(model.config.vocab_size))
    import torch

    shapes = tuple(shapes_of(model))
    return Scorer(model, ids, reading.batch, shapes, importance_of(model, torch.from_numpy(ids[:CALIBRATED])))


def _ids(folder: Path, reading: Reading, vocabulary: int) -> IntArray:
    own = (folder / "tokenizer.json").is_file()
    tokenizer = tokenizer_for(str(folder) if own else "bytes")
    if own:
        refuse_larger(tokenizer, vocabulary)
    elif vocabulary < 256:
        raise UsageError(f"{folder}: expected a tokenizer.json, got none and fewer than 256 tokens; add the tokenizer")
    encoder, parts, have = encoder_of(tokenizer), list[IntArray](), 0
    for where, content in documents(str(reading.text), "--text"):
        found, _ = encoder.head(content, where, reading.tokens - have)
        parts.append(np.asarray(found, dtype=np.int64))
        have += len(found)
        if have >= reading.tokens:
            break
    count = have // reading.length
    if not count:
        raise UsageError(
            f"--text: expected at least {reading.length} tokens for one sequence, got {have}; give more text, or --sequence-length"
        )
    result: IntArray = np.concatenate(parts)[: count * reading.length].reshape(count, reading.length)
    return result


def identity(found: Scorer, reading: Reading, extra: Mapping[str, Any]) -> dict[str, Any]:
    """Settings that a continued measurement must share with the one it continues."""
    digest = hashlib.sha256()
    for name, value in found.model.state_dict().items():
        digest.update(name.encode() + value.detach().float().cpu().numpy().tobytes())
    return {
        "model": digest.hexdigest()[:32],
        "text": hashlib.sha256(found.ids.tobytes()).hexdigest()[:32],
        "tokens": int(found.ids.size),
        "sequence_length": reading.length,
        "shapes": [asdict(shape) for shape in found.shapes],
        **extra,
    }


def record_of(folder: Path, identity: dict[str, Any]) -> Record:
    """The scores that a folder keeps, a line each, `scored` and its `loss`; the folder must be locked.

    Raises:
        UsageError: a measurement of something else, a garbled record.
    """
    return Record(folder, identity, "measurement of blocks", LOG)


def key(chosen: Mapping[int, Variant]) -> str:
    """The name of a scored mixture in the record: `3:kv2 ffn64|5:no_attention ffn128`, or `parent`."""
    return "|".join(f"{at}:{variant.name}" for at, variant in sorted(chosen.items())) or "parent"


def replacements(shapes: Sequence[Shape]) -> list[dict[int, Variant]]:
    """The parent, then every layer with every other block in turn."""
    singles = [{at: v} for at, shape in enumerate(shapes) for v in shape.variants() if v != shape.parent]
    return [{}, *singles]


def sampled(shapes: Sequence[Shape], count: int, seed: int) -> list[dict[int, Variant]]:
    """Mixtures from few layers changed to all, each layer's block drawn evenly."""
    generator, found = np.random.default_rng(seed), list[dict[int, Variant]]()
    for number in range(count):
        changed = max(2, round((number + 1) / count * len(shapes))) if len(shapes) > 1 else 1
        layers = generator.choice(len(shapes), size=min(changed, len(shapes)), replace=False)
        others = {at: [v for v in shapes[at].variants() if v != shapes[at].parent] for at in layers.tolist()}
        found.append({at: choices[int(generator.integers(len(choices)))] for at, choices in sorted(others.items())})
    return found
