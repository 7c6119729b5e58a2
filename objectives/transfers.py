"""Extrapolations of a profile to a batch, lengths, a format or experts that it was not measured with: the errors that such steps were seen to make."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from objectives.device import Calibration, Phase
from objectives.engines import engine_of
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
FORMATS = Step({"prefill": (0.73, 3.20), "decode": (0.64, 1.48)})
#: Bits of weights and of the LM head in llama.cpp's formats that calibrate as int4, and the settings that count them so.
COUNTED = {
    "q4_k_m": (4.85, 6.56, "int4_group_size=24 and head_bytes=0.82"),
    "q4_0": (4.5, 6.56, "int4_group_size=40 and head_bytes=0.82"),
}
#: What a study counts nearest to a format of llama.cpp, which none of its precisions is.
NEAREST = {
    "q4_k_m": f"int4, counted as q4_k_m with {COUNTED['q4_k_m'][2]} (its LM head has 16 bits otherwise)",
    "q4_0": f"int4, counted as q4_0 with {COUNTED['q4_0'][2]} (its LM head has 16 bits otherwise)",
    "q8_0": "int8, which computes at the INT8 peak and has an LM head of 16 bits; head_bytes=1.0625 counts that of q8_0",
    "mxfp4": "int4 or nvfp4, with an LM head of 16 bits; MXFP4 has experts alone in 4 bits, which no precision counts",
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


def priced_otherwise(profile: Calibration) -> str:
    """How int4 is counted otherwise than the format that the profile was measured in, and how to count that."""
    weights, head, like = COUNTED[profile.format]
    return (
        f"measured in {profile.format} ({weights:g} bits a weight, {head:g} in the LM head), and {profile.precision} is counted with about 4 bits "
        f"and a head of 16, unless {like} are set"
    )


def _engine(profile: Calibration, asked: Conditions) -> list[Transfer]:
    """Another engine than that whose times are asked for."""
    if not asked.engine or engine_of(asked.engine) == engine_of(profile.engine):
        return []
    known = f"times are those of {profile.engine}" if profile.engine else "times are as of the engines that are known"
    return [Transfer(f"nothing is known of {asked.engine} here, {known}", {})]


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
    if profile.precision == base and profile.format in COUNTED:
        return [Transfer(priced_otherwise(profile), {})]
    if profile.precision in ("", base):
        return []
    article = "a" if profile.precision.startswith(("q", "w")) else "an"
    text = f"efficiencies transferred from {article} {profile.precision} measurement"
    if {profile.precision, base} != MEASURED_FORMATS:
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
