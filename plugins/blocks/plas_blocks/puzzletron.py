"""Puzzletron's replacement_metrics_and_stats.json, and its solutions.

Source: NVIDIA/Model-Optimizer, modelopt/torch/puzzletron: mip/run_puzzle.py writes the file, with one entry a replacement
(`parent_layer_indices`, `block_config`, `metrics`, `stats`, `is_teacher`) or, in earlier versions, one object a layer
(`block_0`, with `block_idx` in each variant); block_config.py says what a block is, as `attention` and `ffn` or as a list
`subblock_configs`; mip/mip_with_multi_layer_replacements.py writes `chosen_replacements`, `total_value`, `total_costs`.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from nas.errors import UsageError
from plas_blocks.library import Library, Row

FILE = "replacement_metrics_and_stats.json"
CARRIED = ("block_config", "layer_replacement")
ATTENTION, FEED_FORWARD = ("attention", "mla"), ("ffn", "moe")


def rows_of(source: str, content: Any) -> tuple[list[Row], tuple[str, ...]]:
    """The replacements of a file, and which of their values are scores.

    Raises:
        UsageError: not a file of that kind.
    """
    if not isinstance(content, dict):
        raise UsageError(
            f"{source}: expected Puzzletron's {FILE}, an object of replacements, got another; name that file"
        )
    entries = list(_entries(content))
    scores = tuple(dict.fromkeys(name for _, entry in entries for name in _mapping(entry.get("metrics"))))
    return [_row(source, where, entry) for where, entry in entries], scores


def _entries(content: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Replacements with their names, whether they stand together or under their layers."""
    for name, entry in content.items():
        if isinstance(entry, dict) and "metrics" not in entry and all(isinstance(v, dict) for v in entry.values()):
            yield from ((f"{name}.{inner}", each) for inner, each in entry.items())
        elif isinstance(entry, dict):
            yield name, entry
        else:
            yield name, {}


def _row(source: str, where: str, entry: Mapping[str, Any]) -> Row:
    layers = entry.get("parent_layer_indices", [entry.get("block_idx")])
    if not isinstance(layers, list) or not all(type(layer) is int for layer in layers):
        wanted = "parent_layer_indices, a list of layers, or block_idx"
        raise UsageError(
            f"{source}: {where}: expected {wanted}, got {str(layers)[:60]}; this is not Puzzletron's {FILE}"
        )
    config = entry.get("block_config")
    numbers = {
        name: value for name, value in _mapping(entry.get("stats")).items() if not isinstance(value, (list, dict))
    }
    values = {**_presence(config), **numbers, **_mapping(entry.get("metrics"))}
    content = {name: entry[name] for name in CARRIED if isinstance(entry.get(name), (dict, str))}
    kind = json.dumps(config, sort_keys=True) if config is not None else ""
    return Row(where, tuple(layers), _name(entry, config), bool(entry.get("is_teacher")), values, kind, content)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def subblocks(config: Any) -> list[tuple[str, Mapping[str, Any]]]:
    """The parts of a block with what they are: attention, ffn, moe, mamba …; none where that is not known."""
    if not isinstance(config, dict):
        return []
    listed = config.get("subblock_configs")
    if isinstance(listed, list):
        return [(str(part.get("kind")), part) for part in listed if isinstance(part, dict)]
    found = list[tuple[str, Mapping[str, Any]]]()
    for name in ("attention", "ffn"):
        part = config.get(name)
        if isinstance(part, dict):
            inner = "mamba" if part.get("mamba") else "moe" if part.get("moe") else name
            found.append((inner, part))
    return found


def _presence(config: Any) -> dict[str, int]:
    """has_attention and has_ffn, 0 or 1, of a block whose parts are known; Puzzletron's own go before them."""
    active = [kind for kind, part in subblocks(config) if not part.get("no_op")]
    if not subblocks(config):
        return {}
    return {
        "has_attention": int(any(k in ATTENTION for k in active)),
        "has_ffn": int(any(k in FEED_FORWARD for k in active)),
    }


def _name(entry: Mapping[str, Any], config: Any) -> str:
    """The block in a few words."""
    told = entry.get("block_repr")
    if isinstance(told, str) and told.strip():
        return " ".join(told.split())
    parts = subblocks(config)
    return " ".join(_part(kind, part) for kind, part in parts) or str(config)[:100]


def _part(kind: str, part: Mapping[str, Any]) -> str:
    if part.get("no_op"):
        return f"{kind}: no_op"
    if part.get("replace_with_linear"):
        return f"{kind}: linear"
    keys = {**part, **_mapping(part.get("moe")), **_mapping(part.get("mamba"))}
    sizes = [f"{name}_{value}" for name, value in keys.items() if type(value) is int]
    return f"{kind}: {' '.join(sizes)}".strip()


def solution(library: Library, chosen: Sequence[int], objective: str, limits: Mapping[str, float]) -> dict[str, Any]:
    """A mixture as an entry of Puzzletron's solutions.json: what its realisation of models reads.

    total_value is Puzzletron's sum of the chosen scores as they stand in the library; PLAS's own prediction is beside it.
    """
    replaced = [_replacement(library, row) for row in chosen]
    costs = {f"stats.{name}": library.total(name, chosen) for name in library.costs}
    return {
        "chosen_replacements": replaced,
        "total_value": {f"metrics.{objective}": float(library.metrics[objective][list(chosen)].sum())},
        "total_costs": costs,
        "predicted": {name: library.total(name, chosen) for name in library.scores},
        "limits": dict(limits),
        "chosen_block_configs": per_layer(library, chosen),
        "solution_repr": "".join(f"block_{i}:".ljust(9) + library.blocks[row] + "\n" for i, row in enumerate(chosen)),
    }


def per_layer(library: Library, chosen: Sequence[int]) -> list[Any]:
    """The block_configs of a mixture, first layer first; a block known by name alone is `{"block": name}`."""
    return [library.contents[row].get("block_config", {"block": library.blocks[row]}) for row in chosen]


def _replacement(library: Library, row: int) -> dict[str, Any]:
    layers = list(range(int(library.first[row]), int(library.first[row] + library.length[row])))
    config = library.contents[row].get("block_config", {"block": library.blocks[row]})
    return {
        "parent_layer_indices": layers,
        "block_config": config,
        "child_block_configs": [config],
        "is_teacher": bool(library.parent[row]),
        "metrics": {name: float(library.metrics[name][row]) for name in library.scores},
        "stats": {name: float(library.metrics[name][row]) for name in library.costs},
        **{name: value for name, value in library.contents[row].items() if name == "layer_replacement"},
    }
