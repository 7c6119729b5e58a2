"""Tensor types of GGUF files: bytes, which type each tensor has in a weight format, and what does not fit its rows.

A format is a mixture of types, by class of tensor in `objectives/weight_formats`; which layers keep more bits, and what exactly
8 experts change, is here. The choice is llama-quantize's, so that a file written here is read at the same speed as one made
by it. Source: `src/llama-quant.cpp` of llama.cpp 0.5.0 (llama-cpp-python 0.3.36).
"""

from dataclasses import dataclass

from objectives.weight_formats.table import TYPES as BLOCKS
from objectives.weight_formats.table import WEIGHT_FORMATS, BlockType, TensorClass


@dataclass(frozen=True)
class Type:
    """A tensor type: its number in the file, and bytes per block of elements of a row."""

    name: str
    number: int
    block: int
    bytes: int

    def size(self, elements: int) -> int:
        """Bytes of so many elements, whole blocks."""
        return elements // self.block * self.bytes


NUMBERS = {
    "F32": 0,
    "F16": 1,
    "Q4_0": 2,
    "Q5_0": 6,
    "Q5_1": 7,
    "Q8_0": 8,
    "Q4_K": 12,
    "Q5_K": 13,
    "Q6_K": 14,
    "MXFP4": 39,
}


def _type(block: BlockType) -> Type:
    return Type(block.name, NUMBERS[block.name], block.weights, int(block.bytes))


BY_NAME = {name: _type(BLOCKS[name]) for name in NUMBERS}
TYPES = {each.number: each for each in BY_NAME.values()}
F32, F16, Q4_0, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K, Q6_K, MXFP4 = BY_NAME.values()
#: Formats that are written here, with their numbers as `general.file_type`; all but `f16` are called as their precision is.
FORMATS = {"f16": 1, "q8_0": 7, "q6_k": 18, "q5_k_m": 17, "q4_k_m": 15, "q4_0": 2, "mxfp4": 38}
#: Never quantised, whatever their shape.
WHOLE = ("ffn_gate_inp.weight", "shortconv.conv.weight", "ssm_conv1d.weight", "_norm.weight", "ssm_a", "ssm_d")
EIGHT = 8  # experts, with which llama-quantize spares keys and values


@dataclass(frozen=True)
class Mixture:
    """The quantities that decide the types of a model's tensors besides their shapes; `attention`: places of the layers with keys and values."""

    format: str
    depth: int
    n_experts: int
    tied: bool
    name: str
    attention: list[int]

    def type_of(self, tensor: str, shape: tuple[int, ...]) -> Type:
        """The type that a tensor is written in."""
        return fitting(self.wanted(tensor, shape), shape)

    def wanted(self, tensor: str, shape: tuple[int, ...]) -> Type:
        """The type that it would have if its rows were multiples of every block."""
        if len(shape) == 1 or tensor.endswith(WHOLE):
            return F32
        if tensor == ("token_embd.weight" if self.tied else "output.weight"):
            return self._types("head")[0]
        if tensor == "token_embd.weight":
            return self._types("embedding")[0]
        return self._in_a_layer(tensor)

    def _types(self, kind: TensorClass) -> list[Type]:
        """The types of a class of tensors, the usual one first."""
        return [
            BY_NAME[each.name] for each in WEIGHT_FORMATS[{"f16": "fp16"}.get(self.format, self.format)].types_of(kind)
        ]

    def _in_a_layer(self, tensor: str) -> Type:
        _, _, rest = tensor.partition(".")
        layer, _, part = rest.partition(".")
        eight = self.n_experts == EIGHT and self.format != "f16"
        if eight and part in ("attn_k.weight", "attn_v.weight"):
            return Q8_0
        if eight and part == "attn_output.weight" and self.format == "q4_k_m":
            return Q5_K
        usual, *more = self._types(class_of(part))
        if more:
            values = part == "attn_v.weight"  # which are counted among themselves
            place, of = (self.attention.index(int(layer)), len(self.attention)) if values else (int(layer), self.depth)
            if more_bits(place, of):
                return more[0]
            if values and usual is Q4_K and (self.name, self.depth) == ("qwen2", 80):  # taken for a 70B
                return Q5_K
        return usual


def class_of(part: str) -> TensorClass:
    """The class of a matrix of a layer by its name in the file: `ffn_down_exps.weight` is of `expert_down`."""
    if part.endswith("_exps.weight"):
        return "expert_down" if part.startswith("ffn_down") else "experts"
    if part == "attn_v.weight":
        return "values"
    return "down" if part.startswith("ffn_down") else "weights"


def format_numbered(number: int) -> str:
    """The format of a `general.file_type`.

    Raises:
        ValueError: none of ours.
    """
    for name, known in FORMATS.items():
        if known == number:
            return name
    raise ValueError(f"general.file_type: expected one of {', '.join(FORMATS)}, got number {number}")


def more_bits(layer: int, depth: int) -> bool:
    """Layers whose values and down projections have the second of two types, Q4_K_M's in 6 bits: the first and last eighth, and every third between."""
    eighth = depth // 8
    return layer < eighth or layer >= 7 * depth // 8 or (layer - eighth) % 3 == 2


def fitting(wanted: Type, shape: tuple[int, ...]) -> Type:
    """The type itself, else the nearest whose blocks divide a row."""
    return BY_NAME[BLOCKS[wanted.name].fitting(shape[-1]).name]
