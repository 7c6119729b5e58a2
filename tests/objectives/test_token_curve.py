"""Curves of bytes per token: what is counted is kept, what lies between rises with it, what lies outside is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from nas.files.yaml_source import dump, parse, read
from objectives.plugins import documents
from objectives.token_curve import TokenCurve

TAO = {1024: 2.2517, 4096: 3.0252, 32768: 3.9390, 96256: 4.1622, 1024000: 4.3436}  # 0.22326 / D, four digits
ENTROPIES = {2048: 6.4983, 8192: 7.1745, 96256: 7.6451}
BETWEEN = {32000: 7.5360, 43000: 7.5783}  # of published frequencies at sizes that the curve does not hold


def curve(sizes: dict[int, float]) -> TokenCurve:
    """A curve through bytes per token."""
    rows = [{"vocabulary": size, "bytes_per_token": value} for size, value in sizes.items()]
    return TokenCurve.model_validate({"name": "own", "source": {"texts": ["a.txt"]}, "sizes": rows})


def shipped() -> TokenCurve:
    return TokenCurve.model_validate(read(documents("objectives.token_curves")["slimpajama"])[0])


def test_the_shipped_curve_has_the_published_numbers() -> None:
    found = shipped()
    assert found.bytes_per_token(np.array(list(TAO))) == pytest.approx(list(TAO.values()), abs=1e-9)
    assert found.unigram_nats(np.array(list(ENTROPIES))) == pytest.approx(list(ENTROPIES.values()), abs=1e-9)
    assert [size.unigram_nats for size in found.sizes if not 2048 <= size.vocabulary <= 96256] == [None] * 5
    assert "2407.13623" in found.source.published


def test_code_is_counted_to_the_largest_published_vocabularies_and_gains_less_of_them() -> None:
    code = TokenCurve.model_validate(read(documents("objectives.token_curves")["python"])[0])
    sizes = np.array([32_768, 50_257, 151_936])
    gains = [found[-1] / found[0] for found in (code.bytes_per_token(sizes), shipped().bytes_per_token(sizes))]
    assert 1.0 < gains[0] < gains[1]
    assert len(code.source.texts) == 9


def test_between_counted_sizes_it_is_right() -> None:
    """Entropies at 32,000 and 43,000, which the curve does not hold, are those of the published frequencies."""
    assert shipped().unigram_nats(np.array(list(BETWEEN))) == pytest.approx(list(BETWEEN.values()), abs=0.002)


@given(st.lists(st.floats(1.01, 2.0), min_size=2, max_size=8), st.integers(300, 5000))
def test_it_rises_where_the_counts_do(factors: list[float], first: int) -> None:
    sizes = {first * 2**i: 2.0 + sum(factors[: i + 1]) for i in range(len(factors))}
    between = np.unique(np.linspace(min(sizes), max(sizes), 300).astype(int))
    values = curve(sizes).bytes_per_token(between)
    assert (np.diff(values) > 0).all()
    assert values[0] == pytest.approx(min(sizes.values()))
    assert values[-1] == pytest.approx(max(sizes.values()))


def test_order_and_input_do_not_matter() -> None:
    wanted = np.array([8000, 4000, 8000])
    kept = wanted.copy()
    values = curve({4000: 3.0, 8000: 3.5}).bytes_per_token(wanted)
    assert values.tolist() == pytest.approx([3.5, 3.0, 3.5])
    assert wanted.tolist() == kept.tolist()
    assert curve({4000: 3.0}).bytes_per_token(np.array([4000, 4000])).tolist() == [3.0, 3.0]
    assert curve({4000: 3.0, 8000: 3.5}).bytes_per_token(np.array([], dtype=int)).shape == (0,)


@pytest.mark.parametrize("vocabulary", [128000, 4095, 0])
def test_outside_of_the_counted_sizes_it_is_refused_by_name(vocabulary: int) -> None:
    said = (
        f"vocabulary: expected 4,096 to 65,536 as the curve own counts, got {vocabulary:,}; "
        "count it with the recipe in docs/vocabulary.md"
    )
    with pytest.raises(ValueError, match=r"^vocabulary") as refused:
        curve({4096: 3.0, 65536: 4.0}).bytes_per_token(np.array([8192, vocabulary]))
    assert str(refused.value) == said


def test_entropies_that_were_not_counted_are_refused() -> None:
    with pytest.raises(ValueError, match="expected 2,048 to 96,256 as the curve slimpajama counts, got 128,000"):
        shipped().unigram_nats(np.array([128000]))
    with pytest.raises(ValueError, match="expected an entropy at some size as the curve own counts, got 4,000"):
        curve({4000: 3.0}).unigram_nats(np.array([4000]))


def test_a_curve_is_read_back_as_written() -> None:
    found = shipped()
    content = found.model_dump(mode="json", exclude_defaults=True)
    assert TokenCurve.model_validate(parse(dump(content), "curve.yaml")[0]) == found


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ([(8000, 3.0), (4000, 2.0)], "each vocabulary larger than the one before, got 4,000 after 8,000"),
        ([(8000, 3.0), (8000, 3.0)], "got 8,000 after 8,000"),
        ([(8000, 0.0)], "greater than 0"),
        ([], "at least 1"),
    ],
)
def test_what_is_no_curve_is_refused(sizes: list[tuple[int, float]], said: str) -> None:
    rows = [{"vocabulary": size, "bytes_per_token": value} for size, value in sizes]
    with pytest.raises(ValidationError, match=said):
        TokenCurve.model_validate({"name": "own", "source": {}, "sizes": rows})
