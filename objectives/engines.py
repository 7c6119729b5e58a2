"""Inference engines: the names that logs and users give them, and the designs that each runs as trained."""

import csv
from collections.abc import Mapping

import numpy as np
from pydantic import BaseModel, ConfigDict

from objectives import outside
from objectives.plugins import folder, packaged
from search_spaces.architectures import Architectures
from search_spaces.axes_schema import Rule
from search_spaces.columns import CODED, NOT_OF_A_MODEL, dtype_of, worded
from search_spaces.formats import operators_of
from search_spaces.layer_kinds import SIZES
from search_spaces.mixes import implied_columns

#: How the names that engines are given in logs and tables begin, and the engine.
ENGINES = {
    "llama": "llama.cpp",
    "ollama": "llama.cpp",
    "lm-studio": "llama.cpp",
    "koboldcpp": "llama.cpp",
    "tensorrt-edge": "TensorRT-Edge-LLM",
    "genie": "Genie",
    "qnn": "Genie",
    "rkllm": "rkllm",
    "vllm": "vLLM",
    "mlc": "MLC-LLM",
    "mlx": "MLX",
    "tensorrt": "TensorRT-LLM",
    "trt": "TensorRT-LLM",
    "litert": "LiteRT-LM",
    "executorch": "ExecuTorch",
    "openvino": "OpenVINO",
    "onnx": "ONNX Runtime GenAI",
}
#: Columns that a kind of layers says, or that change no layer.
SPOKEN_OF = {*SIZES, *(size for sizes in SIZES.values() for size in sizes), "n_kv_shared", "n_kv_shared_local"}
SPOKEN_OF = SPOKEN_OF - {"n_dense", "dense_size"} | {*NOT_OF_A_MODEL, "tied", "vocabulary"}
OF_WIDTH = ("conv", "mamba2")  # kinds of layers that engines run only where n_heads * head_dim is the width
TOP_1, EXPERTS = "top-1 routing", "experts"
LISTS = ("dense", "sparse", "formats")  # of `Runs`
PREFILL_CHUNK = 8192  # tokens of prompts that an engine reads at once where nothing else is known of it


def engine_of(name: str) -> str:
    """Return the engine of a name, `llama.cpp` for `llama-bench May-2024`; an unknown name is returned as it is."""
    lower = name.strip().lower().replace("_", "-").replace(" ", "-")
    return next((engine for start, engine in ENGINES.items() if lower.startswith(start)), name.strip())


class Runs(BaseModel):
    """The designs that an engine is known to run; keys are described in `engines.yaml`."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    experts: bool = True
    top_1_routing: bool
    dense: tuple[str, ...]
    sparse: tuple[str, ...]
    formats: tuple[str, ...]
    prefill_chunk: int = PREFILL_CHUNK
    source: str

    def runs_format(self, precision: str) -> bool:
        """Return True if the engine runs weights in a format, whatever the KV cache."""
        return operators_of(precision) in self.formats

    def lacks(self, design: Architectures, precision: str) -> str:
        """Return what keeps the engine from running a design (one row) as trained: `experts`, `top-1 routing`, a layer kind, a format; "" if nothing."""
        sparse = bool(design.n_experts[0] > 1)
        if sparse and not self.experts:
            return EXPERTS
        if sparse and design.top_k[0] == 1 and not self.top_1_routing:
            return TOP_1
        square = bool(design.n_heads[0] * design.head_dim[0] == design.width[0])
        wrong = (k for k in kinds_of(design) if not self.runs_kind(k, sparse=sparse, square=square))
        return next(wrong, "" if self.runs_format(precision) else precision)

    def runs_kind(self, kind: str, *, sparse: bool, square: bool) -> bool:
        """Return True if the engine runs layers of a kind; `square`: n_heads * head_dim is the width."""
        return kind in (self.sparse if sparse else self.dense) and (square or kind not in OF_WIDTH)


def tried() -> dict[str, Runs]:
    """Return the designs that engines were seen to run, by `engine_tries.csv`: conversions that were tried, `studies/four_engines` says how.

    takes: `yes` where first logits were those of transformers and all parameters were there.
    """
    text = outside.text(folder("objectives") / "engine_tries.csv", outside.MB)
    rows = list(csv.DictReader(text.splitlines()))

    def taken(row: str, **of: str) -> tuple[str, ...]:
        return tuple(each[row] for each in good if all(each[name] == value for name, value in of.items()))

    runs = {}
    for name in dict.fromkeys(row["engine"] for row in rows):
        own = [row for row in rows if row["engine"] == name]
        good = [row for row in own if row["takes"] == "yes"]
        kinds = {
            experts: taken("kind", experts=experts, format=own[0]["format"]) for experts in ("no", "top_2", "top_1")
        }
        runs[name] = Runs(
            experts="" in kinds["top_2"],
            top_1_routing="" in kinds["top_1"],
            dense=tuple(filter(None, kinds["no"])),
            sparse=tuple(filter(None, kinds["top_2"])),
            formats=taken("format", kind="", experts="no"),
            source=f"tried with {own[0]['version']}",
        )
    return runs


def _known() -> dict[str, Runs]:
    """What was tried, and besides what `engines.yaml` states of what was not."""
    known = {name: Runs.model_validate(keys) for name, keys in packaged("objectives", "engines").items()}
    for name, found in tried().items():
        stated = known.get(name)
        more = {} if stated is None else {what: getattr(stated, what) + getattr(found, what) for what in LISTS}
        chunk = PREFILL_CHUNK if stated is None else stated.prefill_chunk
        known[name] = found.model_copy(update=more | {"prefill_chunk": chunk})
    return known


RUNS: Mapping[str, Runs] = _known()


def prefill_chunk_of(engine: str) -> int:
    """Return the number of prompt tokens that an engine reads at once."""
    known = RUNS.get(engine_of(engine))
    return PREFILL_CHUNK if known is None else known.prefill_chunk


def runs_format(engine: str, precision: str) -> bool:
    """Return True if an engine may run weights in a format; unknown engines may run any."""
    known = RUNS.get(engine_of(engine))
    return known is None or known.runs_format(precision)


def beside_attention(designs: Architectures) -> bool:
    """Return True if any design has layers of linear attention, convolution or a shared cache."""
    return any(bool((getattr(designs, name) > 0).any()) for name in ("n_linear", "n_conv", "n_kv_shared"))


def kinds_of(design: Architectures) -> list[str]:
    """Return the layer kinds of a design (one row) beside full attention.

    Columns at other values than kinds of layers give them make one kind of all: `window and norms_per_layer 4`.
    """
    implied = implied_columns(design.linear_kind, design.n_kv_shared, design.width)
    further = [name for name in design.further_columns(implied) if name not in SPOKEN_OF]
    odd = [name for name in further if getattr(design, name)[0] != implied.get(name, (CODED[name],))[0]]
    named = [name if dtype_of(name) is np.bool_ else f"{name} {worded(name, getattr(design, name))[0]}" for name in odd]
    kinds = _mixers(design)
    return [" and ".join([*kinds, *named])] if named else kinds


def _mixers(design: Architectures) -> list[str]:
    """The kinds that mixers and their caches are of."""
    counts = {"local": design.n_local, "conv": design.n_conv, "kv_shared": design.n_kv_shared}
    local, conv, shared = (bool(counts[name][0] > 0) for name in counts)
    linear = str(worded("linear_kind", design.linear_kind)[0])
    return [*_cached(local=local, shared=shared), *(["conv"] if conv else []), *([linear] if linear != "no" else [])]


def kinds_of_rule(rule: Rule) -> list[str]:
    """Return the layer kinds beside full attention that a rule of a space makes."""
    others = [kind for kind in ("conv" if rule.conv else None, rule.linear) if kind is not None]
    return [*_cached(local=rule.local is not None, shared=rule.kv_shared is not None), *others]


def _cached(*, local: bool, shared: bool) -> list[str]:
    """Windows whose KV caches are shared are a kind of their own, as is sharing without windows."""
    if shared:
        return ["kv_shared" if local else "kv_shared without windows"]
    return ["window"] if local else []
