"""The reproduction as a Markdown page."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from plas_paper.reproduce import latency_claims, prediction_claims, search_claims, theory_claims
from plas_paper.reproduce.claim import VERDICTS, Claim

Sections = dict[str, list[Claim]]


def reproduction() -> Sections:
    """Every claim recomputed, by section."""
    return {
        "Search and frontiers": search_claims.claims(),
        "Latency, comparison, transfer, costs": latency_claims.claims(),
        "Theory": theory_claims.claims(),
        "What the theory predicts": prediction_claims.claims(),
    }


def verdicts(sections: Sections) -> dict[str, int]:
    """How many claims have each verdict."""
    counted = Counter(claim.verdict for claims in sections.values() for claim in claims)
    return {verdict: counted[verdict] for verdict in VERDICTS}


def page(sections: Sections) -> str:
    """The page."""
    lines = [
        "# The paper's claims, recomputed",
        "",
        "Sun et al. 2026, *Hardware Co-Design Scaling Laws via Roofline Modelling for On-Device LLMs*. Written by",
        "`plas reproduce`; every number on this page is computed when it runs. Labels are those of the paper's source.",
        "Frontiers are exact, over all 13,120 designs, on Jetson AGX Orin 64 GB, 1,024 tokens in and 16 out, FP16, operator model,",
        "unless a row says otherwise. Losses are predictions of the paper's law.",
        "",
        ", ".join(f"{count} × *{verdict}*" for verdict, count in verdicts(sections).items()) + ".",
        "",
    ]
    for title, claims in sections.items():
        usual, times = Counter(claim.command for claim in claims).most_common(1)[0]
        shared = usual if times > 1 else ""
        lines += [
            f"## {title}",
            "",
            *([f"Command of a row that names none: `{shared}`.", ""] if shared else []),
            *_table(("claim", "label", "verdict", "what we find", "command"), _claim_rows(claims, shared)),
            "",
        ]
    return "\n".join(lines)


def _claim_rows(claims: list[Claim], shared: str) -> Iterator[tuple[str, ...]]:
    """A row a claim, with its command unless the table shares it."""
    for claim in claims:
        command = "" if claim.command == shared else f"`{claim.command}`"
        yield claim.text, f"`{claim.label}`", f"**{claim.verdict}**", claim.found, command


def _table(header: Sequence[str], rows: Any) -> list[str]:
    body = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return ["| " + " | ".join(header) + " |", "|" + "---|" * len(header), *body]
