"""The table by which `auto` picks, as the pages show it: compared by a test, written again by

python tests/docs/test_auto_rules.py

A page has a block between `<!-- auto: all -->` (`few`: the rules of few evaluations) and `<!-- end of auto -->`.
"""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from nas.strategies._auto_rules import RULES, Rule

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = ("strategies", "compare-results", "few-evaluations")
BLOCK = re.compile(r"(<!-- auto: (\w+) -->\n)(.*?)(<!-- end of auto -->)", re.DOTALL)
KINDS: dict[str, Callable[[Rule], bool]] = {
    "all": lambda rule: True,
    "few": lambda rule: "evaluations" in rule.when and rule.algo != "exact",
}


def table(kind: str) -> str:
    """The rules of a kind as Markdown."""
    rows = [f"| {rule.when} | {taken(rule)} | {rule.evidence} |" for rule in RULES if KINDS[kind](rule)]
    return "\n".join(["| the first that holds | `auto` takes | since |", "|---|---|---|", *rows]) + "\n"


def taken(rule: Rule) -> str:
    """The strategy with the parameters that are set."""
    return f"`{rule.algo}`" + (f", {rule.with_parameters}" if rule.with_parameters else "")


def written(text: str) -> str:
    """A page with its blocks as they are to be."""
    return BLOCK.sub(lambda found: f"{found[1]}{table(found[2])}{found[4]}", text)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_holds_the_rules(name: str) -> None:
    text = (DOCS / f"{name}.md").read_text(encoding="utf-8")
    assert BLOCK.search(text)
    assert written(text) == text


def main() -> None:
    """Write every page again."""
    for name in PAGES:
        path = DOCS / f"{name}.md"
        path.write_text(written(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
