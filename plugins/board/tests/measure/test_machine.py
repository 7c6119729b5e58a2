"""What the system tells of a processor's caches."""

from pathlib import Path

import pytest

from plas_board.measure.machine import last_level_cache


@pytest.mark.parametrize(
    ("levels", "expected"),
    [((("1", "64K"), ("3", "32768K"), ("2", "1024K")), 32768 * 1024), ((("1", "64K"), ("3", "")), 0), ((), 0)],
)
def test_the_last_level_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, levels: tuple[tuple[str, str], ...], expected: int
) -> None:
    """Whatever the order; nothing where the system tells no size, as virtual machines may."""
    for i, (level, size) in enumerate(levels):
        folder = tmp_path / f"index{i}"
        folder.mkdir()
        (folder / "level").write_text(level + "\n")
        (folder / "size").write_text(size + "\n")
    monkeypatch.setattr("plas_board.measure.machine.CACHES", tmp_path)
    assert last_level_cache() == expected
