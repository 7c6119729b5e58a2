"""One candidate with everything that a stack needs to write it."""

from dataclasses import dataclass, field

from nas.export.recipe import Recipe, Schedule, schedule
from nas.export.serving import Served
from nas.export.tokenizer import Tokenizer
from search_spaces.architectures import Architectures


@dataclass(frozen=True)
class Workload:
    """The workload of inference benches: sequences at once, tokens in, tokens out."""

    batch: int
    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, eq=False)
class Model:
    """A candidate as the stacks write it: one architecture (n = 1) with a vocabulary; `gguf`: the weight format of that file."""

    id: str
    folder: str
    architecture: Architectures
    tokenizer: Tokenizer
    recipe: Recipe
    workload: Workload
    weights: bool = False
    seed: int = 0
    gguf: str = "f16"
    served: Served = field(default_factory=Served)

    @property
    def schedule(self) -> Schedule:
        """The recipe's numbers for this architecture."""
        return schedule(self.recipe, self.architecture)

    @property
    def sparse(self) -> bool:
        """Whether it routes tokens to experts."""
        return bool(self.architecture.n_experts[0] > 1)

    def column(self, name: str) -> int:
        """A column of the architecture as a plain integer."""
        return int(getattr(self.architecture, name)[0])

    @property
    def context(self) -> int:
        """Positions that every file allows: at least Qwen3's 32,768, more where recipe or workload need it."""
        needed = self.workload.input_tokens + self.workload.output_tokens
        return max(32_768, self.recipe.sequence_length, needed)
