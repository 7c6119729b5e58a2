"""Choose a model and the one that drafts tokens ahead of it together: the exact frontier over pairs."""

from nas.terminal.parser import command
from plas_fleet.pairs.request import PairsRequest


def pairs(request: PairsRequest) -> None:
    """Choose a target and a draft model together.

    Acceptance has no default: measure it, of two drafts or more, or state a number.
    """
    from plas_fleet.pairs.command import choose_pairs as work

    work(request)


main = command(
    pairs,
    "pairs --device rtx_4090 --precision q4_k_m --acceptance 25=0.8,60=0.5 --budget tpot_ms=5",
    "pairs --config study.yaml --acceptance qwen3_0.6b=0.7,smollm2_135m=0.5 --drafted 2,4 --out pairs",
    "pairs --preset device --acceptance 0.6 --draft-space same",
)
if __name__ == "__main__":
    main()
