"""The README says of regrets what the study's table says."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_readme_says_what_the_table_says() -> None:
    (line,) = [text for text in (ROOT / "README.md").read_text().splitlines() if "studies/regret" in text]
    _, everything, inside, *_ = re.split(
        r"^## Equal tokens", (ROOT / "studies/regret/results.md").read_text(), flags=re.M
    )
    said = re.findall(r"0\.\d{4}", line)
    rules = "evidence", "hw_codesign", "most active", "most active, then stored", "random"
    assert said[:5] == [_mean(inside, rule) for rule in rules]
    assert said[5:] == [_mean(everything, rule) for rule in ("evidence", "most active")]


def _mean(section: str, rule: str) -> str:
    """The mean regret of a rule in a section, as it is printed."""
    found = re.search(rf"^\| {rule} \| ([\d.]+)", section, flags=re.M)
    assert found is not None
    return found[1]
