"""How large a vocabulary: the exact pick over vocabularies, and with 151,936 tokens alone, by device and memory; and of three bodies the fastest.

    python -m studies.vocabulary

Int4, preset device under the paper's law; requests of 500 bytes of text in and 500 out for every vocabulary. Of memories: paper space, 200 bytes of
text a second and the memory of a row are the budgets. Nothing is timed.
"""

from typing import Any

import numpy as np

from nas.exact.solution import solve
from nas.problem.picks import PickRule
from nas.problem.problem import Problem
from nas.search.assembly import assemble
from nas.study.baselines import baseline
from nas.study.layers import over

DEVICES = (
    "jetson_agx_orin_64gb",
    "jetson_orin_nano_super_8gb",
    "raspberry_pi_5",
    "m4_10c",
    "snapdragon_8_elite",
    "rtx_4090",
)
MEMORY = (0.25, 0.5, 1.0)
SIZES = (4000, 8000, 16_000, 32_000, 64_000, 128_000)
QWEN = 151_936


BODIES = ("smollm2_135m", "qwen2.5_0.5b", "qwen3_1.7b")


def asked(device: str, sizes: tuple[int, ...], **budgets: float) -> Problem:
    """The problem of a device over vocabularies."""
    keys: dict[str, Any] = {
        "preset": "device",
        "law": "hw_codesign",
        "device": device,
        "precision": "int4",
        "vocabulary": list(sizes),
        "input_text": 500,
        "output_text": 500,
        "baselines": [],
        "applications": {},
        "budgets": budgets,
    }
    return assemble(*over(keys, {}, {}, [])).problem


def pick(device: str, memory: float, sizes: tuple[int, ...]) -> tuple[float, int, float] | None:
    """The loss of the pick within the budgets, nats, its vocabulary, and its parameters without the table; None where nothing fits."""
    problem = asked(device, sizes, ms_per_kilobyte=5000, resident_gb=memory)
    (found,) = solve(problem, (PickRule(None),)).picks
    if found is None:
        return None
    design = problem.architectures(found.genotypes)
    body = problem.assess(design.with_vocabulary(0))["params_total"]
    return float(found.metrics["loss"][0]), int(design.vocabulary[0]), float(body[0])


def fastest(device: str, body: str) -> tuple[int, float, float]:
    """The vocabulary at which a body writes text fastest, and what 151,936 changes of its time and of its loss, shares."""
    sizes = (*SIZES, QWEN)
    problem, known = asked(device, sizes), baseline(body).architecture
    found = [problem.assess(known.with_vocabulary(size, tied=True)) for size in sizes]
    times = [float(each["ms_per_kilobyte"][0]) for each in found]
    best = int(np.argmin(times))
    loss = [float(found[at]["loss"][0]) for at in (best, -1)]
    return sizes[best], times[-1] / times[best] - 1, loss[1] / loss[0] - 1


def by_memory() -> None:
    """A row a memory, of every answer with the devices that have it."""
    print("| memory | device | vocabulary of the pick | its body | its loss | with 151,936 | difference |")
    print("|---|---|---|---|---|---|---|")
    for memory in MEMORY:
        alike: dict[str, list[str]] = {}
        for device in DEVICES:
            own, fixed = pick(device, memory, SIZES), pick(device, memory, (QWEN,))
            cells = [f"{own[1]:,}", f"{own[2] / 1e6:,.0f} M", f"{own[0]:.3f}"] if own else ["none fits", "", ""]
            cells += [f"{fixed[0]:.3f}" if fixed else "none fits", f"{own[0] - fixed[0]:+.3f}" if own and fixed else ""]
            alike.setdefault(" | ".join(cells), []).append(f"`{device}`")
        for answer, devices in sorted(alike.items(), key=lambda found: -len(found[1])):
            named = "all" if len(devices) == len(DEVICES) else ", ".join(devices)
            print(f"| {memory:g} GB | {named} | {answer} |", flush=True)


def by_body() -> None:
    """A row a device, a column a body: the fastest vocabulary, and 151,936 beside it."""
    print(f"| device | {' | '.join(BODIES)} |\n|{'---|' * (len(BODIES) + 1)}")
    for device in DEVICES:
        cells = (
            f"{size:,}: {time:+.0%}, {loss:+.1%}" for size, time, loss in (fastest(device, body) for body in BODIES)
        )
        print(f"| `{device}` | {' | '.join(cells)} |", flush=True)


def main() -> None:
    """Both tables."""
    by_body()
    by_memory()


if __name__ == "__main__":
    main()
