"""The keys of how a model is served: tokens drafted ahead, experts in slow memory, a chip of its own for prompts."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from nas.study.value_parsers import none_word, open_share, split_names, split_pairs
from objectives.device import Calibration
from objectives.quantities import BytesPerSecond
from objectives.serving import Acceptance, Drafter
from search_spaces.columns import EXPERTS_IN, MOST_DRAFTED, SPECULATION

AUTO = ("fast", *(f"slow:{percent}%" for percent in range(10, 101, 10)))
FIGURES = ("position_cost", "position_overlap", "mtp_nats")
KINDS: tuple[Drafter, ...] = ("mtp", "draft")


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


def written_acceptance(value: Any) -> dict[str, Any]:
    """`0.8`, which is of both kinds, `mtp=0.8,draft=0.6`, or a mapping of kind to a number or to shares by drafted tokens.

    Raises:
        ValueError: another form, or a share beyond 0 to 1.
    """
    if value in (None, "none"):
        return {}
    if isinstance(value, str) and "=" in value:
        parts = [part for part in value.split(",") if part.strip()]
        value = split_pairs(parts, form="mtp=SHARE or draft=SHARE", example="mtp=0.8,draft=0.6")
    given = value if isinstance(value, Mapping) else dict.fromkeys(KINDS, value)
    if wrong := [kind for kind in given if kind not in KINDS]:
        raise ValueError(f"expected {' or '.join(KINDS)}, got {wrong[0]!r}; name one of them")
    return {kind: _shares(each) for kind, each in given.items()}


def _shares(given: Any) -> float | dict[int, float]:
    if not isinstance(given, Mapping):
        return open_share(given)
    if not given or not all(str(n).isdecimal() and 1 <= int(n) <= MOST_DRAFTED for n in given):
        raise ValueError(
            f"expected shares by drafted tokens, 1 to {MOST_DRAFTED}, got {dict(given)}; write {{1: 0.85, 2: 0.75}}"
        )
    return {int(n): open_share(each) for n, each in given.items()}


def written_phases(value: Any) -> Any:
    """`prefill=rk3588_npu,link=10GB/s` as a mapping.

    Raises:
        ValueError: another form.
    """
    if not isinstance(value, str):
        return value
    return split_pairs(value.split(","), form="prefill=DEVICE or link=RATE", example="prefill=rk3588_npu,link=10GB/s")


class HotExpertsConfig(BaseModel):
    """Experts of slow layers that fast memory keeps a copy of."""

    model_config = ConfigDict(extra="forbid")
    share: Annotated[float, Field(ge=0, lt=1, description="Share of a layer's experts that fast memory keeps")] = 0.0
    hits: Annotated[
        float,
        Field(ge=0, le=1, description="Share of reads that they serve, as you measured it; it is not the share kept"),
    ] = 0.0

    @model_validator(mode="after")
    def _both(self) -> "HotExpertsConfig":
        if (self.share > 0) != (self.hits > 0):
            given, other = ("share", "hits") if self.share else ("hits", "share")
            raise ValueError(f"expected share and hits, got {given} alone; add {other}, which must be measured")
        return self


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
    calibration: Annotated[
        Literal["datasheet", "shipped", "typical"] | Calibration | None,
        BeforeValidator(none_word),
        Field(
            description="Its share of the datasheet; left out: as the study's, or typical where that is of the study's device"
        ),
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
        dict[Drafter, Any],
        BeforeValidator(written_acceptance, json_schema_input_type=float | str | dict[Drafter, Any]),
        Field(
            description="mtp, draft: probability that a drafted token is accepted after those before it, or share accepted by N; left out: as public rows have it"
        ),
    ] = {}
    position_cost: Annotated[
        float | None,
        Field(ge=0, le=2),
        BeforeValidator(none_word),
        Field(
            description="Share of a plain step that a further position takes beside its operators; left out: as public rows have it"
        ),
    ] = None
    position_overlap: Annotated[
        float | None,
        Field(ge=0, le=1),
        BeforeValidator(none_word),
        Field(
            description="Share of further positions that choose experts which the first one chose; left out: as public rows have it"
        ),
    ] = None
    mtp_nats: Annotated[
        float | None,
        Field(ge=-1, le=1),
        BeforeValidator(none_word),
        Field(
            description="What training with a head that drafts adds to the loss, nats; left out: as a published pair has it"
        ),
    ] = None
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
        BeforeValidator(written_phases, json_schema_input_type=str | PhasesConfig),
        Field(description="prefill=DEVICE, the chip that reads prompts; link=RATE"),
    ] = PhasesConfig()

    def figures(self) -> dict[str, float]:
        """The figures that are stated, by the names that `Serving` has for them."""
        given = {name: getattr(self, name) for name in FIGURES}
        return {name: figure for name, figure in given.items() if figure is not None}

    def acceptances(self) -> dict[Drafter, Acceptance]:
        """The stated acceptance of each kind."""
        return {
            kind: Acceptance(shares=dict(each)) if isinstance(each, dict) else Acceptance(each)
            for kind, each in self.acceptance.items()
        }
