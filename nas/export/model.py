"""One candidate with everything that a stack needs to write it, and how it is served."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from nas.errors import UsageError
from nas.export.recipe import Recipe, Schedule, schedule
from nas.export.tokenizer import Tokenizer
from objectives.scenario import Scenario
from search_spaces.architectures import Architectures
from search_spaces.columns import EXPERTS_IN, SPECULATION, drafted_of, slow_share_of

#: Classes with a head for multi-token prediction by model_type, and the key of config.json that says how many layers it has.
HEADS = {"qwen3_next": "num_nextn_predict_layers"}
DRAFT = "draft"  # the draft model's directory beside hf; its GGUF is draft.gguf


@dataclass(frozen=True)
class Served:
    """The words of `search_spaces.columns` that hold for one candidate; reader: the device that reads its prompts, "" the same."""

    speculation: str = "none"
    experts_in: str = "fast"
    reader: str = ""

    @property
    def plain(self) -> bool:
        """Whether launch lines are as without any of it."""
        return self == Served()

    @property
    def drafter(self) -> str:
        """What drafts: mtp, draft, "" nothing."""
        return drafted_of(self.speculation)[0]

    @property
    def drafted(self) -> int:
        """Tokens drafted in a step."""
        return drafted_of(self.speculation)[1]

    def slow_layers(self, architecture: Architectures) -> int:
        """The first layers, so many, whose experts lie in slow memory; dense ones that stand before them count, as llama.cpp counts."""
        dense = int(architecture.n_dense[0])
        slow = round(slow_share_of(self.experts_in) * (int(architecture.depth[0]) - dense))
        return dense + slow if slow else 0

    def in_words(self) -> str:
        """For the README."""
        parts = [f"speculation {self.speculation}"] * bool(self.drafted)
        parts += [f"experts {self.experts_in}"] * (self.experts_in != "fast")
        return ", ".join([*parts, *([f"prompts read by {self.reader}"] if self.reader else [])])


def served_as(scenario: Scenario) -> Served:
    """How a design is served, from the scenario that it is in."""
    serving = scenario.serving
    reader = "" if serving.prompts is None else serving.prompts.device.name
    return Served(serving.speculation, serving.experts_in, reader)


def written_serving(candidates: list[Served]) -> dict[str, Any]:
    """The entry of export.json: of all candidates, or of each where they differ; nothing where all are plain."""
    if all(served.plain for served in candidates):
        return {}
    plain = [asdict(served) for served in candidates]
    return {"serving": plain[0] if len(set(candidates)) == 1 else plain}


def serving_in(content: Any) -> tuple[Served, ...]:
    """The same, read back.

    Raises:
        ValueError, TypeError: it is none.
    """
    candidates = tuple(Served(**each) for each in (content if isinstance(content, list) else [content]))
    for served in candidates:
        if served.speculation not in SPECULATION or served.experts_in not in EXPERTS_IN:
            raise ValueError(f"serving {served.in_words()}")
    return candidates


def refuse_unserved(served: Served, model_type: str, class_name: str) -> None:
    """Refuse a head that drafts where the class has none, and what has no predicted time.

    Raises:
        UsageError: with the classes that have one, and how to leave it out.
    """
    if served.drafted and served.experts_in != "fast":
        raise UsageError(
            f"serving: expected tokens drafted ahead or experts in slow memory, got {served.in_words()}, whose time no formula gives; "
            "add --set serving.speculation=none or --set serving.experts_in=fast"
        )
    if served.drafter == "mtp" and model_type not in HEADS:
        raise UsageError(
            f"speculation: expected a class of transformers with a head for multi-token prediction, Qwen3NextForCausalLM, got "
            f"{class_name} for {served.speculation}, whose config.json has no key for one; --set serving.speculation=none exports the design "
            "without its head"
        )


def refuse_weights_without_head(served: Served, stack: str, *, weights: bool) -> None:
    """Refuse a GGUF of random weights for a design that drafts itself: it is written without the head.

    Raises:
        UsageError: with what does.
    """
    if served.drafter == "mtp" and stack == "llama_bench" and weights:
        raise UsageError(
            f"llama-bench: expected --set serving.speculation=none with --weights, got {served.speculation}: model.gguf is written without a head "
            "that drafts; without --weights bench.sh converts the trained model, head included"
        )


def cautions_of(served: Served) -> Iterator[str]:
    """What to know whatever the stack."""
    if served.drafter == "mtp":
        yield (
            "parameters, FLOPs and GPU hours do not count the head that drafts, a layer and a projection more, and no stack here trains it"
        )
    if served.reader:
        yield f"prompts are predicted on {served.reader}; launch lines are of one device"


@dataclass(frozen=True)
class Workload:
    """The workload of inference benches: sequences at once, tokens in, tokens out."""

    batch: int
    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, eq=False)
class Model:
    """A candidate as the stacks write it: one architecture (n = 1) with a vocabulary; `gguf`: the weight format of that
    file, `precision`: that in which times are predicted."""

    id: str
    folder: str
    architecture: Architectures
    tokenizer: Tokenizer
    recipe: Recipe
    workload: Workload
    weights: bool = False
    seed: int = 0
    gguf: str = "f16"
    precision: str = ""
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
