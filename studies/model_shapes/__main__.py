"""Writes search_spaces/models/shapes.json: `python -m studies.model_shapes TABLE`; README.md says which table."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from numpy import nan_to_num

from nas.study.config_file import architecture_of
from nas.study.model_types import model_types
from nas.study.towers import drafting
from objectives.counts import total

HERE = Path(__file__).parent
SHAPES = HERE.parents[1] / "search_spaces" / "models" / "shapes.json"
#: Keys of config.json by the table's; its `moe_intermediate_size` is that of the FFN where there are no experts.
SIZES = {
    "num_hidden_layers": "num_hidden_layers", "hidden_size": "hidden_size", "num_attention_heads": "num_attention_heads",
    "num_key_value_heads": "num_key_value_heads", "head_dim": "head_dim", "moe_intermediate_size": "intermediate_size", "vocab_size": "vocab_size",
}  # fmt: skip
#: Names of layers by model_type: of full attention, of the others.
WORDS = {
    "granitemoehybrid": ("attention", "mamba"), "gemma4_text": ("full_attention", "sliding_attention"), "lfm2_moe": ("full_attention", "conv"), "exaone4": ("full_attention", "sliding_attention"), "step3p5": ("full_attention", "sliding_attention"),
}  # fmt: skip
MOST_OFF = 0.02


def main() -> None:
    """Write the file."""
    table = {row["name"]: row for row in json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))}
    chosen = yaml.safe_load((HERE / "models.yaml").read_text(encoding="utf-8"))
    names = yaml.safe_load((HERE / "names.yaml").read_text(encoding="utf-8"))
    models = {name: entry_of(name, entry, table) for name, entry in chosen.items()}
    parts = {"models": models, "aliases": names["aliases"]}
    lines = {
        part: ",\n".join(f"  {json.dumps(name)}: {json.dumps(entry)}" for name, entry in entries.items())
        for part, entries in parts.items()
    }
    owners = json.dumps(sorted(names["owners"].split()))
    written = ",\n".join(f'"{part}": {{\n{text}\n}}' for part, text in lines.items())
    SHAPES.write_text(f'{{{written},\n"owners": {owners}}}\n', encoding="utf-8")
    print(len(models), "models")


def entry_of(name: str, entry: Mapping[str, Any], table: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """A model as shapes.json has it.

    Raises:
        ValueError: its shape has not the published number of parameters.
    """
    row = table.get(entry.get("repo", ""), {})
    counted = entry.get("counted", entry.get("repo"))
    published = entry.get("parameters") or table[counted]["parameters_raw"] - entry.get("beside", 0)
    config = config_of(entry, row)
    tied = entry.get("tied")
    if tied is None:  # it is where the repository stores one table
        tied = int(total(architecture_of({**config, "tie_word_embeddings": True}))[0]) == published
    config["tie_word_embeddings"] = tied
    own = int(total(architecture_of(config))[0])
    off = abs(own / published - 1)
    exact = published in stored(config)
    print(
        f"{name}: {own:,}, published {published:,}, {'exact' if exact else f'{100 * off:.5f} % off'}, "
        f"{'one table' if config['tie_word_embeddings'] else 'two tables'}"
    )
    if off > MOST_OFF and not exact:
        raise ValueError(f"{name}: expected {published:,} parameters, got {own:,}")
    source = entry.get("source", f"https://huggingface.co/{entry.get('repo')}")
    return {"config": config, "published": published, "source": source}


def config_of(entry: Mapping[str, Any], row: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a model's config.json, but for whether its tables are one."""
    kind = row.get("architecture", "")
    sizes = {ours: row[theirs] for theirs, ours in SIZES.items() if row.get(theirs) is not None}
    config = {"model_type": model_types().text_of.get(kind, kind), **sizes, **entry.get("more", {})}
    if "kv_lora_rank" in config:  # its head_dim is that of positions
        config.pop("head_dim", None)
    depth, full = config["num_hidden_layers"], config.pop("attention", None)
    if full is not None:
        words = WORDS[config["model_type"]]
        config["layer_types"] = [words[full != "all" and i not in full] for i in range(depth)]
    if "dense" in config:
        config["mlp_layer_types"] = [["sparse", "dense"][i < config["dense"]] for i in range(depth)]
        del config["dense"]
    if config["model_type"] == "granitemoehybrid":
        config = {"num_local_experts": 0, "shared_intermediate_size": config["intermediate_size"], **config}
    return config


def stored(config: Mapping[str, Any]) -> set[int]:
    """Parameters that files of a model hold: its own, one table twice, a layer that drafts tokens without and with tables of its own."""
    architecture = architecture_of(config)
    own, layer = int(total(architecture)[0]), int(nan_to_num(drafting(architecture)))
    table = config["vocab_size"] * config["hidden_size"]
    return {own, own + table * config["tie_word_embeddings"], own + layer, own + layer + 2 * table}


if __name__ == "__main__":
    main()
