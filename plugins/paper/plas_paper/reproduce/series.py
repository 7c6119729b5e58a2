"""Data of the pictures of a reproduction's page: exact frontiers, exponents over input length, gains at equal latency."""

from dataclasses import dataclass

from nas.answer.palette import label
from plas_paper.reproduce.gains import PRINTED_GAIN, Gain, gains_at_equal_latency
from plas_paper.reproduce.latency_claims import LENGTHS, length_exponents
from plas_paper.reproduce.whole_spaces import PHASES, whole
from search_spaces.arrays import FloatArray

DIGITS = 7  # significant ones that a picture needs
PRECISIONS = ("fp16", "int8")
NAMES = {"depth": "Depth (layers)", "width": "Width", "n_experts": "Experts E", "ffn_ratio": "FFN ratio r"}


@dataclass(frozen=True)
class Frontier:
    """An exact frontier, faster designs first: a phase's milliseconds, loss in nats, and the parameters that move."""

    phase: str
    precision: str
    axis: str
    ms: tuple[float, ...]
    loss: tuple[float, ...]
    moving: dict[str, tuple[float, ...]]


@dataclass(frozen=True)
class Exponents:
    """Of a latency between successive input lengths, with the printed one."""

    name: str
    printed: float
    exponents: tuple[float, ...]


@dataclass(frozen=True)
class Gains:
    """Predicted gains in perplexity, per cent, with the printed one; the published model's weights, GB."""

    printed: float
    memory_gb: float
    found: tuple[Gain, ...]


@dataclass(frozen=True)
class Pictures:
    """The data of the pictures; `lengths` in tokens, one more than each series has exponents."""

    frontiers: tuple[Frontier, ...]
    names: dict[str, str]
    lengths: tuple[int, ...]
    exponents: tuple[Exponents, ...]
    gains: Gains


def pictures() -> Pictures:
    """Everything that is drawn."""
    frontiers = tuple(frontier(phase, precision) for phase in PHASES for precision in PRECISIONS)
    slopes = tuple(
        Exponents(name, 1.0 if name == "decode" else 2.0, _digits(found)) for name, found in length_exponents().items()
    )
    gains, theirs = gains_at_equal_latency()
    return Pictures(frontiers, NAMES, LENGTHS, slopes, Gains(PRINTED_GAIN, theirs, tuple(gains)))


def frontier(phase: str, precision: str) -> Frontier:
    """The exact frontier of loss over a phase's latency."""
    every = whole(precision=precision)
    rows = every.frontier(phase)
    moving = {name: _digits(every.columns[name][rows]) for name in NAMES}
    ms, loss = (_digits(every.metrics[name][rows]) for name in (phase, "loss"))
    return Frontier(phase, precision, label(phase), ms, loss, moving)


def _digits(values: FloatArray) -> tuple[float, ...]:
    return tuple(float(f"{value:.{DIGITS}g}") for value in values.tolist())
