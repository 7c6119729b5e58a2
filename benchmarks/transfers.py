"""What a profile misses by where it was not measured: rows of one group predicted from another's profile.

    PLAS_EXTERNAL_DATA=FOLDER python -m benchmarks.transfers

FOLDER holds latency/measured_latency.csv, which is not part of the project.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np

from benchmarks.calibration import dense, device, fitted_to, measurements, public_rows
from nas.study.catalogue import load_law
from objectives.device import Device, Phase
from objectives.measured_bounds import conformal_factor
from objectives.transfers import BATCH_DOWN, BATCH_UP, EXPERTS, FORMATS, LONGER, SHORTER, Ratios, Step
from plas_board.calibrate.command import LAW
from plas_board.calibrating.group import PHASES, calibrate, groups
from plas_board.calibrating.measurements import Measurement
from plas_board.calibrating.terms import predict, terms
from search_spaces.arrays import FloatArray

Pair = tuple[Device, str, Sequence[Measurement], Sequence[Measurement]]
Groups = Mapping[tuple[str, str, str, int], Sequence[Measurement]]
BENCHED, TALKED = "TensorRT-Edge-LLM 0.10.0", "TensorRT-Edge-LLM 0.9.0"  # 2,048 tokens, and 51 to 61
SHARE = Fraction(8, 10)
LLAMA = "llama-bench May-2024"
#: llama.cpp's two formats on one device: 16 bits and 4.
TWO_FORMATS = {"fp16", "q4_k_m"}


def by_key(rows: Sequence[dict[str, str]]) -> Groups:
    """Rows of every device in the catalogue by device, engine, family of formats and batch."""
    chosen = measurements(rows, lambda m, r: True)
    known = {name: members for name, members in chosen.items() if device(name)}
    return {(name, *key): group for name, members in known.items() for key, group in groups(members).items()}


def batches(found: Groups, source: int, target: int) -> Iterator[Pair]:
    """Groups at one batch, and those at another of the same device, engine and format."""
    for (name, engine, family, batch), group in found.items():
        other = found.get((name, engine, family, target))
        if batch == source and other:
            yield _pair(name, f"{engine}, {family}", group, other)


def shorter(found: Groups) -> Iterator[Pair]:
    """Profiles of 2,048 tokens, and rows of 51 to 61 of the version before."""
    for (name, engine, family, batch), group in found.items():
        other = found.get((name, TALKED, family, batch))
        if engine == BENCHED and batch == 1 and other:
            yield _pair(name, family, group, other)


def longer(found: Groups) -> Iterator[Pair]:
    """Rows of up to 1,024 tokens, and those of 8,192 of the same device, engine and format."""
    for (name, engine, family, _), group in found.items():
        short = [m for m in group if max(m.prompt, m.generated) <= 1024]
        long = [m for m in group if max(m.prompt, m.generated) == 8192]
        if engine == LLAMA and short and long:
            yield _pair(name, family, short, long)


def experts(found: Groups) -> Iterator[Pair]:
    """Dense models, and those with experts of the same group."""
    for (name, engine, family, batch), group in found.items():
        plain, routed = [m for m in group if dense(m)], [m for m in group if not dense(m)]
        if plain and routed:
            yield _pair(name, f"{engine}, {family}, batch {batch}", plain, routed)


def formats(found: Groups) -> Iterator[Pair]:
    """16 and 4 bits of one device, engine and batch, from each other."""
    for (name, engine, family, batch), group in found.items():
        for other in TWO_FORMATS - {family} if family in TWO_FORMATS else ():
            if target := found.get((name, engine, other, batch)):
                yield _pair(name, f"{engine}, {other} from {family}", group, target)


def _pair(name: str, what: str, source: Sequence[Measurement], target: Sequence[Measurement]) -> Pair:
    board = device(name)
    assert board is not None
    return board, f"{name}, {what}", source, target


def ratios(pair: Pair) -> dict[Phase, FloatArray]:
    """Measured / predicted of the second rows from a fit to the first, by phase."""
    board, _, source, target = pair
    asked = terms(target, board, load_law(LAW))
    found = asked.ms / predict(asked, fitted_to(source, board, load_law(LAW)))
    return {phase: found[[m.phase == phase for m in target]] for phase in PHASES}


def every(rows: Sequence[dict[str, str]]) -> dict[str, tuple[Step, list[Pair]]]:
    """Each step away from what was measured, with the pairs that show what it misses by."""
    found = by_key(rows)
    return {
        "batch 8 from batch 1": (BATCH_UP, list(batches(found, 1, 8))),
        "batch 1 from batch 8": (BATCH_DOWN, list(batches(found, 8, 1))),
        "51 to 61 tokens from 2,048": (SHORTER, list(shorter(found))),
        "8,192 tokens from 512 and 1,024": (LONGER, list(longer(found))),
        "experts from dense models": (EXPERTS, list(experts(found))),
        "16 from 4 bits and 4 from 16": (FORMATS, list(formats(found))),
    }


def ranges(pairs: Sequence[Pair]) -> dict[Phase, tuple[float, float, int]]:
    """Least and largest measured / predicted by phase, and of how many rows."""
    done = [ratios(pair) for pair in pairs]
    joined = {phase: np.concatenate([each[phase] for each in done]) for phase in PHASES}
    return {phase: (float(r.min()), float(r.max()), len(r)) for phase, r in joined.items()}


Found = Sequence[tuple[Pair, dict[Phase, FloatArray]]]


def deciles(found: Found) -> dict[Phase, Ratios]:
    """What `objectives/transfers.py` has of a step, of pairs with their ratios."""
    joined = {phase: np.concatenate([each[phase] for _, each in found]) for phase in PHASES}
    tenths = np.linspace(0.0, 1.0, 11)
    return {phase: Ratios(len(r), tuple(np.quantile(r, tenths).round(2).tolist())) for phase, r in joined.items()}


def held(found: Found) -> dict[Phase, tuple[float, int]]:
    """The share of rows below their upper end at `SHARE`, and how many: the profile's own factor times the step's, of other devices' rows alone.

    Where the profile has too few models for `SHARE`, its largest ratio.
    """
    inside: dict[Phase, list[bool]] = {phase: [] for phase in PHASES}
    for (board, _, source, _), here in found:
        others = [other for other in found if other[0][0].name != board.name]
        if not others:
            continue
        profile, steps = calibrate(list(source), board, load_law(LAW), "", few=False).profile, deciles(others)
        for phase, values in here.items():
            own = profile.held_out.get(phase) or [1.0]
            factor = conformal_factor(own, profile.held_out_models or len(own), SHARE) or max(own)
            inside[phase] += (values <= factor * max(1.0, steps[phase].at(SHARE))).tolist()
    return {phase: (float(np.mean(each)), len(each)) for phase, each in inside.items()}


def main() -> None:
    """Print every step, and each pair of it."""
    for name, (_, pairs) in every(public_rows(Path(os.environ["PLAS_EXTERNAL_DATA"]))).items():
        print(f"\n{name}, measured / predicted")
        done = [(pair, ratios(pair)) for pair in pairs]
        shares = held(done)
        for phase, known in deciles(done).items():
            share, count = shares[phase]
            print(f"  {phase} {known}; upper ends at q80 hold {100 * share:.0f} % of {count} rows of devices left out")
        for pair in (None, *pairs):
            found = ranges(pairs if pair is None else [pair]) if pair is None or _both(pair) else {}
            cells = ", ".join(f"{phase} {a:.2f} to {b:.2f} (n {n})" for phase, (a, b, n) in found.items())
            print(f"  {'all' if pair is None else pair[1]}: {cells}" if cells else "")


def _both(pair: Pair) -> bool:
    return len({m.phase for m in pair[3]}) == len(PHASES)


if __name__ == "__main__":
    main()
