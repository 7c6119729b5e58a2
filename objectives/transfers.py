"""Extrapolations of a profile to a batch, lengths, a format or experts that it was not measured with: the errors that such steps were seen to make."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from objectives.device import Calibration, Phase
from objectives.engines import engine_of
from objectives.weight_formats.table import WEIGHT_FORMATS
from search_spaces.formats import base_of, kv_bits_of, operators_of

Range = tuple[float, float]
Seen = Mapping[Phase, Range]
NEAR = 2.0  # ratio of lengths within which they count as measured


@dataclass(frozen=True)
class Conditions:
    """The conditions that are priced: precision, sequences at once, tokens of a prompt and of prompt and answer, routed experts, engine ("": any)."""

    precision: str
    batch: int = 1
    prompt: int = 0
    context: int = 0
    experts: bool = False
    engine: str = ""


@dataclass(frozen=True)
class Step:
    """Measured / predicted, least and largest by phase, where a profile was used `times` beyond what it was measured with.

    times: of the batch or of the lengths; 1 where there are no degrees.
    """

    seen: Seen
    times: float = 1.0


#: Source: `python -m benchmarks.transfers`, on the public table: rows of one group predicted from another's profile.
BATCH_UP = Step({"prefill": (1.10, 4.22), "decode": (0.92, 2.68)}, 8.0)
BATCH_DOWN = Step({"prefill": (0.29, 0.97), "decode": (0.42, 1.08)}, 8.0)
SHORTER = Step({"prefill": (0.36, 2.66), "decode": (0.96, 1.11)}, 2048 / 57)
LONGER = Step({"prefill": (0.97, 1.69), "decode": (1.03, 1.32)}, 8.0)
EXPERTS = Step({"prefill": (0.72, 1.63), "decode": (0.71, 1.16)})
FORMATS = Step({"prefill": (0.73, 3.20), "decode": (0.63, 1.49)})
#: Names of formats by which a study's precisions are known elsewhere.
NEAREST = {
    "w8a8": "int8, which is weights and activations of 8 bits",
    "awq": "w4a16, which is AWQ's and GPTQ's in groups of 128",
    "gptq": "w4a16, which is AWQ's and GPTQ's in groups of 128",
}
MEASURED_FORMATS = {"fp16", "int4"}  # between which formats were seen to transfer


@dataclass(frozen=True)
class Transfer:
    """One way in which the conditions lie outside of what was measured.

    sentence: for the answer. widening: factor ≥ 1 on measured / predicted by phase; none where no data tells one.
    """

    sentence: str
    widening: Mapping[Phase, float]


def extrapolations(profile: Calibration, asked: Conditions) -> list[Transfer]:
    """Every way in which the conditions lie outside of what the profile was measured with."""
    if profile.typical:
        return [*_engine(profile, asked), *_batch(profile, asked)]
    return [
        *_engine(profile, asked),
        *_unmeasured_phase(profile),
        *_format(profile, asked),
        *_variation(asked),
        *_batch(profile, asked),
        *_lengths(profile, asked),
        *_experts(profile, asked),
    ]


def error_factor(profile: Calibration, asked: Conditions, phase: Phase) -> float:
    """Factor ≥ 1 on measured / predicted of a phase: the product over the transfers that concern it."""
    return math.prod(t.widening.get(phase, 1.0) for t in extrapolations(profile, asked))


def measured_in(profile: Calibration) -> str:
    """The precision that counts what a profile was measured in: its format, or what rows of its precision are priced in."""
    return profile.format or rows_in(profile.precision)


def rows_in(precision: str) -> str:
    """The precision that rows of measurements under a name are priced in: those of int4 as w4a16."""
    rows = {called: name for name, written in WEIGHT_FORMATS.items() for called in written.measured_as}
    return rows.get(precision, precision)


def takes_as_measured(profile: Calibration, precision: str) -> bool:
    """Whether a precision is counted as what a profile was measured in; int4 without scales passes for rows of int4 with them."""
    base = base_of(precision)
    return base == measured_in(profile) or profile.precision in ("", *([] if profile.format else [base]))


def computing_as(precision: str) -> str:
    """The precision whose profiles were measured with what computes as a format does."""
    base = base_of(precision)
    return WEIGHT_FORMATS[base].profile or base


def priced_otherwise(profile: Calibration) -> str:
    """How the profile's precision is counted otherwise than the format that it was measured in, and how to count that."""
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
    return [Transfer(f"nothing is known of {asked.engine} here, {known}", {})]


def article(precision: str) -> str:
    """`an int4`, `a q8_0`."""
    return f"{'a' if precision.startswith(('q', 'w')) else 'an'} {precision}"


def _unmeasured_phase(profile: Calibration) -> list[Transfer]:
    """A phase of which the profile has no row, where the other has."""
    if (profile.prompts is None) == (profile.contexts is None):
        return []
    phase, other = ("prefill", "decode") if profile.prompts is None else ("decode", "prefill")
    return [
        Transfer(
            f"{phase} was not measured, {other} alone: it is as is typical of the class of chip, and nothing says how far off",
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
    if {profile.precision, computing_as(base)} != MEASURED_FORMATS:
        return [Transfer(f"{text}, of which no data says how far off it is", {})]
    return [Transfer(f"{text}: {_missed(FORMATS)}", _worst(FORMATS, 1.0))]


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
        f"{'at 8 times the batch' if ratio > 1 else 'at an eighth of the batch'} {_missed(step)}"
    )
    return [Transfer(text, _worst(step, ratio))]


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
        longer = length > measured[1]
        step, ratio = (LONGER, length / max(measured[1], 1)) if longer else (SHORTER, measured[0] / length)
        what = "prompts" if phase == "prefill" else "contexts"
        least, most = (f"{n:,}" for n in measured)
        text = (
            f"{what} of {length:,} tokens are outside the measured {least if least == most else f'{least} to {most}'}: "
            f"{step.times:.0f} times {'longer' if longer else 'shorter'} {_missed(step, phase)}"
        )
        found.append(Transfer(text, {phase: _worst(step, ratio)[phase]}))
    return found


def _experts(profile: Calibration, asked: Conditions) -> list[Transfer]:
    if not asked.experts or profile.experts is not False:
        return []
    return [Transfer(f"measured without experts: with them {_missed(EXPERTS)}", _worst(EXPERTS, 1.0))]


def _missed(step: Step, *phases: Phase) -> str:
    """`prefill took 1.1 to 4.2 times what is predicted, decode 0.92 to 2.7`."""
    first, *others = phases or ("prefill", "decode")
    ratios = "{} {:.2g} to {:.2g}".format
    low, high = step.seen[first]
    return ", ".join(
        [f"{first} took {low:.2g} to {high:.2g} times what is predicted", *(ratios(p, *step.seen[p]) for p in others)]
    )


def _worst(step: Step, ratio: float) -> dict[Phase, float]:
    """The largest measured / predicted by phase, at least 1, to the power ln(ratio) / ln(times)."""
    power = 1.0 if step.times == 1.0 else abs(math.log(ratio)) / math.log(step.times)
    return {phase: max(1.0, most**power) for phase, (_, most) in step.seen.items()}
