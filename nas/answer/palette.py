"""Style of pictures: a colour for each role, type and lines for a printed column, names of metrics as a reader sees them."""

from typing import Any

INK, EVALUATED, FRONTIER, EXACT, BASELINE, PICK = "#222222", "#c9ced6", "#1f5fa8", "#e08a1e", "#b3261e", "#0b7a4b"
BEYOND = "#8a8f99"  # what is outside of the evidence
#: Of devices. Source: Okabe and Ito 2008, but for the last two.
OF_DEVICES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#7a5195", "#555555")
LABELS = {
    "loss": "Predicted loss (nats per token)",
    "perplexity": "Predicted perplexity",
    "prefill_ms": "Prefill (ms)",
    "decode_ms": "Decode (ms)",
    "tpot_ms": "Time per output token (ms)",
    "total_ms": "Prefill + decode (ms)",
    "memory_gb": "Weights (GB)",
    "resident_gb": "Resident memory (GB)",
    "params_total": "Parameters",
    "params_active": "Active parameters",
}
STYLE: Any = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlesize": 9,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "svg.hashsalt": "plas",
    "svg.fonttype": "none",
    "path.simplify": True,
}


def label(name: str) -> str:
    """A metric's name as a reader sees it."""
    return LABELS.get(name, name)
