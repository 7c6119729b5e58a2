"""Writes what `plas evidence` says of every law into docs/laws-elsewhere.md and objectives/records.yaml.

    plas evidence --left-out --json > evidence.json      with --published NAME=FILE for every table that does not ship
    python benchmarks/laws_elsewhere.py evidence.json

The law `evidence` is judged on each laboratory by the law of the others.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from nas.files.tables import write

ROOT = Path(__file__).parent.parent
PAGE, RECORDS = ROOT / "docs" / "laws-elsewhere.md", ROOT / "objectives" / "records.yaml"
BEGIN, END = "<!-- figures -->", "<!-- end of figures -->"
HEAD = """# How laws and rules that need none order models that others trained: by question the mean share of pairs in the right order over the
# tables that decide it, of how many of which it says nothing (these count half); written by benchmarks/laws_elsewhere.py.
"""
Content = Mapping[str, Any]


def records(content: Content) -> str:
    """The record by question as a shipped file."""
    by = {
        question: {
            name: {"order": round(each["order"], 4), "tables": each["tables"], "mute": each["mute"]}
            for name, each in found.items()
        }
        for question, found in content["record"].items()
    }
    return HEAD + yaml.safe_dump(by, sort_keys=False, default_flow_style=None, width=120)


def figures(content: Content) -> str:
    """The tables of the page: by question each law and rule on each table that decides it."""
    sections = []
    for question in content["record"]:
        tables = [table for table in content["tables"] if table["questions"].get(question, {}).get("decides")]
        names = list(tables[0]["questions"][question]["by"])
        sections += [f"## {question.capitalize()}", "", *_table(question, tables, names), ""]
    return "\n".join(sections).rstrip()


def _table(question: str, tables: list[Content], names: list[str]) -> list[str]:
    pairs = [f"{table['questions'][question]['pairs']:,}" for table in tables]
    head = [f"| by | {' | '.join(table['name'] for table in tables)} |", "|---" * (len(tables) + 1) + "|"]
    rows = [
        f"| `{name}` | {' | '.join(_cell(table['questions'][question], name) for table in tables)} |" for name in names
    ]
    return [*head, f"| pairs | {' | '.join(pairs)} |", *rows]


def _cell(question: Content, name: str) -> str:
    """`97.3, 0.0008, 0.012`: order %, what its pick loses and error of differences, nats; a star where it was fitted to the table."""
    each = question["by"][name]
    if each is None or each["mute"] == 1.0:
        return "–"
    priced = "" if each["pairs"] == each["of"] else f" of {each['pairs']:,}"
    error = "" if each["error"] is None else f", {each['error']:.3f}"
    star = "\\*" if name in question["fitted_to_it"] else ""
    return f"{100 * each['order']:.1f}{star}{priced}, {each['regret']:.4f}{error}"


def main() -> None:
    """Write page and records."""
    content = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    write(PAGE, f"{before}{BEGIN}\n\n{figures(content)}\n\n{END}{rest.partition(END)[2]}")
    write(RECORDS, records(content))


if __name__ == "__main__":
    main()
