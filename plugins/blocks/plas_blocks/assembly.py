"""Mixtures assembled from the model whose blocks a library holds, and scored as the library was."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nas.errors import UsageError
from nas.record.jsonl_log import SETTINGS
from objectives import outside
from plas_blocks.session import Reading, Scorer, identity, scorer
from plas_blocks.variants import Variant


def real_losses(
    model: Path, library: Path, text: Path | None, mixtures: Sequence[Sequence[Mapping[str, Any]]]
) -> list[float]:
    """The loss of each mixture, given as the content of the block of every layer, on the text of the measurement.

    Raises:
        UsageError: a library that was not measured here, another model or text, blocks without their sizes.
    """
    told = _measurement(library)
    if text is None:
        raise UsageError("--real: expected the text of the measurement, got none; name it with --text")
    reading = Reading(text, told["tokens"], told["sequence_length"], 8)
    found = scorer(model, reading)
    now = identity(found, reading, {})
    other = [name for name in ("model", "text", "shapes") if now[name] != told.get(name)]
    if other:
        raise UsageError(
            f"--real: expected the {' and '.join(other)} that the library was measured with, got another; name that"
        )
    return [found.loss(_changed(found, mixture)) for mixture in mixtures]


def _measurement(library: Path) -> dict[str, Any]:
    path = (library if library.is_dir() else library.parent) / SETTINGS
    try:
        told = outside.json_of(path, outside.MB, own=True)
    except (OSError, ValueError):
        told = None
    if not isinstance(told, dict) or not all(type(told.get(name)) is int for name in ("tokens", "sequence_length")):
        raise UsageError(f"--real: expected a library that plas blocks --measure wrote, got no {path}; measure one")
    return told


def _changed(found: Scorer, mixture: Sequence[Mapping[str, Any]]) -> dict[int, Variant]:
    """The blocks that are not the parent's."""
    chosen = {}
    for at, (content, shape) in enumerate(zip(mixture, found.shapes, strict=True)):
        variant = _variant(content)
        if variant not in shape.variants():
            raise UsageError(
                f"--real: layer {at}: expected a block that --measure makes, got {variant.name}; measure again"
            )
        if variant != shape.parent:
            chosen[at] = variant
    return chosen


def _variant(content: Mapping[str, Any]) -> Variant:
    try:
        config = content["block_config"]
        return Variant(
            int(config["attention"]["num_key_value_heads"] or 0), int(config["ffn"]["intermediate_size"] or 0)
        )
    except (KeyError, TypeError, ValueError):
        raise UsageError(
            "--real: expected block_config with the sizes of each block, got none; measure the library"
        ) from None
