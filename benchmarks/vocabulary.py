"""How large a vocabulary: the exact pick over vocabularies, and with 151,936 tokens alone, by device and memory.

    python -m benchmarks.vocabulary

Paper space, int4, preset device under the paper's law; requests of 128 tokens in and 128 out of the law's tokenizer, as much text for every
vocabulary; 200 bytes of text a second and the memory of a row are the budgets. Nothing is timed.
"""

from typing import Any

from nas.exact.solution import solve
from nas.problem.picks import PickRule
from nas.search.assembly import assemble
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


def pick(device: str, memory: float, sizes: tuple[int, ...]) -> tuple[float, int] | None:
    """The loss of the pick within the budgets, nats, and its vocabulary; None where nothing fits."""
    keys: dict[str, Any] = {
        "preset": "device",
        "law": "hw_codesign",
        "device": device,
        "precision": "int4",
        "vocabulary": list(sizes),
        "input_tokens": 128,
        "output_tokens": 128,
        "baselines": [],
        "applications": {},
        "budgets": {"ms_per_kilobyte": 5000, "resident_gb": memory},
    }
    problem = assemble(*over(keys, {}, {}, [])).problem
    (found,) = solve(problem, (PickRule(None),)).picks
    if found is None:
        return None
    return float(found.metrics["loss"][0]), int(problem.space.architectures(found.genotypes).vocabulary[0])


def main() -> None:
    """A row a device and memory."""
    print(
        "| device | memory | vocabulary of the pick | its loss | with 151,936 | difference |\n|---|---|---|---|---|---|"
    )
    for device in DEVICES:
        for memory in MEMORY:
            own, fixed = pick(device, memory, SIZES), pick(device, memory, (QWEN,))
            cells = [f"{own[1]:,}", f"{own[0]:.3f}"] if own else ["none fits", ""]
            cells += [f"{fixed[0]:.3f}" if fixed else "none fits", f"{own[0] - fixed[0]:+.3f}" if own and fixed else ""]
            print(f"| `{device}` | {memory:g} GB | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
