"""Finds the architecture of a log's model: as given, by a published model's name, or by its parameters; never guessed."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product

from nas.errors import UsageError
from nas.study.baselines import baseline, config_path, model_named
from nas.study.model_types import Family, model_types
from nas.study.towers import drafting
from objectives.counts import count, total
from objectives.dimensions import Dimensions
from objectives.measured_formats import Format, format_of
from objectives.memory import weights_by_part
from objectives.plugins import documents, normalised
from objectives.published_models import MODELS, model_ids, models_named
from plas_board.calibrate.figure import Figure, Stated, Unusable, refuse
from search_spaces.architectures import Architectures

ANY = ""  # the name of models that a log does not name
SIZE_SLACK = 0.07  # tensors kept in other formats than the file's, as a share of its bytes, within which its own bits are no other
MOST_OFF = (
    1.5  # times more or fewer bits than its format's that a file's weights may have: mixtures, rows that no blocks fill
)
#: Sizes in names, in billions, and the factors by which parameters may differ from a published model's and from a rounded size.
NAMED_SIZE = re.compile(r"(?<![A-Za-z\d.])(\d{1,4}(?:\.\d{1,3})?)[bB](?![A-Za-z\d])")
NAME_SLACK, ROUNDED_NAME = 1.05, 1.6
#: What Ollama's library has under a tag without a format, and families that have it so; older ones differ from tag to tag.
LIBRARY_FORMAT, LIBRARY_OTHERS = "q4_k_m", {"llama3.2:1b": "q8_0", "gemma3:270m": "q8_0", "gpt-oss": "mxfp4"}
LIBRARY = re.compile(
    r"(?:llama3\.[1-9]|qwen2\.5|qwen3|qwq|deepseek-r1|gemma(?:3|4)|phi4|mistral-small|devstral|ministral-3|magistral|granite[34]|nemotron|glm-4|olmo|rnj-1|lfm2)"
    r"[\w.-]*(?::(?:latest|[ae]?\d[\w.]*))?"
)
SMALLEST = re.compile(r":(?:0\.\d|[12])b|\d{3}m")  # models that the library keeps in more bits, some of them
TABLE_TWICE, NEXT_TOKEN = (
    "; the file holds its table of embeddings twice",
    "; the file holds its layer that drafts tokens too",
)


@dataclass(frozen=True, eq=False)
class Model:
    """A label and an architecture with its vocabulary."""

    label: str
    architecture: Architectures

    @cached_property
    def parameters(self) -> float:
        """All of them, a tied table once."""
        return float(total(self.architecture)[0])

    @cached_property
    def table(self) -> float:
        """Elements of one table of embeddings."""
        return float(self.architecture.vocabulary[0] * self.architecture.width[0])

    @cached_property
    def drafting(self) -> float:
        """Elements of a layer that predicts the token after next."""
        return drafting(self.architecture)

    def holds(self, stated: Stated) -> str | None:
        """The content of a file of so many elements: "" the model, a note on what is in it besides, None another model."""
        more = {"": 0.0, TABLE_TWICE: self.table * bool(self.architecture.tied[0]), NEXT_TOKEN: self.drafting}
        return next((note for note, n in more.items() if abs(self.parameters + n - stated.value) <= stated.slack), None)

    def bits_of(self, written: Format) -> float:
        """Bits that linear weights have in a format, on average over its classes of tensors."""
        groups = count(self.architecture)
        mixing, ffn = weights_by_part(Dimensions(self.architecture), groups, written.precision)
        return 8.0 * float(mixing[0] + ffn[0]) / float(groups.linear[0])

    def read_by_a_step(self, bits: float, written: Format) -> float:
        """Bytes of weights that a step of one sequence reads at least: experts of one token, and the LM head in the smaller of both formats."""
        groups = count(self.architecture)
        used = groups.attention + groups.mixers + groups.experts_active + groups.shared_expert + groups.dense
        return float(used[0]) * bits / 8 + self.table * min(bits / 8, float(written.precision.head_bytes))

    def bits_in(self, size: Stated, written: Format, holds: str) -> tuple[float, float]:
        """Least and most bits that linear weights have in a file of so many bytes; the LM head has those of its format.

        Tensors that columns do not describe, tables of per-layer embeddings among them, have as many; norms and routers 32.
        """
        groups, further = count(self.architecture), float(self.architecture.further_parameters[0])
        tables, head = float(groups.embedding[0]) / self.table, self.table * written.precision.head_bytes
        small = float(groups.router[0] + groups.small[0] - further) * 4.0
        weights = (
            float(groups.linear[0])
            + further
            + float(groups.tables[0])
            + self.table * (tables + (holds == TABLE_TWICE) - 1.0)
        )
        weights += self.drafting * (holds == NEXT_TOKEN)
        least, most = ((size.value + sign * size.slack - small - head) / weights for sign in (-1.0, 1.0))
        return 8.0 * least, 8.0 * most


def given_models(texts: Sequence[str]) -> dict[str, Model]:
    """Models by the log's names from `NAME=MODEL`, or `MODEL` for logs without names: a published model or a config.json.

    Raises:
        UsageError: no such model, or a name twice.
    """
    found: dict[str, Model] = {}
    for text in texts:
        name, sign, model = text.rpartition("=")
        called = key(name) if sign else ANY
        if not model or (sign and not called):
            raise UsageError(f"--model: expected NAME=MODEL, got {text!r}; MODEL is a published model or a config.json")
        if called in found:
            raise UsageError(
                f"--model: expected each name once, got {name or 'a model without a name'!r} twice; remove one"
            )
        found[called] = _model(model, name.strip())
    return found


def _model(text: str, name: str) -> Model:
    """A published model, or the config.json of one that is called as the log calls it."""
    try:
        known_model = model_named(text)
    except UsageError as error:
        raise UsageError(f"--model: {error}; or give a config.json") from None
    return Model(
        known_model.label if config_path(text) is None else name or known_model.label, known_model.architecture
    )


@cache
def published() -> tuple[Model, ...]:
    """All published models that ship."""
    found = map(baseline, model_ids())
    return tuple(Model(each.label, each.architecture) for each in found)


def key(name: str) -> str:
    """A model's name in a log as --model may spell it."""
    return name.strip().casefold().removesuffix(".gguf")


def identified(figure: Figure, given: Mapping[str, Model], shipped: Sequence[Model]) -> tuple[Model, str]:
    """The model of a figure and how it was found.

    Raises:
        Unusable: none, several, or one that its numbers contradict.
    """
    own = [given[key(name)] for name in figure.names or (ANY,) if key(name) in given]
    if own:
        _refuse_other_name(own[0], figure, shipped)
        return own[0], f"as given{_agreeing(own[0], figure)}"
    if not figure.names and figure.parameters is None:
        raise Unusable("the log names no model: give it with --model MODEL")
    alike, *others = [
        [model for model in shipped if normalised(model.label) in ids]
        for ids in map(models_named, _names(figure))
        if ids
    ] or [[]]
    for one, other in product(alike[:1], (model for each in others for model in each)):
        if not 1 / NAME_SLACK < one.parameters / other.parameters < NAME_SLACK:
            raise Unusable(f"{figure.names[0]}: {one.label} by one name, {other.label} by the heading or another name")
    if len(alike) > 1:
        raise Unusable(f"{shown(figure)}: {' or '.join(model.label for model in alike)} by its name; {_hint(figure)}")
    if alike:
        return alike[0], f"by its name{_agreeing(alike[0], figure)}"
    return _by_numbers(figure, shipped)


def of_library(figure: Figure) -> str:
    """The weight format that Ollama's library has under a tag that states none, "" where that is not known."""
    name = figure.names[0].lower() if figure.names and str(figure.cells.get("engine")).startswith("Ollama") else ""
    stated = LIBRARY_OTHERS.get(name) or LIBRARY_OTHERS.get(name.partition(":")[0])
    plain = LIBRARY.fullmatch(name) and not SMALLEST.search(name)
    return stated or (LIBRARY_FORMAT if plain else "")


def _names(figure: Figure) -> list[str]:
    """Names without llama.cpp's of a family and a size (`qwen2 7B`), of which the numbers beside them say more."""
    kind = f"{figure.family} " if figure.family and figure.parameters else ""
    return [name.removesuffix(":latest") for name in figure.names if not (kind and name.startswith(kind))]


def _refuse_other_name(given: Model, figure: Figure, shipped: Sequence[Model]) -> None:
    """Stop where the log's name is of a model of another size than the one that is given for it.

    Raises:
        Unusable: with both names.
    """
    for name in _names(figure):
        ids = models_named(name)
        sizes = {m.label: m.parameters for m in shipped if normalised(m.label) in ids}
        slack = NAME_SLACK if sizes else ROUNDED_NAME
        sizes = sizes or {f"{size} billion parameters": float(size) * 1e9 for size in NAMED_SIZE.findall(name)}
        if sizes and not any(1 / slack < given.parameters / size < slack for size in sizes.values()):
            raise Unusable(
                f"{name}: {' or '.join(sizes)} by its name, where --model gives {given.label} of {given.parameters / 1e9:.4g} "
                "billion parameters; name the one that was measured"
            )


def _agreeing(model: Model, figure: Figure) -> str:
    """How a model's numbers agree with the log's.

    Raises:
        Unusable: they do not.
    """
    name = shown(figure)
    if figure.family and not fits_llama_cpp_name(figure.family, model.architecture):
        raise Unusable(f"{name}: family {figure.family}, which {model.label} is not of")
    if figure.parameters is None:
        return ""
    remark = model.holds(figure.parameters)
    if remark is None:
        stated, own = figure.parameters.value, model.parameters
        raise Unusable(
            f"{name}: {stated / 1e9:.4g} billion parameters, where {model.label} has {own / 1e9:.4g}; name its own config.json with --model"
        )
    return f", {figure.parameters.value / 1e9:.4g} billion parameters agree{remark}"


def _by_numbers(figure: Figure, shipped: Sequence[Model]) -> tuple[Model, str]:
    """The only published architecture of so many parameters and of that family, or the only one of those that are ranked.

    Raises:
        Unusable: there is none, or several.
    """
    name, hint = shown(figure), _hint(figure)
    called = f"_{re.sub(r'[^a-z0-9]+', '_', f'{figure.family} {name}'.lower())}_"
    outside = {} if known(figure.family) else model_types().outside
    if why := next((why for kind, why in outside.items() if re.search(rf"_{kind}\d*_", called)), ""):
        raise Unusable(f"{name}: a model with {why}, which no columns hold")
    exact = figure.parameters is not None and figure.parameters.slack < 1e-4 * figure.parameters.value
    if figure.parameters is None or not (known(figure.family) or (exact and not figure.family)):
        raise Unusable(f"{name}: no published model is known here by this name; {hint}")
    stated = figure.parameters
    fitting = [
        m
        for m in shipped
        if m.holds(stated) is not None and (not figure.family or fits_llama_cpp_name(figure.family, m.architecture))
    ]
    apart = {str({name: column[0] for name, column in m.architecture.columns().items()}): m for m in reversed(fitting)}
    if not apart:
        raise Unusable(f"{name}: no published model has its {stated.value / 1e9:.4g} billion parameters; {hint}")
    labels = sorted(m.label for m in apart.values())
    ranked = [m for m in apart.values() if normalised(m.label) in documents(MODELS)]
    if len(apart) > 1 and len(ranked) != 1:
        raise Unusable(f"{name}: {' or '.join(labels)} by its parameters; {hint}")
    model = (ranked or [*apart.values()])[0]
    labels.remove(model.label)
    how = f"family {figure.family} and " * bool(figure.family)
    others = f", as {' and '.join(labels)} too" if labels else ""
    return model, f"by {how}{stated.value / 1e9:.4g} billion parameters{others}{model.holds(stated)}"


def _hint(figure: Figure) -> str:
    """What to do about a model that is not certain."""
    return f"name it with --model '{shown(figure)}=config.json'"


def shown(figure: Figure) -> str:
    """The name of a figure's model in messages: the shortest of its names that --model takes."""
    return figure.names[-1] if figure.names else "a model without a name"


def file_bits(model: Model, figure: Figure) -> float | None:
    """Bits per linear weight of the file, where its size says others than its format has; that all layers ran in one place.

    Raises:
        Unusable: a size that no file of the model in that format has, or layers on the CPU and on the GPU.
    """
    if figure.gpu_layers is not None and figure.gpu_layers <= int(model.architecture.depth[0]):
        raise Unusable("some layers on the GPU, the others on the CPU (-ngl)")
    if figure.gpu_bytes is not None:
        _refuse_larger(model, str(figure.cells["precision"]), figure.gpu_bytes)
    if figure.size is None:
        return None
    name, held = str(figure.cells["precision"]), model.holds(figure.parameters) if figure.parameters else ""
    written = format_of(name)
    usual = model.bits_of(written)
    least, most = model.bits_in(figure.size, written, held or "")
    if most < usual / MOST_OFF or least > usual * MOST_OFF:
        raise Unusable(
            f"{shown(figure)}: {figure.size.value / 1e6:,.0f} MB are {(least + most) / 2:.2f} bits a weight, where {name} has "
            f"{usual:.2f}: another format or model than it says"
        )
    alike = usual * (1.0 - SIZE_SLACK) <= most and least <= usual * (1.0 + SIZE_SLACK)
    return None if alike else (least + most) / 2


def _refuse_larger(model: Model, written: str, memory: float) -> None:
    """Weights that a GPU's memory cannot hold, so that some layers ran elsewhere.

    Raises:
        Unusable: they are larger.
    """
    weights = model.parameters * model.bits_of(format_of(written)) / 8
    if weights > memory:
        raise Unusable(
            f"{model.label}: {weights / 1e9:.1f} GB of weights, where the GPU has {memory / 1e9:.1f}: some layers ran on the CPU"
        )


def fits_llama_cpp_name(name: str, architecture: Architectures) -> bool:
    """Whether llama.cpp would call an architecture so; True for a name that is not known here."""
    own = _called(name)
    return not own or any(family.fits(architecture) for family in own)


def known(name: str) -> bool:
    """Whether llama.cpp's name of a family is one of ours."""
    return bool(_called(name))


def _called(name: str) -> list[Family]:
    """Families and their variants that llama.cpp calls so."""
    families = (*model_types().families.values(), *model_types().variants)
    return [family for family in families if name in family.llama_cpp]


LONGEST, MOST_REPEATS = 2_000, 4
#: Characters of a pattern that can be matched in a time that does not run away, and what may not be repeated.
PLAIN_PATTERN, REPEATED = re.compile(r"[\w\\.|()\[\]*+?^$-]{1,300}"), re.compile(r"[)\]*+?][*+?]")
EXPERTS = ("ffn_up_exps", "ffn_gate_exps", "ffn_down_exps")
OTHERS = (
    *("attn_norm", "attn_q", "attn_k", "attn_v", "attn_output", "attn_q_norm", "attn_k_norm", "ffn_norm"),
    *("ffn_gate_inp", "ffn_up_shexp", "ffn_gate_shexp", "ffn_down_shexp", "ffn_up", "ffn_gate", "ffn_down"),
)
NOT_PLAIN = "-ot {pattern}: not the experts of whole layers in host memory, which alone have a formula"


def slow_share(model: Model, figure: Figure) -> float:
    """The share of a model's layers with experts whose experts lay in host memory; 0 of a model without.

    Raises:
        Unusable: other tensors were put elsewhere.
    """
    depth, dense = int(model.architecture.depth[0]), int(model.architecture.n_dense[0])
    sparse = bool(model.architecture.n_experts[0] > 1)
    if not sparse:
        refuse((figure.placed, NOT_PLAIN.format(pattern=figure.placed)))
        return 0.0
    slow = set(range(min(figure.experts_on_cpu, depth))) | (_placed(figure.placed, depth) if figure.placed else set())
    return len(slow - set(range(dense))) / (depth - dense)


def _placed(text: str, depth: int) -> set[int]:
    """The layers whose experts patterns name, where they name nothing else."""
    fault = NOT_PLAIN.format(pattern=text[:80])
    refuse((len(text) > LONGEST, fault))
    found: set[int] = set()
    for override in re.split(r"[;,]", text):
        pattern, _, buffer = override.strip().rpartition("=")
        refuse((not pattern or buffer.upper() != "CPU", fault))
        found |= _layers(pattern, depth, fault)
    return found


def _layers(pattern: str, depth: int, fault: str) -> set[int]:
    """The layers of which one pattern names all experts."""
    repeats = len(re.findall(r"[*+?]", pattern))
    refuse((not PLAIN_PATTERN.fullmatch(pattern) or REPEATED.search(pattern) or repeats > MOST_REPEATS, fault))
    try:
        match = re.compile(pattern, re.ASCII)
    except re.error:
        raise Unusable(fault) from None
    named = [{name for name in EXPERTS if match.search(f"blk.{layer}.{name}.weight")} for layer in range(depth)]
    refuse((any(0 < len(names) < len(EXPERTS) for names in named), fault))
    refuse((any(match.search(name) for name in _others(depth)), fault))
    found = {layer for layer, names in enumerate(named) if names}
    refuse((not found, fault))
    return found


def _others(depth: int) -> Iterator[str]:
    """Tensors that are no routed experts."""
    yield from ("token_embd.weight", "output.weight", "output_norm.weight")
    yield from (f"blk.{layer}.{name}.weight" for layer in range(depth) for name in OTHERS)
