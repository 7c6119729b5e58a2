"""Errors of using a profile beyond its measurements: another batch, length, format, or experts; learnt from published rows."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from objectives.device import Calibration, Phase
from objectives.engines import engine_of
from objectives.weight_formats.table import WEIGHT_FORMATS, WeightFormat
from search_spaces.formats import base_of, kv_bits_of, operators_of

Range = tuple[float, float]
NEAR = 2.0  # ratio of lengths within which they count as measured


@dataclass(frozen=True)
class Conditions:
    """The conditions of a request: precision, batch, tokens of the prompt and in total, routed experts, engine ("": any), layers beside attention.

    Also whether tokens are drafted ahead, with a stated acceptance, and whether experts lie in slow memory, with a stated rate;
    formats of weights that do not ship.
    """

    precision: str
    batch: int = 1
    prompt: int = 0
    context: int = 0
    experts: bool = False
    engine: str = ""
    layers: bool = False
    drafting: bool = False
    acceptance_stated: bool = True
    slow: bool = False
    slow_stated: bool = True
    own: Mapping[str, WeightFormat] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class Ratios:
    """Measured / predicted of `rows` rows, by deciles from least to largest."""

    rows: int
    deciles: tuple[float, ...]

    def at(self, share: Fraction) -> float:
        """Return the bound of a further row with probability `share`: the quantile share · (rows + 1)/rows, at most the largest."""
        level = min(1.0, float(share * (self.rows + 1) / self.rows))
        return float(np.exp(np.interp(level, np.linspace(0.0, 1.0, len(self.deciles)), np.log(self.deciles))))


@dataclass(frozen=True)
class Step:
    """Measured / predicted by phase for a profile used `times` beyond its measurements.

    times: of the batch or of the lengths; 1 where there are no degrees.
    """

    seen: Mapping[Phase, Ratios]
    times: float = 1.0

    def beyond(self, text: str, ratio: float = 1.0, phases: Sequence[Phase] = ()) -> "Transfer":
        """Return the transfer by a ratio of the batch or of lengths: what of its phases was seen, behind a text."""
        seen = {phase: self.seen[phase] for phase in phases or self.seen}
        ranges = {phase: f"{r.deciles[0]:.2g} to {r.deciles[-1]:.2g}" for phase, r in seen.items()}
        first, *others = ranges
        took = [f"{first} took {ranges[first]} times what is predicted", *(f"{p} {ranges[p]}" for p in others)]
        power = 1.0 if self.times == 1.0 else abs(math.log(ratio)) / math.log(self.times)
        return Transfer(f"{text} {', '.join(took)}", {phase: Widening(seen[phase], power) for phase in seen})


@dataclass(frozen=True)
class Widening:
    """The ratios of a step, raised to the number of such steps."""

    seen: Ratios
    power: float

    def at(self, share: Fraction) -> float:
        """Return a factor ≥ 1 that measured / predicted stays below with probability `share`."""
        found: float = self.seen.at(share) ** self.power
        return max(1.0, found)


#: Source: `python -m benchmarks.transfers`, on the public table: rows of one group predicted from another's profile.
BATCH_UP = Step(
    {
        "prefill": Ratios(31, (1.10, 1.51, 1.56, 1.58, 1.62, 1.67, 1.70, 1.92, 2.24, 2.84, 4.22)),
        "decode": Ratios(31, (0.92, 1.02, 1.04, 1.05, 1.17, 1.31, 1.37, 1.57, 1.84, 1.96, 2.68)),
    },
    8.0,
)
BATCH_DOWN = Step(
    {
        "prefill": Ratios(31, (0.29, 0.33, 0.49, 0.53, 0.59, 0.62, 0.63, 0.64, 0.66, 0.71, 0.97)),
        "decode": Ratios(31, (0.42, 0.51, 0.58, 0.60, 0.70, 0.79, 0.81, 0.87, 0.95, 0.96, 1.08)),
    },
    8.0,
)
SHORTER = Step(
    {
        "prefill": Ratios(19, (0.36, 0.70, 0.82, 1.07, 1.15, 1.22, 1.38, 1.50, 1.81, 2.21, 2.66)),
        "decode": Ratios(19, (0.96, 0.98, 0.98, 0.99, 1.00, 1.01, 1.03, 1.04, 1.07, 1.10, 1.11)),
    },
    2048 / 57,
)
LONGER = Step(
    {
        "prefill": Ratios(17, (0.97, 1.06, 1.19, 1.29, 1.39, 1.43, 1.46, 1.47, 1.54, 1.60, 1.69)),
        "decode": Ratios(19, (1.03, 1.04, 1.04, 1.06, 1.07, 1.08, 1.10, 1.11, 1.17, 1.20, 1.32)),
    },
    8.0,
)
EXPERTS = Step(
    {
        "prefill": Ratios(10, (0.72, 0.74, 0.76, 0.82, 0.87, 0.91, 1.00, 1.12, 1.18, 1.33, 1.63)),
        "decode": Ratios(10, (0.71, 0.77, 0.91, 0.96, 0.97, 0.99, 1.01, 1.02, 1.04, 1.06, 1.16)),
    }
)
FORMATS = Step(
    {
        "prefill": Ratios(63, (0.73, 0.78, 0.83, 0.86, 0.93, 1.11, 1.19, 1.21, 1.29, 1.69, 3.20)),
        "decode": Ratios(71, (0.63, 0.79, 0.92, 0.99, 0.99, 1.00, 1.02, 1.03, 1.07, 1.17, 1.49)),
    }
)
#: Source: public rows of 2026 (B70, HX 370, M3 Ultra, Pixel 8a, Strix Halo): Qwen3.5, Qwen3-Next and LFM2 beside models with attention alone.
LAYERS = Step(
    {
        "prefill": Ratios(58, (0.71, 0.82, 0.84, 0.85, 0.87, 0.90, 0.96, 1.08, 1.23, 2.03, 5.62)),
        "decode": Ratios(35, (0.65, 0.87, 0.89, 0.95, 1.00, 1.17, 1.20, 1.25, 1.30, 1.35, 2.09)),
    }
)
#: Source: the same and the public table: rows of one device and kind of format with one engine beside those with another, in either
#: order; prefills of few, on an NPU apart.
_ENGINES = Ratios(22, (0.40, 0.66, 0.79, 0.90, 0.95, 1.00, 1.06, 1.11, 1.26, 1.52, 2.47))
ENGINES = Step({"prefill": _ENGINES, "decode": _ENGINES})
ENGINES_OF_NPUS = Step({"prefill": Ratios(2, (0.03, 34.9)), "decode": _ENGINES})
DEEP = 8192  # tokens beyond which hardly a row of a class reaches
#: Formats of weights whose unpacking on processors was measured.
ON_PROCESSORS = ("fp16", "int4", "w4a16", "int8", "q4_0", "q4_k_m")
#: Source: `python -m studies.serving` with all rows that were found: what published decode times are of predicted ones with tokens drafted
#: ahead, given the acceptance; where it is not stated, of 27 published first positions at two tokens; with slow experts, its rate fitted on other
#: rows of the machine, or as public rows have it.
DRAFTING = Step({"decode": Ratios(84, (0.65, 0.85, 0.88, 0.90, 0.94, 0.99, 1.01, 1.04, 1.12, 1.26, 1.89))})
DRAFTING_EXPERTS = Step({"decode": Ratios(8, (0.85, 0.90, 0.96, 1.04, 1.06, 1.08, 1.09, 1.09, 1.13, 1.15, 1.15))})
ACCEPTANCE = Step({"decode": Ratios(27, (0.94, 0.95, 0.97, 0.98, 0.98, 0.99, 1.00, 1.04, 1.10, 1.18, 1.28))})
SLOW = Step({"decode": Ratios(26, (0.70, 0.88, 0.91, 0.99, 0.99, 1.00, 1.00, 1.05, 1.09, 1.13, 1.42))})
SLOW_TYPICAL = Step({"decode": Ratios(31, (0.45, 0.64, 0.65, 0.75, 0.81, 0.86, 0.97, 1.04, 1.10, 1.25, 2.33))})
MEASURED_FORMATS = {"fp16", "int4"}  # between which formats were seen to transfer


@dataclass(frozen=True)
class Transfer:
    """One way in which the conditions lie outside of the measurements.

    sentence: for the answer. widening: by phase by how much farther measured / predicted reaches; none where no data tells one.
    """

    sentence: str
    widening: Mapping[Phase, Widening]


def extrapolations(profile: Calibration, asked: Conditions) -> list[Transfer]:
    """Return every way in which the conditions lie outside of the profile's measurements."""
    base, served = base_of(asked.precision), _serving(asked)
    if asked.layers and not profile.layers and (profile.typical or profile.prompts or profile.contexts):
        text = "measured without layers of linear attention, convolution or a shared cache: with them"
        served.insert(0, LAYERS.beyond(text))
    if profile.typical:
        to_depth = profile.model_copy(update={"prompts": (1, DEEP), "contexts": (1, DEEP)})
        unpacked = [FORMATS.beyond(f"{base} was not measured on processors: of other formats")]
        on_processors = unpacked if profile.typical == "cpu" and base not in ON_PROCESSORS else []
        return [*_engine(profile, asked), *on_processors, *_batch(profile, asked), *_lengths(to_depth, asked), *served]
    if asked.experts and profile.experts is False:
        served.insert(0, EXPERTS.beyond("measured without experts: with them"))
    return [
        *_engine(profile, asked),
        *_unmeasured_phase(profile),
        *_format(profile, asked),
        *_variation(asked),
        *_batch(profile, asked),
        *_lengths(profile, asked),
        *served,
    ]


def error_factor(profile: Calibration, asked: Conditions, phase: Phase, share: Fraction) -> float:
    """Return a factor ≥ 1 that measured / predicted of a phase stays below with a probability: the product over its transfers."""
    return math.prod(t.widening[phase].at(share) for t in extrapolations(profile, asked) if phase in t.widening)


def rows_in(precision: str) -> str:
    """Return the precision for rows of measurements under a name; rows of int4 count as w4a16."""
    rows = {called: name for name, written in WEIGHT_FORMATS.items() for called in written.measured_as}
    return rows.get(precision, precision)


def takes_as_measured(profile: Calibration, precision: str) -> bool:
    """Return True if a precision counts as what a profile was measured in; int4 without scales counts as int4 with them."""
    base = base_of(precision)
    return base == (profile.format or rows_in(profile.precision)) or profile.precision in (
        "",
        *([] if profile.format else [base]),
    )


def computing_as(asked: Conditions) -> str:
    """Return the precision whose profiles were measured with a format's way of computing."""
    base = base_of(asked.precision)
    return (WEIGHT_FORMATS.get(base) or asked.own[base]).profile or base


def priced_otherwise(profile: Calibration) -> str:
    """Return how the profile's precision differs from the format that it was measured in, and how to select that."""
    found = WEIGHT_FORMATS[profile.format]
    weights, head = (8.0 * float(np.asarray(found.bytes_of(kind))) for kind in ("weights", "head"))
    return (
        f"measured in {profile.format} (from {weights:.3g} bits a weight, {head:.3g} in the LM head), which {profile.precision} is not; "
        f"--precision {profile.format} takes it as measured"
    )


def _engine(profile: Calibration, asked: Conditions) -> list[Transfer]:
    """Another engine than that whose times are asked for."""
    if not asked.engine or engine_of(asked.engine) == engine_of(profile.engine):
        return []
    known = f"times are those of {profile.engine}" if profile.engine else "times are as of the engines that are known"
    text = f"nothing is known of {asked.engine} here, {known}"
    if not profile.engine:
        return [Transfer(text, {})]
    step = ENGINES_OF_NPUS if "npu" in (profile.typical, profile.borrowed) else ENGINES
    return [step.beyond(f"{text}: of another engine")]


def article(precision: str) -> str:
    """Return the name with its article: `an int4`, `a q8_0`."""
    return f"{'a' if precision.startswith(('q', 'w')) else 'an'} {precision}"


def _unmeasured_phase(profile: Calibration) -> list[Transfer]:
    """A phase of which the profile has no row, where the other has."""
    if (profile.prompts is None) == (profile.contexts is None):
        return []
    phase, other = ("prefill", "decode") if profile.prompts is None else ("decode", "prefill")
    return [
        Transfer(
            f"{phase} was not measured, {other} alone: it is as is typical of the class of chip, and as far off as its devices are",
            {},
        )
    ]


def _format(profile: Calibration, asked: Conditions) -> list[Transfer]:
    base = base_of(asked.precision)
    if takes_as_measured(profile, base):
        return []
    if base == profile.precision and profile.format in WEIGHT_FORMATS:
        return [Transfer(priced_otherwise(profile), {})]
    text = f"efficiencies transferred from {article(profile.format or profile.precision)} measurement"
    if {profile.precision, computing_as(asked)} != MEASURED_FORMATS:
        return [Transfer(f"{text}, of which no data says how far off it is", {})]
    return [FORMATS.beyond(f"{text}:")]


def _variation(asked: Conditions) -> list[Transfer]:
    """Parts of a format that no profile was measured with: each is of a cache as wide as activations, and of down projections like the others."""
    wide, bits = operators_of(asked.precision) != base_of(asked.precision), kv_bits_of(asked.precision)
    named = ["a KV cache as wide as activations"] * bool(bits) + ["down projections like the others"] * wide
    return (
        [Transfer(f"measured with {' and '.join(named)}, of which no data says how far off it is", {})] if named else []
    )


def _batch(profile: Calibration, asked: Conditions) -> list[Transfer]:
    if asked.batch == profile.batch:
        return []
    ratio = asked.batch / profile.batch
    step = BATCH_UP if ratio > 1 else BATCH_DOWN
    text = (
        f"measured at batch {profile.batch}, and prefill at batch {asked.batch} cannot be known from it: "
        f"{'at 8 times the batch' if ratio > 1 else 'at an eighth of the batch'}"
    )
    return [step.beyond(text, ratio)]


def _lengths(profile: Calibration, asked: Conditions) -> list[Transfer]:
    """Prompts, and contexts of decoding, outside what was measured by more than `NEAR`."""
    found = []
    phases: tuple[tuple[Phase, Range | None, int], ...] = (
        ("prefill", profile.prompts, asked.prompt),
        ("decode", profile.contexts, asked.context),
    )
    for phase, measured, length in phases:
        if measured is None or not length or max(measured[0], 1) / NEAR <= length <= max(measured[1], 1) * NEAR:
            continue
        way = "longer" if length > measured[1] else "shorter"
        step, ratio = (LONGER, length / max(measured[1], 1)) if way == "longer" else (SHORTER, measured[0] / length)
        what = "prompts" if phase == "prefill" else "contexts"
        least, most = (f"{n:,}" for n in measured)
        text = (
            f"{what} of {length:,} tokens are {way} than the measured {least if least == most else f'{least} to {most}'}: "
            f"where they were {step.times:.0f} times {way},"
        )
        found.append(step.beyond(text, ratio, [phase]))
    return found


def _serving(asked: Conditions) -> list[Transfer]:
    """What no profile is measured with: tokens drafted ahead, experts in slow memory."""
    found = []
    if asked.drafting:
        step = DRAFTING_EXPERTS if asked.experts else DRAFTING
        found.append(step.beyond("with tokens drafted ahead"))
    if asked.drafting and not asked.acceptance_stated:
        found.append(ACCEPTANCE.beyond("the acceptance is of public rows: with theirs"))
    if asked.slow:
        step = SLOW if asked.slow_stated else SLOW_TYPICAL
        found.append(step.beyond("with experts in slow memory"))
    return found
