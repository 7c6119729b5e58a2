"""Writes what `plas evidence` says of every law into studies/evidence/laws-elsewhere.csv and objectives/records.yaml.

    python -m studies.evidence --json > evidence.json      with --published NAME=FILE for every table that does not ship
    python plugins/evidence/benchmarks/laws_elsewhere.py evidence.json

The law `evidence` is judged on each laboratory by the law of the others. Figures are of every table; records of those that ship, so that
they are what `plas evidence` prints.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

import yaml
from plas_evidence.tables import sources

from nas.files.tables import write

ROOT = Path(__file__).resolve().parents[3]
FIGURES, RECORDS = ROOT / "studies" / "evidence" / "laws-elsewhere.csv", ROOT / "objectives" / "records.yaml"
COLUMNS = "question,table,pairs,by,priced_pairs,order_percent,regret_nats,error_nats,fitted_to_it"
HEAD = """# How laws and rules that need none order models that others trained: by question the mean share of pairs in the right order over the
# packaged tables that decide it, of how many of which it says nothing, and the mean share of pairs that it prices (the others count half). The
# law `evidence` is judged on each laboratory by the law of the others. Written by plugins/evidence/benchmarks/laws_elsewhere.py.
"""
Content = Mapping[str, Any]


def records(content: Content) -> str:
    """The record by question as a shipped file."""
    shipped = {source.name for source in sources().values() if source.packaged}
    by = {}
    for question, found in content["record"].items():
        asked = [table["questions"].get(question, {}) for table in content["tables"] if table["name"] in shipped]
        if deciding := [each["by"] for each in asked if each.get("decides")]:
            by[question] = {name: _mean([each[name] for each in deciding]) for name in found}
    return HEAD + yaml.safe_dump(by, sort_keys=False, default_flow_style=None, width=120)


def _mean(judgements: Sequence[Content | None]) -> dict[str, float]:
    orders = [0.5 if each is None else each["order"] for each in judgements]
    priced = [0.0 if each is None else each["pairs"] / each["of"] for each in judgements]
    mute = sum(each is None or each["mute"] == 1.0 for each in judgements)
    return {"order": round(mean(orders), 6), "tables": len(judgements), "mute": mute, "priced": round(mean(priced), 6)}


def figures(content: Content) -> str:
    """By question each law and rule on each table that decides it, where it says anything: a row each."""
    rows = [
        row
        for question in content["record"]
        for name in content["record"][question]
        for table in content["tables"]
        if table["questions"].get(question, {}).get("decides")
        for row in _rows(question, table["name"], table["questions"][question], name)
    ]
    return "\n".join([COLUMNS, *rows]) + "\n"


def _rows(question: str, table: str, asked: Content, name: str) -> list[str]:
    """`size,Gemstones,2180,deeper,2180,57.5,0.5470,,no`: pairs in order, what its pick loses and error of differences, if it predicts any."""
    each = asked["by"][name]
    if each is None or each["mute"] == 1.0:
        return []
    error = "" if each["error"] is None else f"{each['error']:.3f}"
    fitted = "yes" if name in asked["fitted_to_it"] else "no"
    figures = f"{each['pairs']},{100 * each['order']:.1f},{each['regret']:.4f},{error},{fitted}"
    return [f"{question},{table},{asked['pairs']},{name},{figures}"]


def main() -> None:
    """Write figures and records."""
    content = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    write(FIGURES, figures(content))
    write(RECORDS, records(content))


if __name__ == "__main__":
    main()
