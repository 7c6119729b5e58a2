"""The table by which `auto` picks, as the page of strategies shows it: compared by a test, written again by

python tests/docs/test_auto_rules.py

The table stands between `<!-- auto -->` and `<!-- end of auto -->`.
"""

import re
from pathlib import Path

from nas.strategies._auto import RULES, Rule

PAGE = Path(__file__).resolve().parents[2] / "docs" / "strategies.md"
BLOCK = re.compile(r"(<!-- auto -->\n).*?(<!-- end of auto -->)", re.DOTALL)


def table() -> str:
    """The rules as Markdown."""
    rows = [f"| {rule.when} | {taken(rule)} | {rule.evidence} |" for rule in RULES]
    return "\n".join(["| condition | `auto` takes | because |", "|---|---|---|", *rows]) + "\n"


def taken(rule: Rule) -> str:
    """The strategy with the parameters that are set."""
    return f"`{rule.algo}`" + (f" {rule.with_parameters}" if rule.with_parameters else "")


def written(text: str) -> str:
    """The page with its block as it is to be."""
    return BLOCK.sub(lambda found: f"{found[1]}{table()}{found[2]}", text)


def test_the_page_holds_the_rules() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert BLOCK.search(text)
    assert written(text) == text


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
