"""The trained check of what a vocabulary costs: its rules, and that its page follows from the table that ships."""

from pathlib import Path

import pandas as pd
import pytest

from nas.export.tokenizer import tokenizer_for
from studies.vocabulary import trainings
from studies.vocabulary.trainings import (
    BODIES,
    SEEDS,
    SIZES,
    TABLE,
    comparisons,
    judged,
    page,
    save_tokenizers,
    sequence_length,
    verdict,
)

PAGE = Path(__file__).resolve().parents[2] / "studies" / "vocabulary" / "results.md"


def invented(factors: dict[int, float], noise: float) -> pd.DataFrame:
    """A table of trainings whose losses differ by vocabulary and seed alone."""
    rows = [
        {
            "id": body,
            "vocabulary": size,
            "status": "ok",
            "bits_per_byte": 2 * factors[size] * (1 + noise * (seed - 1.5)),
        }
        for body in BODIES
        for size in SIZES
        for seed in SEEDS
    ]
    return pd.DataFrame(rows)


@pytest.mark.parametrize(
    ("small", "middle", "noise", "said"),
    [
        (1.045, 1.015, 0.001, "agrees"),
        (1.045, 0.985, 0.001, "disagrees"),  # the sign
        (1.300, 1.015, 0.001, "disagrees"),  # the size
        (1.045, 1.015, 0.05, "not decided"),
    ],
)
def test_the_rules(small: float, middle: float, noise: float, said: str) -> None:
    found = comparisons(invented({1024: small, 4096: middle, 16_384: 1.0}, noise))
    assert verdict(found) == said
    assert [round(value, 1) for value in found["measured"][:2]] == [round(100 * x - 100, 1) for x in (small, middle)]


def test_an_interval_that_holds_zero_tells_no_sign() -> None:
    assert judged(0.5, -0.1, 1.1, 1.5, 0.6, 2.4) == ("not told", "within")
    assert judged(3.5, 3.0, 4.0, 1.5, 0.6, 2.4) == ("as predicted", "larger")
    assert judged(-1.0, -1.5, -0.5, 1.5, 0.6, 2.4) == ("opposite", "smaller")


def test_the_page_follows_from_the_table() -> None:
    table, text = pd.read_csv(TABLE), PAGE.read_text(encoding="utf-8")
    assert len(table) >= 24
    assert all(line in text for line in page(table))


def test_tokenizers_have_the_sizes_and_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tokenizers")
    monkeypatch.setattr(trainings, "SIZES", (300, 400))
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "a.py").write_bytes(PAGE.read_bytes())
    save_tokenizers(tmp_path / "text", tmp_path / "tokenizers")
    assert [tokenizer_for(str(tmp_path / "tokenizers" / str(size))).size for size in (300, 400)] == [300, 400]
    lengths = [sequence_length(tmp_path / "tokenizers" / str(size), tmp_path / "text") for size in (300, 400)]
    assert 0 < lengths[1] < lengths[0] < 512
