"""Logs that others published: most of their rows are used, and those that are not say why."""

from collections.abc import Callable
from pathlib import Path


def test_nine_rows_of_ten_are_used(external_data: Path, rows: Callable[..., list[dict[str, str]]]) -> None:
    """Of llama-bench on one machine with today's families and formats, all but the one family that no columns hold."""
    logs = sorted((external_data / "latency" / "logs").iterdir())
    found = [row for path in logs for row in rows(path)]
    left = [row["left_out"] for row in found if row.get("left_out")]
    assert len(found) >= 48
    assert len(left) <= 0.1 * len(found)
    assert all("which no columns hold" in reason for reason in left)
