"""Everything a metric depends on besides the architecture."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np

from objectives.device import Calibration, Device, Energy, Kind, Peak, Phase, SlowMemory, Sustained
from objectives.device_columns import Figure
from objectives.loss_law.law import Law
from objectives.precision import PRECISIONS, Precision
from objectives.serving import Serving
from objectives.token_curve import Text
from objectives.training import Training
from objectives.transfers import Conditions
from objectives.weight_formats.table import Values
from search_spaces.architectures import Architectures
from search_spaces.arrays import BoolArray, FloatArray, IntArray, brief
from search_spaces.columns import EXPERTS_IN, SPECULATION, any_of, names_of

_DATASHEET = Calibration()  # made once: rates are asked for by every operator of every batch


class Workload(Protocol):
    """The workload of a request, with which rates become costs and costs rates."""

    @property
    def batch(self) -> int:
        """Sequences at once."""

    @property
    def output_tokens(self) -> int:
        """Tokens generated for each sequence."""

    @property
    def figures(self) -> Mapping[str, Figure]:
        """Figures of the device that are metrics by their names."""


@dataclass(frozen=True)
class Requests:
    """A workload alone, as in a recorded run, with the figures of its device."""

    batch: int
    output_tokens: int
    figures: Mapping[str, Figure] = field(default_factory=dict)


OF_A_DEVICE = (
    "device",
    "precision",
    "calibration",
    "energy",
    "sustained",
)  # of a scenario, what another device changes


def _law_of(law: Law, serving: Serving) -> Law:
    """The law of designs that are served so: those that draft themselves are trained for it."""
    nats = serving.mtp_nats if serving.drafts_itself else 0.0
    return law if law.mtp == nats else law.model_copy(update={"mtp": nats})


@brief
@dataclass(frozen=True)
class Scenario:
    """Law, device, precision and workload, the options of the latency model, and where and how models are trained.

    head_bytes: per element of embedding and LM head; None, as the precision has them.
    formats: the same for each precision that designs may have of their own, with its calibration and energy.
    devices: the same for each device that designs may have of their own, by name, with its calibration, energy and formats; this one
    is of the first of them. Everything else is read here.
    prefill_chunk: tokens of prompts that are read at once, of all sequences together; None, whole prompts.
    sustained: the share of its speed that the device keeps after minutes of load, by which every time is divided; None, of its first seconds.
    """

    law: Law
    device: Device
    precision: Precision = PRECISIONS["fp16"]
    batch: int = 1
    input_tokens: int = 1024
    output_tokens: int = 16
    latency: Literal["operator", "closed_form"] = "operator"
    attention: Literal["unfused", "fused"] = "unfused"
    causal: bool = False
    complete: bool = False
    head_bytes: float | None = None
    calibration: Calibration | None = None
    energy: Energy | None = None
    sustained: Sustained | None = None
    from_cache: bool = False
    engine: str = ""
    prefill_chunk: int | None = None
    training: Training = field(default_factory=Training)
    text: Text | None = None
    serving: Serving = field(default_factory=Serving)
    formats: tuple["Scenario", ...] = ()
    devices: tuple[tuple[str, "Scenario"], ...] = ()

    @property
    def figures(self) -> Mapping[str, Figure]:
        """Figures of the device that are metrics by their names."""
        return self.device.columns

    @property
    def engine_memory(self) -> tuple[float, float]:
        """What the engine was measured to hold: GB of its own, and times what is resident of the model; (0, 1) where nothing was."""
        c = self.calibration or _DATASHEET
        return c.engine_gb or 0.0, c.memory_factor or 1.0

    @property
    def tokens_at_once(self) -> float:
        """Tokens whose activations are held together: those of all prompts, or of one chunk."""
        tokens = float(self.batch) * float(self.input_tokens)
        return tokens if self.prefill_chunk is None else min(tokens, float(self.prefill_chunk))

    def tokens(self, architectures: Architectures) -> FloatArray:
        """Return the training tokens of each architecture, (n,): its own, or the law's.

        Where vocabularies differ, those of as much text as the law's tokenizer would make them of.

        Args:
            architectures: (n,).

        Raises:
            ValueError: neither says them.
        """
        tokens = self.law.tokens_of(architectures)
        if self.text is None or self.law.vocabulary_cost is None:
            return tokens
        return tokens * self.text.bytes_of_law / self.text.bytes_per_token(architectures)

    def at(self, precision: str) -> "Scenario":
        """Return the scenario for designs in one of `formats`, with the law for it; "" is this one's own format.

        Args:
            precision: a name among `formats`.
        """
        if not precision or precision == self.precision.name:
            return replace(self, formats=(), law=self.law.at(self.precision.name))
        found = next(scenario for scenario in self.formats if scenario.precision.name == precision)
        return replace(found, law=self.law.at(precision))

    def of_vocabulary(self, vocabulary: int) -> "Scenario":
        """Return the scenario in which every design has this vocabulary (0: none), which sets the tokens of a request's text.

        Args:
            vocabulary: entries; 0: none.
        """
        law, text, cost = self.law, self.text, self.law.vocabulary_cost
        law = law if cost is None else law.model_copy(update={"vocabulary_cost": cost.at(vocabulary)})
        formats = tuple(each.of_vocabulary(vocabulary) for each in self.formats)
        if text is None:
            return replace(self, law=law, formats=formats)
        here = text.at(vocabulary)
        read = here.tokens_of(text.prompt) if text.prompt else self.input_tokens
        written = here.tokens_of(text.answer) if text.answer else self.output_tokens
        return replace(self, law=law, formats=formats, text=here, input_tokens=read, output_tokens=written)

    def at_equal_text(self) -> "Scenario":
        """Return the scenario in which designs of other vocabularies read, write and train on equal text, with the loss that this costs.

        Raises:
            ValueError: no text, or a vocabulary that its curve does not count.
        """
        text = self.text_here
        text = text.with_requests(self.input_tokens, self.output_tokens, text.bytes_per_token_here)
        cost = (self.law.vocabulary_cost or text.cost).model_copy(update={"here": None})
        formats = tuple(replace(each, text=text) for each in self.formats)
        law = self.law.model_copy(update={"vocabulary_cost": cost})
        return replace(self, law=law, text=text, formats=formats)

    def by_design(self, architectures: Architectures) -> list[tuple[IntArray, "Scenario"]]:
        """Return the rows of each scenario by device, format and vocabulary; empty if all are in this one.

        Args:
            architectures: (n,).
        """
        if self.devices:
            return self._by_device(architectures)
        cost, text = self.law.vocabulary_cost, self.text
        by_vocabulary = (cost is not None and cost.here is None) or (
            text is not None and text.of_requests and bool((architectures.vocabulary != text.cost.here).any())
        )
        if by_serving := self._by_serving(architectures):
            return by_serving
        if not self.formats and not by_vocabulary:
            return []
        found: list[tuple[IntArray, Scenario]] = []
        for name, rows in architectures.in_formats():
            scenario, own = self.at(name), architectures.vocabulary[rows]
            several = np.unique(own).tolist() if by_vocabulary else []
            found += [(rows[own == size], scenario.of_vocabulary(size)) for size in several] or [(rows, scenario)]
        return found

    def _by_serving(self, architectures: Architectures) -> list[tuple[IntArray, "Scenario"]]:
        """`by_design` of designs that say themselves what is drafted ahead of them, or where their experts lie; none where all are in this one."""
        if not any_of(architectures.speculation) and not any_of(architectures.experts_in):
            return []
        both = architectures.speculation * len(EXPERTS_IN) + architectures.experts_in
        scenarios = {place: self._at_words(*divmod(place, len(EXPERTS_IN))) for place in np.unique(both).tolist()}
        if all(each.serving == self.serving for each in scenarios.values()):
            return []
        return _further(architectures, both, scenarios)

    def _by_device(self, architectures: Architectures) -> list[tuple[IntArray, "Scenario"]]:
        """`by_design` where designs say themselves which device they are on."""
        numbers = np.unique(architectures.device)
        scenarios = {
            number: self.on_device(name) for number, name in zip(numbers.tolist(), names_of(numbers), strict=True)
        }
        return _further(architectures, architectures.device, scenarios)

    def on_device(self, device: str) -> "Scenario":
        """Return the scenario for designs on one of `devices`; "" is this one's own.

        Raises:
            ValueError: a device that is none of them.
        """
        if not device or not self.devices:
            return replace(self, devices=())
        if device not in self._by_name:
            raise ValueError(
                f"device: expected one of {', '.join([*self._by_name][:6])}, got {device}; correct the design"
            )
        return self._placed(self._by_name[device])

    @cached_property
    def _by_name(self) -> dict[str, "Scenario"]:
        return dict(self.devices)

    def _placed(self, there: "Scenario") -> "Scenario":
        """This scenario with what is the device's of another; of two chips no energy is known: coefficients are of one."""
        own = {name: getattr(there, name) for name in OF_A_DEVICE}
        own |= {} if self.serving.prompts is None else {"energy": None}
        formats = tuple(each._placed(other) for each, other in zip(self.formats, there.formats, strict=True))
        return replace(self, **own, formats=formats, devices=())

    def plainly(self) -> "Scenario":
        """Return the scenario of a draft model: its own format, one chip, token by token."""
        return replace(self, serving=Serving(), formats=())

    def drafting(self, speculation: str) -> "Scenario":
        """Return the scenario for designs with this speculation; "" is this one's own. A drafting head changes the loss."""
        return self._serving_with(speculation=speculation) if speculation else self

    def _at_words(self, speculation: int, experts_in: int) -> "Scenario":
        return self.drafting(SPECULATION[speculation]).with_experts_in(EXPERTS_IN[experts_in])

    def with_experts_in(self, experts_in: str) -> "Scenario":
        """Return the scenario for designs whose experts lie in that memory; "" is this one's own."""
        return self._serving_with(experts_in=experts_in) if experts_in else self

    def _serving_with(self, **words: Any) -> "Scenario":
        """The scenario and its formats, each with other words of its own serving."""
        serving = replace(self.serving, **words)
        formats = tuple(each._serving_with(**words) for each in self.formats)
        return replace(self, serving=serving, law=_law_of(self.law, serving), formats=formats)

    def served(self, serving: Serving) -> "Scenario":
        """Return the scenario for designs served in that way, with the law for them and with formats likewise.

        Of two chips no energy is known: coefficients are of one.
        """
        formats = tuple(each.served(serving) for each in self.formats)
        placed = replace(self, serving=serving, law=_law_of(self.law, serving), formats=formats)
        if serving.prompts is None:
            return placed
        own = replace(serving, prompts=serving.prompts.at(self.precision.name))
        return replace(placed, serving=own, energy=None)

    def of_design(self, architecture: Architectures) -> "Scenario":
        """Return the scenario of one architecture (n = 1): its format, its vocabulary, its tokens of a text."""
        return next((own for _, own in self.by_design(architecture)), self)

    @property
    def text_here(self) -> Text:
        """The text that metrics per byte use.

        Raises:
            ValueError: there is none.
        """
        if self.text is None:
            raise ValueError("metrics per byte: expected the text of a study, got none; assess designs in a study")
        return self.text

    @property
    def stated_tokens(self) -> float:
        """The training tokens of every design if all have one vocabulary, as in `tokens`.

        Raises:
            ValueError: the law does not say them.
        """
        tokens, cost = self.law.stated_tokens, self.law.vocabulary_cost
        if cost is None or cost.here is None or self.text is None:
            return tokens
        return tokens * self.text.bytes_of_law / float(self.text.curve.bytes_per_token(cost.here or cost.relative_to))

    def bytes_of_head(self, width: FloatArray | None = None) -> Values:
        """Return bytes per weight of the LM head (of the one table if tied), in rows of the width.

        Args:
            width: features, (n,); None: rows of whole blocks.
        """
        return self.precision.bytes_of("head", width) if self.head_bytes is None else self.head_bytes

    def bytes_of_embedding(self, tied: BoolArray, width: FloatArray | None = None) -> Values:
        """Return bytes per weight of the embedding, in rows of the width."""
        if self.head_bytes is not None:
            return self.head_bytes
        return np.where(tied, self.bytes_of_head(width), self.precision.bytes_of("embedding", width))

    def conditions(self, *, experts: bool, layers: bool = False) -> Conditions:
        """Return the conditions that its requests need a profile for, for designs with or without experts and layers beside attention."""
        context, serving, memory = self.input_tokens + self.output_tokens, self.serving, self.device.slow_memory
        return Conditions(
            self.precision.name,
            self.batch,
            self.input_tokens,
            context,
            experts,
            self.engine,
            layers,
            drafting=bool(serving.drafted),
            acceptance_stated=serving.acceptance_stated,
            slow=bool(serving.slow_share),
            slow_stated=memory is not None and not memory.typical,
            own={} if self.precision.stored is None else {self.precision.name: self.precision.stored},
        )

    def of_phase(self, phase: Phase) -> "Scenario":
        """Return the scenario of the chip that runs a phase."""
        reader: Scenario | None = self.serving.prompts
        return self if reader is None or phase == "decode" else reader

    @property
    def by_device(self) -> dict[str, "Scenario"]:
        """The scenario of each device that designs may have, by name; this one alone, "", if there is no choice."""
        return {name: self._placed(there) for name, there in self.devices} or {"": self}

    @property
    def each(self) -> dict[str, "Scenario"]:
        """The scenario of each device and precision that designs may have, by what distinguishes them; this one by its precision."""
        if not self.devices:
            return self.by_format
        formats = [(name, *pair) for name, there in self.by_device.items() for pair in there.by_format.items()]
        return {f"{name}, {precision}" if self.formats else name: each for name, precision, each in formats}

    @property
    def by_format(self) -> dict[str, "Scenario"]:
        """The scenario of each precision that designs may have, by name; this one alone if there is no choice."""
        return {scenario.precision.name: scenario for scenario in self.formats or (self,)}

    def coefficients(self) -> Energy:
        """The coefficients of a request's energy.

        Raises:
            ValueError: nothing is known of it here, or times are no measured ones, or of sustained load, or of two chips.
        """
        if self.serving.prompts is not None:
            raise ValueError(
                f"energy_j: expected one chip, whose power was metered, got {self.serving.prompts.device.name} for prompts beside "
                f"{self.device.name}; drop serving.phases"
            )
        if self.sustained is not None:
            raise ValueError(
                "energy_j: expected times of the first seconds, as power was metered, got sustained load, at whose clocks "
                "nothing says what the device draws; drop sustained"
            )
        where = f"{self.device.name}{'@' * bool(self.device.mode)}{self.device.mode}"
        if self.energy is None:
            raise ValueError(
                f"energy_j: expected a device with energy coefficients in its power mode, got {where}; "
                "take one that has (docs/energy.md), or fit them: plas calibrate with rows of power"
            )
        if self.calibration is None:
            raise ValueError(
                f"energy_j: expected calibrated times, which the coefficients of {where} were fitted with, got datasheet "
                "peaks; use --preset device, or --set calibration=shipped"
            )
        return self.energy

    @property
    def slower(self) -> float:
        """How many times longer everything takes under sustained load."""
        return 1.0 if self.sustained is None else 1.0 / self.sustained.share

    def seconds_per_flop(self, peak: Peak) -> float:
        """Return 1/(η_c π) of a peak, s/FLOP, times `slower`.

        Args:
            peak: of the device, by name.

        Raises:
            ValueError: the device does not state it.
        """
        return self.slower / ((self.calibration or _DATASHEET).efficiency(peak) * self.device.rate(peak))

    def seconds_per_byte(self, phase: Phase, *, routed: bool = False) -> float:
        """Return 1/(η_b β) of a phase, s/B, times `slower`; for routed experts, which stream by, that of decoding.

        In decode passes from the cache η_s β_c takes the place of η_b β where it is larger.
        """
        c = self.calibration or _DATASHEET
        efficiency = c.bandwidth("decode" if routed else phase)
        if self.from_cache and phase == "decode":
            faster = (self.device.cache_bandwidth or 0.0) / self.device.bandwidth
            efficiency = max(efficiency, (c.cache_efficiency or 0.0) * faster)
        return self.slower / (efficiency * self.device.bandwidth)

    def overhead_s(self, phase: Phase) -> float:
        """Return τ of a phase, s per operator instance.

        Args:
            phase: prefill or decode.
        """
        return 0.0 if self.calibration is None else self.calibration.overhead_s(phase) * self.slower

    def factors(self, kind: Kind, phase: Phase, tokens: float) -> tuple[float, float]:
        """Return the factors on η_c and η_b for operators of a kind with so many tokens at once.

        Args:
            kind: of operators.
            phase: prefill or decode.
            tokens: at once.
        """
        return (1.0, 1.0) if self.calibration is None else self.calibration.factors(kind, phase, tokens)

    @property
    def routing_overlap(self) -> float:
        """ρ, the share of further tokens whose experts have been read already."""
        return 0.0 if self.calibration is None else self.calibration.routing_overlap

    @property
    def slow_memory(self) -> SlowMemory:
        """The memory for experts that do not fit into the device's own.

        Raises:
            ValueError: the device states none.
        """
        if self.device.slow_memory is None:
            raise ValueError(
                f"experts_in: expected a device with slow memory, got {self.device.name}; give slow_memory: {{bandwidth, capacity}} "
                "in its file"
            )
        return self.device.slow_memory

    @property
    def slow_efficiency(self) -> float:
        """Share of the slow memory's bandwidth that is achieved."""
        return (self.calibration or _DATASHEET).slow_bandwidth_efficiency

    @property
    def position_cost(self) -> float:
        """kappa, the cost of a further position in a step as a share of a plain step: stated, calibrated, or from public measurements."""
        measured = None if self.calibration is None else self.calibration.position_cost
        stated = measured if self.serving.position_cost is None else self.serving.position_cost
        return self.serving.position_bits / (8.0 * self.precision.weight_bytes) if stated is None else stated

    @property
    def cached(self) -> bool:
        """True if decode passes find part of their bytes in the last-level cache."""
        known = self.calibration is not None and self.calibration.cache_efficiency is not None
        return (
            known
            and not self.from_cache
            and self.latency == "operator"
            and bool(self.device.cache)
            and bool(self.device.cache_bandwidth)
        )

    def in_cache(self) -> "Scenario":
        """The same scenario as if the last-level cache held everything that a decode pass reads."""
        return replace(self, from_cache=True)

    @property
    def request_s(self) -> float:
        """Seconds per request, counted once in prefill."""
        return 0.0 if self.calibration is None else self.calibration.request_s * self.slower


def _further(
    architectures: Architectures, numbers: IntArray, scenarios: Mapping[int, Scenario]
) -> list[tuple[IntArray, Scenario]]:
    """The rows of each number with its scenario, or with those that its designs are in there."""
    found: list[tuple[IntArray, Scenario]] = []
    if not scenarios:
        return found
    order = np.argsort(numbers, kind="stable")
    starts = np.searchsorted(numbers[order], sorted(scenarios))
    for number, rows in zip(sorted(scenarios), np.split(order, starts[1:]), strict=True):
        scenario = scenarios[number]
        further = scenario.by_design(architectures[rows])
        found += [(rows[own], each) for own, each in further] or [(rows, scenario)]
    return found
