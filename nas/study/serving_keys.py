"""The keys of how a model is served: tokens drafted ahead, experts in slow memory, a chip of its own for prompts."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from nas.study.value_parsers import none_word, split_names, split_pairs
from objectives.quantities import BytesPerSecond
from objectives.serving import Acceptance, Drafter, HotExperts
from search_spaces.serving_words import EXPERTS_IN, MOST_DRAFTED, SPECULATION

AUTO = ("fast", *(f"slow:{percent}%" for percent in range(10, 101, 10)))
Share = Annotated[float, Field(gt=0, lt=1)]


def written_speculation(value: Any) -> list[str]:
    """Words of what is drafted, `mtp:2`, `draft:4`, `none`; several by comma.

    Raises:
        ValueError: another word.
    """
    words = _words(value)
    for word in words:
        if word not in SPECULATION:
            raise ValueError(
                f"expected none, mtp:N or draft:N with N from 1 to {MOST_DRAFTED}, got {word!r}; write for example mtp:2"
            )
    return words


def written_experts_in(value: Any) -> list[str]:
    """Words of where experts lie, `fast`, `slow:50%`, `slow:0.5`; several by comma; `auto` is fast and every tenth.

    Raises:
        ValueError: another word.
    """
    found: list[str] = []
    for word in _words(value):
        found += AUTO if word == "auto" else [_share_in_percent(word)]
    return list(dict.fromkeys(found))


def _share_in_percent(word: str) -> str:
    text = word.removeprefix("slow:")
    try:
        share = f"slow:{100 * float(text):g}%" if text != word and not text.endswith("%") else word
    except ValueError:
        share = word
    if share not in EXPERTS_IN:
        raise ValueError(
            f"expected fast, auto or slow:SHARE in whole per cent, got {word!r}; write for example slow:50%"
        )
    return share


def _words(value: Any) -> list[str]:
    parts = split_names(value)
    if not isinstance(parts, list) or not all(isinstance(part, str) and part for part in parts):
        raise ValueError(f"expected a word or several, got {value!r}; write for example mtp:2,none")
    if len(set(parts)) < len(parts):
        raise ValueError(f"expected each word once, got {value!r}; remove the repeat")
    return parts


def written_acceptance(value: Any) -> Any:
    """`0.8`, which is of both kinds, `mtp=0.8,draft=0.6`, or a mapping of kind to a number or to shares by drafted tokens.

    Raises:
        ValueError: another form.
    """
    if isinstance(value, str) and "=" in value:
        value = split_pairs([part for part in value.split(",") if part.strip()])
    if isinstance(value, Mapping) or value in (None, "none"):
        return {} if value in (None, "none") else value
    return dict.fromkeys(("mtp", "draft"), value)


class HotExpertsConfig(BaseModel):
    """Experts of slow layers that fast memory keeps a copy of."""

    model_config = ConfigDict(extra="forbid")
    share: Annotated[float, Field(ge=0, lt=1, description="Share of a layer's experts that fast memory keeps")] = 0.0
    popularity: Annotated[
        float,
        Field(ge=0, lt=1, description="s of a Zipf law of their use; the share c serves c^(1 - s) of reads; 0 uniform"),
    ] = 0.0
    hits: Annotated[
        float | None, Field(ge=0, le=1, description="Share of reads that they serve, as you measured it")
    ] = None

    def hot(self) -> HotExperts:
        """The same for the model of times."""
        return HotExperts(self.share, self.popularity, self.hits)


class PhasesConfig(BaseModel):
    """Which chip reads prompts where another one decodes."""

    model_config = ConfigDict(extra="forbid")
    prefill: Annotated[
        str | dict[str, Any] | None,
        BeforeValidator(none_word),
        Field(description="Device that reads prompts: id, id@mode, file or mapping; left out: the study's device"),
    ] = None
    link: Annotated[
        BytesPerSecond | None,
        BeforeValidator(none_word),
        Field(description="Rate at which it hands the KV cache over, 10 GB/s; left out: both share their memory"),
    ] = None


class ServingConfig(BaseModel):
    """How a model is served; of speculation and experts_in several words are an axis."""

    model_config = ConfigDict(extra="forbid")
    speculation: Annotated[
        list[str],
        BeforeValidator(written_speculation),
        Field(
            description="Tokens drafted ahead: none, mtp:N (a head of the model's own), draft:N (a model); several are an axis"
        ),
    ] = []
    acceptance: Annotated[
        dict[
            Literal["mtp", "draft"],
            Share | Annotated[dict[Annotated[int, Field(ge=1, le=MOST_DRAFTED)], Share], Field(min_length=1)],
        ],
        BeforeValidator(written_acceptance),
        Field(
            description="mtp, draft: probability that a drafted token is accepted after those before it, or share accepted by N; left out: as public rows have it"
        ),
    ] = {}
    draft: Annotated[
        str | dict[str, Any] | None,
        BeforeValidator(none_word),
        Field(description="Model that drafts: published name, columns or {config: config.json}"),
    ] = None
    experts_in: Annotated[
        list[str],
        BeforeValidator(written_experts_in),
        Field(description="Where experts lie: fast, slow:SHARE of the layers, auto (tenths); several are an axis"),
    ] = []
    hot_experts: Annotated[HotExpertsConfig, Field(description="Experts of slow layers that fast memory keeps")] = (
        HotExpertsConfig()
    )
    phases: Annotated[
        PhasesConfig,
        BeforeValidator(lambda value: split_pairs(value.split(",")) if isinstance(value, str) else value),
        Field(description="prefill=DEVICE, the chip that reads prompts; link=RATE"),
    ] = PhasesConfig()

    @property
    def drafters(self) -> set[str]:
        """The kinds of drafting that are asked for."""
        return {word.partition(":")[0] for word in self.speculation} - {"none"}

    def acceptances(self) -> dict[Drafter, Acceptance]:
        """The stated acceptance of each kind."""
        return {
            kind: Acceptance(shares=dict(each)) if isinstance(each, dict) else Acceptance(each)
            for kind, each in self.acceptance.items()
        }
