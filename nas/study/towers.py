"""Sizes of what a config.json describes beside its decoder of text: towers that see or hear, and layers that draft tokens."""

from collections.abc import Mapping
from dataclasses import replace
from math import isnan, nan
from typing import Any

import numpy as np

from nas.study.config_kinds import Config
from objectives.arithmetic import evaluated
from objectives.counts import total
from objectives.plugins import packaged
from search_spaces.architectures import Architectures

BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}
DRAFTS = ("num_nextn_predict_layers", "num_mtp_layers", "mtp_num_hidden_layers")
#: Columns of kinds of layers, of which the layer that drafts tokens has none.
COUNTS = ("further_parameters", "table_parameters")
OF_KINDS = ("n_local", "n_linear", "n_conv", "n_dense", "n_kv_shared", "n_kv_shared_local")


def beside(content: Mapping[str, Any], text: Mapping[str, Any], decoder: Architectures) -> dict[str, int | None]:
    """Parameters of what is beside the decoder of text, by its name; None where its size is not known."""
    parts = [name for name in ("vision", "audio") if content.get(f"{name}_config")]
    sizes = {f"{part} tower": tower(content, part, int(decoder.width[0])) for part in parts}
    for key in DRAFTS:
        if count := Config(text).count(key):
            size = count * drafting(decoder)
            sizes[f"{count} layer that drafts tokens ({key})"] = None if isnan(size) else int(size)
            break
    return sizes


def tower(content: Mapping[str, Any], part: str, width: int) -> int | None:
    """Parameters of a tower, `vision` or `audio`, and of what joins it to a decoder of that width; None of a kind that is not known."""
    shapes, own = packaged("nas.study", "towers"), content[f"{part}_config"]
    expected = shapes["models"].get(content.get("model_type"), {}).get(part)
    if not expected or not isinstance(own, Mapping):
        return None
    ((kind, joint),) = expected.items()
    named = str(own.get("model_type") or kind)
    if kind not in (named := named.replace("_moe", ""), f"{named}_vision"):
        return None
    keys = shapes["towers"][kind]["keys"]
    given = {symbol: own.get(key, content.get(key, default)) for symbol, (key, default) in keys.items()}
    values = {symbol: len(value) if isinstance(value, list) else value for symbol, value in given.items()}
    if not all(isinstance(value, int) and 0 <= value < 10**9 for value in values.values()):
        return None
    columns = {symbol: np.array([value]) for symbol, value in {**values, "w": width}.items()}
    return int(evaluated(f"{shapes['towers'][kind]['parameters']} + {joint}", columns.__getitem__)[0])


def drafting(decoder: Architectures) -> float:
    """Parameters of a layer that predicts the token after next: one of full attention, a projection of 2 d to d, three norms.

    NaN of a decoder whose layers have sizes of their own: which of them that layer has is not known.

    Source: DeepSeek-AI 2024 (arXiv 2412.19437), section 2.2, and MiMo-7B's file.
    """
    if decoder.layers[0]:
        return nan
    none: dict[str, Any] = dict.fromkeys((*OF_KINDS, *COUNTS), np.zeros(1, dtype=np.int64))
    layer = replace(decoder, depth=np.ones(1, dtype=np.int64), **none).with_vocabulary(0)
    width = float(decoder.width[0])
    # the layer alone has a last norm already
    return float(total(layer)[0]) + 2.0 * width * width + 2.0 * width
