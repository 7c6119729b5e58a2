"""The tensors of a Hugging Face checkpoint, in order: name, shape, and how each is initialised."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from nas.exporting.model import Model


@dataclass(frozen=True)
class Tensor:
    """One tensor; `std` 0 is a constant of `mean`."""

    name: str
    shape: tuple[int, ...]
    std: float
    mean: float = 0.0

    @property
    def size(self) -> int:
        """Elements."""
        return prod(self.shape)


def tensors(model: Model) -> Iterator[Tensor]:
    """Every tensor of a model; what ends a residual branch (o_proj, down_proj) has the recipe's residual deviation."""
    width, vocabulary, std = model.column("width"), model.column("vocabulary"), model.schedule.std
    yield Tensor("model.embed_tokens.weight", (vocabulary, width), std)
    for layer in range(model.column("depth")):
        for tensor in (*_attention(model), *_ffn(model)):
            yield Tensor(f"model.layers.{layer}.{tensor.name}", tensor.shape, tensor.std, tensor.mean)
    yield Tensor("model.norm.weight", (width,), 0.0, 1.0)
    if not model.architecture.tied[0]:
        yield Tensor("lm_head.weight", (vocabulary, width), std)


def _attention(model: Model) -> Iterator[Tensor]:
    a, q, plan = model.architecture, model.column, model.schedule
    d, query, kv = q("width"), int(a.query_dim[0]), int(a.kv_dim[0])
    yield Tensor("input_layernorm.weight", (d,), 0.0, 1.0)
    for name, rows in (("q", query), ("k", kv), ("v", kv)):
        yield Tensor(f"self_attn.{name}_proj.weight", (rows, d), plan.std)
        if a.qkv_bias[0]:
            yield Tensor(f"self_attn.{name}_proj.bias", (rows,), 0.0)
    yield Tensor("self_attn.o_proj.weight", (d, query), plan.residual_std)
    if q("qk_norm"):
        yield Tensor("self_attn.q_norm.weight", (q("head_dim"),), 0.0, 1.0)
        yield Tensor("self_attn.k_norm.weight", (q("head_dim"),), 0.0, 1.0)
    yield Tensor("post_attention_layernorm.weight", (d,), 0.0, 1.0)


def _ffn(model: Model) -> Iterator[Tensor]:
    d, experts = model.column("width"), model.column("n_experts")
    if model.sparse:
        yield Tensor("mlp.gate.weight", (experts, d), model.schedule.std)
    for expert in range(experts):
        where = f"mlp.experts.{expert}" if model.sparse else "mlp"
        m, plan = model.column("expert_size"), model.schedule
        yield Tensor(f"{where}.gate_proj.weight", (m, d), plan.std)
        yield Tensor(f"{where}.up_proj.weight", (m, d), plan.std)
        yield Tensor(f"{where}.down_proj.weight", (d, m), plan.expert_std if model.sparse else plan.residual_std)
