"""The laws of a study, and for how many training tokens."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from nas.errors import UsageError
from nas.files import yaml_source
from nas.files.faults import Faults, Path
from nas.files.yaml_source import read
from nas.study import entry_points
from nas.study.catalogue import load_law
from nas.study.configuration import IN_TEXT, IN_TOKENS, StudyConfig
from nas.study.layers import of_ones_own
from objectives.engines import RUNS
from objectives.layer_costs.costs import public_costs
from objectives.loss_law.law import Law, origin_of
from objectives.loss_law.layer_deltas import SHARES, MeasuredDeltas
from objectives.loss_law.precision_cost import CAVEATS, FULL, GROUP, priced, taken_as_another, unpriced_formats
from objectives.plugins import documents, folder
from objectives.text.vocabulary_cost import VocabularyCost
from objectives.token_curve import Text, TokenCurve
from search_spaces.space import SearchSpace
from search_spaces.specification import SpaceSpecification

COST = folder("objectives.text") / "vocabulary_cost.yaml"
TOKENIZER_SIZE = 50_257  # of laws that do not say theirs; it moves the loss of all designs alike
MOST_HALVINGS = 30.0  # of any context by a window
OF_WINDOWS = {"local", "window"}  # two ways to say what the same layers cost
UNIQUE = "unique_tokens"  # the coefficient of a law that knows of repeated text


def study_laws(
    config: StudyConfig, law: Law, rivals: Sequence[Law], deltas: MeasuredDeltas, space: SearchSpace
) -> tuple[Law, ...]:
    """The study's law and the others, each once: the residual sd is its own, the tokens and the deltas are those of all.

    Without tokens of the study, laws that depend on them predict for the study's law's. Of the space's axes tokens must be
    seen, and vocabularies have a cost, by which designs with different ones can be compared.

    Raises:
        UsageError: tokens, and no law that depends on them, or an axis of them, and one that does not; two laws of one name;
            a format that a precision law has no cost of.
    """
    axes = space.specification.axes
    public = axes.layers is not None and config.deltas != "none"
    beside = (_with_precision_law(config, each) for each in (law, *rivals))
    law, *rivals = (_with_deltas(deltas, each, public=public) for each in beside)
    if axes.vocabulary:
        law, *rivals = (
            each.model_copy(update={"vocabulary_cost": each.vocabulary_cost or cost_beside(each)})
            for each in (law, *rivals)
        )
    if axes.tokens:
        _refuse_blind((law, *rivals))
    seen = [each for each in (law, *rivals) if each.sees_tokens or each.precision_law == "qat"]
    if isinstance(config.tokens, float) and not seen:
        raise UsageError(
            f"tokens: expected a law that depends on them, got {law.name}, which is of {law.tokens or 0:g} tokens; "
            "drop it, or take another law (plas list laws)"
        )
    if config.unique_tokens is not None and not any(UNIQUE in each.coefficients for each in (law, *rivals)):
        raise UsageError(
            f"unique_tokens: expected a law of repeated text, got {law.name}, to which every token is fresh; "
            "drop it, or take --law data_limited"
        )
    distinct: dict[str, Law] = {}
    for each in (law, *rivals, *_under_others(config, (law, *rivals))):
        if distinct.setdefault(each.name, each).mapping() != each.mapping():
            raise UsageError(
                f"laws: expected laws of different names, got two called {each.name}; rename one in its file"
            )
    tokens = config.tokens if isinstance(config.tokens, float) else law.tokens
    unique = config.unique_tokens
    own, *others = (
        each
        if unique is None or UNIQUE not in each.coefficients
        else each.model_copy(update={"coefficients": {**each.coefficients, UNIQUE: unique}})
        for each in (predicting(law, tokens) for law in distinct.values())
    )
    own = own if config.residual_sd is None else own.model_copy(update={"residual_sd": config.residual_sd})
    own = (
        own if config.engine or config.outside == "allow" else _run_by_engines(own, [*space.formats, config.precision])
    )
    return _of_known_costs((own, *others), [*space.formats, config.precision])


ENGINE_KINDS = {
    name: "window" if kind == "local" else kind for name, kind in SHARES.items()
}  # what engines call layers
SEVERAL = (2.0, 1e6)  # active experts


def _run_by_engines(law: Law, formats: Sequence[str]) -> Law:
    """The law, to whose picks layers and top-1 routing that no engine is known to run in one of the formats are unusual."""
    able = [engine for engine in RUNS.values() if any(map(engine.runs_format, formats))]
    covers = dict(law.covers)
    for kind, region in covers.items() if able else ():
        sparse = kind == "sparse"
        lacking = {
            name: (0.0, 0.0)
            for name, layer in ENGINE_KINDS.items()
            if not any(engine.runs_kind(layer, sparse=sparse, square=True) for engine in able)
        }
        if sparse and not any(engine.top_1_routing for engine in able):
            lacking["top_k"] = SEVERAL
        covers[kind] = region.model_copy(update={"usual": region.usual | lacking})
    return law.model_copy(update={"covers": covers})


def without_engines(law: Law) -> Law:
    """The law whose picks may have layers that no engine is known to run."""
    regions = law.covers.items()
    usual = {kind: {n: ends for n, ends in region.usual.items() if n not in ENGINE_KINDS} for kind, region in regions}
    covers = {kind: region.model_copy(update={"usual": usual[kind]}) for kind, region in regions}
    return law.model_copy(update={"covers": covers})


def cost_beside(law: Law) -> VocabularyCost:
    """What vocabularies cost by published runs, beside the law's own tokenizer."""
    return cost_of_vocabularies(law.tokenizer_size or TOKENIZER_SIZE)


@cache
def cost_of_vocabularies(size: int) -> VocabularyCost:
    """What vocabularies cost by published runs, beside one of `size` tokens."""
    content, _ = yaml_source.read(COST)
    return VocabularyCost.model_validate({**content, "relative_to": size})


def _of_known_costs(laws: tuple[Law, ...], formats: Sequence[str]) -> tuple[Law, ...]:
    """The laws; a format of unknown cost would look better than it is.

    Raises:
        UsageError: there is one, with its name.
    """
    named = list(dict.fromkeys(name for name in formats if name))
    for law in laws:
        if law.precision_law is None:
            continue
        lacking = unpriced_formats(law.precision_law, named, law.group_size or GROUP)
        if lacking:
            known = ", ".join([*FULL, *priced(law.precision_law)])
            key = "precision" if len(named) == 1 else "precisions"
            raise UsageError(
                f"{key}: expected formats that precision law {law.precision_law} prices ({known}), got {' and '.join(lacking)}; "
                f"drop {'it' if len(lacking) == 1 else 'them'}{_priced_by(named, law)}"
            )
    return laws


def _priced_by(formats: Sequence[str], law: Law) -> str:
    """Another precision law that prices some formats, as advice."""
    other = next(
        (name for name in reversed(CAVEATS) if not unpriced_formats(name, formats, law.group_size or GROUP)), None
    )
    return "" if other is None else f" or give --set precision_law={other}"


def _refuse_blind(laws: Sequence[Law]) -> None:
    """Tokens that some law does not see are no axis: more of them would cost and never help.

    Raises:
        UsageError: one does not see them.
    """
    for law in laws:
        if not law.sees_tokens:
            fitted = f"fitted at {law.tokens:g}" if law.tokens else "fitted at others"
            raise UsageError(
                f"tokens: expected laws that see them beside an axis of tokens, got {law.name}, {fitted}, to which more "
                "cost and never help; give one number, or take laws with tokens (plas list laws: chinchilla_epoch, joint_moe, …)"
            )


def predicting(law: Law, tokens: float | None) -> Law:
    """The law for so many tokens, if it depends on them; what its formats cost follows those of the study."""
    if tokens is None:
        return law
    if law.sees_tokens:
        return law.model_copy(update={"tokens": tokens})
    return law.model_copy(update={"precision_tokens": tokens}) if law.precision_law else law


def _with_precision_law(config: StudyConfig, law: Law) -> Law:
    """The law beside what few bits cost: its file's precision law, else the first that the study names."""
    named = law.precision_law or (config.precision_law[0] if config.precision_law else None)
    if named is None:
        return law
    group = law.group_size or config.int4_group_size
    return in_format(law.model_copy(update={"precision_law": named, "group_size": group}), config.precision)


def in_format(law: Law, precision: str) -> Law:
    """The law for designs of a format, if it depends on that."""
    return law if law.precision_law is None else law.model_copy(update={"precision": precision})


def _with_deltas(told: MeasuredDeltas, law: Law, *, public: bool) -> Law:
    """The law beside what kinds of layers cost: as the study says, for other kinds as its own file does; where neither says anything as public pairs do."""
    law = law if told.context is None else law.model_copy(update={"layer_context": told.context})
    if not (given := told.by_kind):
        return law.model_copy(update=public_costs().priced(law)) if public and not law.layer_deltas else law
    theirs = given.keys() | (OF_WINDOWS if given.keys() & OF_WINDOWS else set())
    others = {kind: delta for kind, delta in law.layer_deltas.items() if kind not in theirs}
    kept = law.layer_deltas_source if others else ""
    drawn = {kind: row for kind, row in law.layer_delta_draws.items() if kind in others}
    deltas = {
        "layer_deltas": others | given,
        "layer_deltas_source": "; ".join(text for text in (kept, told.source) if text),
        "layer_delta_draws": drawn,
        "covers": law.covering({kind: MOST_HALVINGS if kind == "window" else 1.0 for kind in given}),
    }
    return law.model_copy(update=deltas)


def _under_others(config: StudyConfig, laws: Sequence[Law]) -> list[Law]:
    """Every law beside each further precision law that the study names, as alternatives: `joint_moe+kumar`."""
    first, further = config.precision_law[:1], config.precision_law[1:]
    return [
        law.model_copy(update={"name": f"{law.name}+{other}", "precision_law": other})
        for other in further
        for law in laws
        if law.precision_law in first
    ]


def notices_of_formats(law: Law, formats: Sequence[str]) -> list[str]:
    """Doubts about the loss of designs in these formats."""
    few = [name for name in formats if name not in FULL]
    if law.precision_law is None:
        look = "look" if len(few) > 1 else "looks"
        free = f"the loss does not see precision: {' and '.join(few)} {look} free; name a --set precision_law=LAW"
        return [free] if few and len(formats) > 1 else []
    if not few:
        return []
    lines = [f"precision law {law.precision_law}: {CAVEATS[law.precision_law]}"]
    wider = taken_as_another(law.precision_law, few)
    return lines + [f"precision law {law.precision_law} has no constants for {each}" for each in wider]


def notices_of_alternatives(rivals: Sequence[Law], formats: Sequence[str], said: Sequence[str]) -> list[str]:
    """Doubts about the same under alternatives, beyond what is said already, each once."""
    lines = [text for law in rivals if law.precision_law for text in notices_of_formats(law, formats)]
    return [text for text in dict.fromkeys(lines) if text not in said]


def notices_of_text(law: Law) -> list[str]:
    """That the level of metrics of text rests on a tokenizer that the law does not state; nothing of one that does."""
    if law.tokenizer_size is not None:
        return []
    return [
        f"law {law.name} does not state its tokenizer: its loss is taken as per token of {TOKENIZER_SIZE:,}, which moves all "
        "designs alike"
    ]


def of_own_vocabulary(
    config: StudyConfig, law: Law | None, origins: Mapping[Path, str], space: SpaceSpecification | None
) -> tuple[StudyConfig, list[str]]:
    """The study with the vocabulary of its own law's tokens where a preset alone says another, and what must be said where the study says another."""
    size, given = None if law is None else law.tokenizer_size, config.vocabulary
    if (
        law is None
        or size is None
        or space is None
        or space.axes.vocabulary
        or not (isinstance(config.law, str) and of_ones_own(config.law))
    ):
        return config, []
    if not isinstance(given, int) or given in (0, size):
        return config, []
    if ("vocabulary",) in origins:
        return config, [
            f"law {law.name}: its loss is per token of a vocabulary of {size:,}, designs are priced with {given:,}"
        ]
    notice = f"designs are priced with the vocabulary of law {law.name}, {size:,}; --vocabulary N takes another"
    return config.model_copy(update={"vocabulary": size}), [notice]


def notices_of_kinds(law: Law, space: SearchSpace) -> list[str]:
    """A warning where a law's rows hold no designs with experts, or no dense ones, and the space does: these are not recommended."""
    kinds = {"sparse": ("designs with experts", space.experts > 1), "dense": ("dense designs", space.experts == 1)}
    lacking = [words for kind, (words, here) in kinds.items() if law.covers and kind not in law.covers and here.any()]
    return [
        f"law {law.name} was fitted on no {words}, so none is recommended, however low its loss; --set outside=allow takes them"
        for words in lacking
    ]


def notices_of_tokens(config: StudyConfig, laws: Sequence[Law], axis: Sequence[float]) -> list[str]:
    """Warnings about laws at the study's tokens: beyond their range, and tokens read more than once."""
    tokens = axis or ([config.tokens] if isinstance(config.tokens, float) else [])
    lines: list[str] = []
    if not tokens and config.unique_tokens is None:
        return lines
    for law in (law for law in laws if law.sees_tokens):
        least, most = law.fitted_on.get("tokens", (0.0, 0.0))
        outside = [f"{each:g}" for each in tokens if not least <= each <= most]
        if not most:
            lines.append(f"law {law.name} does not say which tokens it was fitted on")
        elif outside:
            lines.append(
                f"law {law.name} was fitted on {least:g} to {most:g} tokens; at {', '.join(outside)} it extrapolates (*)"
            )
        if UNIQUE in law.coefficients:
            unique, tokens = law.coefficients[UNIQUE], tokens or [law.stated_tokens]
            epochs = ", ".join(f"{each / unique:.3g} at {each:g}" for each in tokens if each > unique)
            repeated = f"epochs: {epochs} tokens" if epochs else "nothing is read twice"
            lines.append(f"law {law.name}: {unique:g} tokens of text are distinct; {repeated}")
    return lines


def refuse_both(raw: Mapping[str, Any], faults: Faults) -> None:
    """Refuse a length in tokens and in text at once."""
    for tokens, text in IN_TEXT.items():
        if _given(raw, tokens) and _given(raw, text):
            faults.add((text,), f"expected {tokens} or {text}, got both; drop one")


def _given(raw: Mapping[str, Any], key: str) -> bool:
    return raw.get(key) not in (None, "none")


def with_request(text: Text, config: StudyConfig) -> Text:
    """The text with the study's request, where that is given in bytes."""
    return replace(text, prompt=config.input_text or 0.0, answer=config.output_text or 0.0)


def in_tokens(config: StudyConfig, text: Text) -> StudyConfig:
    """The study with the tokens that its text makes: of the vocabulary of every design, without one those of the law's tokenizer.

    Raises:
        UsageError: a vocabulary that the curve does not count.
    """
    here = text.at(config.head[0])
    try:
        found = {
            tokens: here.tokens_of(size)
            for tokens, key in IN_TEXT.items()
            if (size := getattr(config, key)) is not None
        }
    except ValueError as error:
        raise UsageError(str(error)) from None
    return config.model_copy(update=found) if found else config


def recorded_lengths(resolved: Mapping[str, Any]) -> dict[str, int]:
    """Tokens read and written, `input_tokens` and `output_tokens`, of a recorded study, as `in_tokens` has them."""
    if not any(_given(resolved, text) for text in IN_TOKENS):
        return {tokens: int(resolved[tokens]) for tokens in IN_TEXT}
    kept = {key: resolved[key] for key in (*IN_TEXT, *IN_TOKENS, "vocabulary")}
    curve, law = TokenCurve.model_validate(resolved["token_curve"]), Law.model_validate(resolved["law"])
    config = in_tokens(StudyConfig.model_validate(kept), Text(curve, cost_beside(law)))
    return {tokens: getattr(config, tokens) for tokens in IN_TEXT}


RIGHT = "% of pairs of other people's models in the right order"
OVERALL = "equal tokens"  # the question of all designs
LEFT_OUT = "evidence"  # judged on each laboratory by the law of the others


@dataclass(frozen=True)
class Record:
    """A law or a rule on one question: the mean share of pairs in the right order over `tables`, of `mute` of which it says nothing.

    priced: the mean share of the pairs that it prices; the others count half.
    """

    order: float
    tables: int
    mute: int
    priced: float

    @property
    def in_short(self) -> str:
        """`97.3`; `-` where it says nothing of any table."""
        return "-" if self.mute == self.tables else f"{100 * self.order:.1f}"

    @property
    def in_full(self) -> str:
        """`61.0 (44)`: with the share of the pairs that it prices, %, where that is not all."""
        all_priced = self.mute == self.tables or self.priced > 0.995
        return self.in_short if all_priced else f"{self.in_short} ({100 * self.priced:.0f})"


@cache
def records() -> Mapping[str, Mapping[str, Record]]:
    """By question, then by law or rule."""
    content, _ = read(folder("objectives") / "records.yaml")
    return {question: {name: Record(**own) for name, own in by.items()} for question, by in content.items()}


def rules() -> list[str]:
    """The rules that need no law, in the order of the file."""
    names = dict.fromkeys(name for by in records().values() for name in by)
    return [name for name in names if name not in documents(entry_points.SHIPPED["laws"])]


def strongest(by: Mapping[str, Record]) -> str | None:
    """The name of the best order, of the first where several have it; None where all say nothing."""
    heard = {name: each.order for name, each in by.items() if each.mute < each.tables}
    return max(heard, key=lambda name: heard[name]) if heard else None


def strongest_rules() -> dict[str, str]:
    """By question the rule with the best record, where one says anything."""
    found = {question: strongest({rule: by[rule] for rule in rules()}) for question, by in records().items()}
    return {question: rule for question, rule in found.items() if rule is not None}


def records_of(name: str) -> dict[str, Record]:
    """The record of a shipped law or of a rule by question; questions of which it says nothing are left out."""
    own = {question: by[name] for question, by in records().items() if name in by}
    return {question: record for question, record in own.items() if record.mute < record.tables}


def record_line(law: Law) -> str:
    """A law's record, beginning with RIGHT; "" where it is no shipped one with its own constants."""
    if law.name not in documents(entry_points.SHIPPED["laws"]) or law.coefficients != load_law(law.name).coefficients:
        return ""
    figures = ", ".join(f"{question} {record.in_short}" for question, record in records_of(law.name).items())
    return f"{RIGHT}: {figures}" if figures else ""


def left_out_line(law: Law) -> str:
    """How a shipped pooled law orders models of laboratories that it had not seen, beside the best other law or rule; "" of any other law."""
    found = origin_of(law)
    if found is None or not found.pooled or not record_line(law):
        return ""
    by = records()[OVERALL]
    own, best = by[law.name], max(by.keys() - {law.name}, key=lambda name: by[name].order)
    said = "best record" if own.order > by[best].order else "not the best record"
    return f"{said} on laboratories left out: {own.in_short} % of pairs of {OVERALL} in order ({best}: {by[best].in_short} %); limits: docs/evidence.md"


def records_line(laws: Sequence[Law]) -> list[str]:
    """The records of several laws, and of the strongest rule that needs none, in one sentence; nothing where none is a shipped one."""
    known = [law.name for law in laws if record_line(law)]
    best = strongest_rules()
    figures = ", ".join(by[best[question]].in_short if question in best else "-" for question, by in records().items())
    shown = [*(f"{name} {_figures(name)}" for name in known), f"the strongest rule without a law {figures}"]
    return [f"Record, {RIGHT} ({', '.join(records())}): {'; '.join(shown)}."] if known else []


def _figures(name: str) -> str:
    own = records_of(name)
    return ", ".join(own[question].in_short if question in own else "-" for question in records())
