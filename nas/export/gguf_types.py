"""Tensor types of GGUF files: bytes, which type each tensor has in a weight format, and what does not fit its rows.

A format (f16, q8_0, q4_0, q4_k_m) is a mixture of types. The choice is llama-quantize's, so that a file written here is
read at the same speed as one made by it. Source: `src/llama-quant.cpp` of llama.cpp 0.5.0 (llama-cpp-python 0.3.36).
"""

from dataclasses import dataclass


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


F32, F16 = Type("F32", 0, 1, 4), Type("F16", 1, 1, 2)
Q4_0, Q5_0, Q5_1, Q8_0 = (
    Type("Q4_0", 2, 32, 18),
    Type("Q5_0", 6, 32, 22),
    Type("Q5_1", 7, 32, 24),
    Type("Q8_0", 8, 32, 34),
)
Q4_K, Q5_K, Q6_K = Type("Q4_K", 12, 256, 144), Type("Q5_K", 13, 256, 176), Type("Q6_K", 14, 256, 210)
TYPES = {each.number: each for each in (F32, F16, Q4_0, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K, Q6_K)}
FALLBACK = {Q4_K: Q5_0, Q5_K: Q5_1, Q6_K: Q8_0}  # where a row is no multiple of 256; 16-bit where it is none of 32
#: What most matrices of a format hold, and its number as `general.file_type`.
FORMATS = {"f16": (F16, 1), "q8_0": (Q8_0, 7), "q4_0": (Q4_0, 2), "q4_k_m": (Q4_K, 15)}
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
        usual = FORMATS[self.format][0]
        if len(shape) == 1 or tensor.endswith(WHOLE):
            return F32
        if usual is F16:
            return F16
        if tensor == ("token_embd.weight" if self.tied else "output.weight"):
            return Q8_0 if usual is Q8_0 else Q6_K
        return self._in_a_layer(tensor, usual)

    def _in_a_layer(self, tensor: str, usual: Type) -> Type:
        _, _, rest = tensor.partition(".")
        layer, _, part = rest.partition(".")
        if self.n_experts == EIGHT and part in ("attn_k.weight", "attn_v.weight"):
            return Q8_0
        if usual is not Q4_K:
            return usual
        if self.n_experts == EIGHT and part == "attn_output.weight":
            return Q5_K
        if part == "attn_v.weight" or part.startswith("ffn_down"):
            values = part == "attn_v.weight"  # which are counted among themselves
            place, of = (self.attention.index(int(layer)), len(self.attention)) if values else (int(layer), self.depth)
            if more_bits(place, of):
                return Q6_K
            if part == "attn_v.weight" and (self.name, self.depth) == ("qwen2", 80):  # taken for a 70B
                return Q5_K
        return usual


def format_numbered(number: int) -> str:
    """The format of a `general.file_type`.

    Raises:
        ValueError: none of ours.
    """
    for name, (_, known) in FORMATS.items():
        if known == number:
            return name
    raise ValueError(f"general.file_type: expected one of {', '.join(FORMATS)}, got number {number}")


def more_bits(layer: int, depth: int) -> bool:
    """Layers whose values and down projections Q4_K_M keeps in 6 bits: the first and last eighth, and every third between."""
    eighth = depth // 8
    return layer < eighth or layer >= 7 * depth // 8 or (layer - eighth) % 3 == 2


def fitting(wanted: Type, shape: tuple[int, ...]) -> Type:
    """The type itself, else the nearest whose blocks divide a row."""
    found = wanted if shape[-1] % wanted.block == 0 else FALLBACK.get(wanted, F16)
    return found if shape[-1] % found.block == 0 else F16
