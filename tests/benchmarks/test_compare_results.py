"""The record of strategies compared: what it shows of hard studies follows from the CSV beside it."""

from pathlib import Path

import pandas as pd

from benchmarks.compare_results import least

RECORD = Path(__file__).resolve().parents[2] / "studies" / "strategies"


def test_the_record_shows_the_least_gaps_of_the_csv() -> None:
    page = (RECORD / "results.md").read_text(encoding="utf-8")
    shown = page.partition("<!-- hard -->\n\n")[2].partition("\n\n<!-- end of hard -->")[0]
    assert shown == least(pd.read_csv(RECORD / "hard-studies.csv"))


def test_a_tie_names_two_and_says_that_there_are_more() -> None:
    gaps = {f"gap_{count}_percent": [1.0, 1.0, 1.0, 2.0] for count in (200, 501, 1000, 2000)}
    table = pd.DataFrame({"study": "s", "strategy": ["a", "b", "c", "random"], **gaps})
    assert least(table).splitlines()[-1] == "| `s` " + "| 1 % a, b, … " * 4 + "| 2 % |"
