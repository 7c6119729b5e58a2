"""What was learned, on the page of a folder whose tables a stranger may have written."""

import json
import os
import re
from pathlib import Path

import pytest

from nas.commands.report import report
from nas.commands.requests import ReportRequest

ODD = "\u2028</script><!--&\u202e\x1b[1m"


def of_prior_guided(folder: Path) -> None:
    """Name the strategy that reads its own tables in a folder."""
    config = folder / "config.yaml"
    changed = re.sub(r"^algo: .*$", "algo: prior_guided", config.read_text(), flags=re.MULTILINE)
    config.write_text(changed)


HEAD = "metric,scale,known,value,left_out,by_prior"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("learned.csv", ""),
        ("learned.csv", f"{HEAD}\n"),
    ],
)
def test_what_was_learned_is_shown_as_far_as_tables_tell(name: str, content: str, copied: Path) -> None:
    of_prior_guided(copied)
    summary = json.loads((copied / "summary.json").read_text())
    (copied / "summary.json").write_text(json.dumps(summary | {"lessons": [f"A lesson. {ODD}", 3], "learned": 4}))
    (copied / name).write_text(content)
    report(ReportRequest(copied, None, quiet=True))
    page = (copied / "report.html").read_text()
    assert "<h2>What was learned</h2></summary><p>A lesson. \\u2028&lt;/script&gt;" in page
    assert "<img src=" not in page


def test_a_pipe_in_the_place_of_what_was_learned_is_not_waited_for(copied: Path) -> None:
    of_prior_guided(copied)
    summary = json.loads((copied / "summary.json").read_text())
    (copied / "summary.json").write_text(json.dumps(summary | {"lessons": ["A lesson."]}))
    os.mkfifo(copied / "learned.csv")
    report(ReportRequest(copied, None, quiet=True))
    assert "A lesson." in (copied / "report.html").read_text()
