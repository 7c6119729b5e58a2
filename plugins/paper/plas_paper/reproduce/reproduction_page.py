"""The reproduction as a Markdown page."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from plas_paper.reproduce import latency_claims, prediction_claims, search_claims, theory_claims
from plas_paper.reproduce.claim import VERDICTS, Claim
from plas_paper.reproduce.corrections import Correction, corrections
from plas_paper.reproduce.sensitivity import HEADER, rows


@dataclass(frozen=True)
class Reproduction:
    """Claims by section, rows of the sensitivity table, and the corrections."""

    sections: dict[str, list[Claim]]
    sensitivity: list[tuple[str, ...]]
    corrections: list[Correction]

    @property
    def verdicts(self) -> dict[str, int]:
        """How many claims have each verdict."""
        counted = Counter(claim.verdict for claims in self.sections.values() for claim in claims)
        return {verdict: counted[verdict] for verdict in VERDICTS}


def reproduction() -> Reproduction:
    """Everything recomputed."""
    sections = {
        "Search and frontiers": search_claims.claims(),
        "Latency, comparison, transfer, costs": latency_claims.claims(),
        "Theory": theory_claims.claims(),
        "What the theory predicts": prediction_claims.claims(),
    }
    return Reproduction(sections, rows(), corrections())


def page(found: Reproduction) -> str:
    """The page."""
    lines = [
        "# The paper's claims, recomputed",
        "",
        "Sun et al. 2026, *Hardware Co-Design Scaling Laws via Roofline Modelling for On-Device LLMs*. Written by",
        "`plas reproduce`; every number on this page is computed when it runs. Labels are those of the paper's source.",
        "Frontiers are exact, over all 13,120 designs, on Jetson AGX Orin 64 GB, 1,024 tokens in and 16 out, FP16, operator model,",
        "unless a row says otherwise. Losses are predictions of the paper's law.",
        "",
        ", ".join(f"{count} × *{verdict}*" for verdict, count in found.verdicts.items()) + ".",
        "",
    ]
    for title, claims in found.sections.items():
        usual, times = Counter(claim.command for claim in claims).most_common(1)[0]
        shared = usual if times > 1 else ""
        lines += [
            f"## {title}",
            "",
            *([f"Command of a row that names none: `{shared}`.", ""] if shared else []),
            *_table(("claim", "label", "verdict", "what we find", "command"), _claim_rows(claims, shared)),
            "",
        ]
    lines += ["## What the paper leaves open", "", *_table(HEADER, found.sensitivity), "", "## Every correction", ""]
    said = {claim.found: claim.text for claims in found.sections.values() for claim in claims}
    numbered = [(str(i), c.label, c.paper, _holds(c, said)) for i, c in enumerate(found.corrections, 1)]
    return "\n".join([*lines, *_table(("#", "label", "the paper", "what holds"), numbered), ""])


def _holds(correction: Correction, said: dict[str, str]) -> str:
    """What holds; where a claim's row has said it, which one."""
    claim = said.get(correction.holds)
    return correction.holds if claim is None else f"As found above: {claim}."


def _claim_rows(claims: list[Claim], shared: str) -> Iterator[tuple[str, ...]]:
    """A row a claim, with its command unless the table shares it."""
    for claim in claims:
        command = "" if claim.command == shared else f"`{claim.command}`"
        yield claim.text, f"`{claim.label}`", f"**{claim.verdict}**", claim.found, command


def _table(header: Sequence[str], rows: Any) -> list[str]:
    body = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return ["| " + " | ".join(header) + " |", "|" + "---|" * len(header), *body]
