"""Counts of tokenizers: nested sizes against each one trained and used alone, a corpus whose counts are known by hand."""

import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from nas.errors import UsageError
from nas.export.encoding import reader_of
from nas.export.tokenizer import SMALLEST, byte_level, ids_of, tokenizer_for
from nas.tokenize.counting import RARE, Counts, counted, smaller
from nas.tokenize.texts import HELD_OUT, read
from nas.tokenize.training import distinct, in_a_thread, trained_merges

pytest.importorskip("tokenizers", reason="needs the extra tokenize, which is not installed")


def words(count: int, seed: int = 0) -> str:
    """Generated text: words of a small alphabet with Zipf's frequencies, a line each fourteen, some characters of two bytes."""
    draw = random.Random(seed)
    known = ["".join(draw.choices("abcdeé", k=draw.randint(1, 8))) for _ in range(400)]
    chosen = draw.choices(known, [1 / rank for rank in range(1, 401)], k=count)
    return "".join(word + (" " if i % 14 else ".\n") for i, word in enumerate(chosen))


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Thirty documents of generated words."""
    place = tmp_path_factory.mktemp("corpus")
    for i in range(30):
        (place / f"{i}.txt").write_text(words(300, seed=i % 3) + words(200, seed=100 + i))
    return place


def training_part(corpus: Path) -> list[str]:
    return [text for text, _, held in read([str(corpus)]).parts() if not held]


def test_a_smaller_vocabulary_is_the_beginning_of_a_larger_one(corpus: Path) -> None:
    """Training for it alone gives the same merges; twice the same text gives the same."""
    texts = training_part(corpus)
    large = trained_merges(iter(texts), 1000)
    assert len(large) == 1000 - SMALLEST
    for vocabulary in (SMALLEST, 300, 700):
        assert trained_merges(iter(texts), vocabulary) == large[: vocabulary - SMALLEST]
    assert trained_merges(iter(texts), 1000) == large


@pytest.mark.parametrize("vocabulary", [SMALLEST, 258, 300, 450, 700])
def test_counts_of_smaller_vocabularies_are_those_of_their_own_tokenizers(corpus: Path, vocabulary: int) -> None:
    texts = read([str(corpus)])
    merges = trained_merges(iter(training_part(corpus)), 700)
    readers = {
        size: reader_of(byte_level(merges[: size - SMALLEST]).files["tokenizer.json"], "x")
        for size in (700, vocabulary)
    }
    found = counted(texts, {str(size): each for size, each in readers.items()}, lambda _: None)
    undone = smaller(found["700"], merges, vocabulary)
    assert undone.trained.tolist() == found[str(vocabulary)].trained.tolist()
    assert undone.held.tolist() == found[str(vocabulary)].held.tolist()
    assert undone.held.sum() >= found["700"].held.sum()


def test_bytes_are_the_tokens_of_the_smallest(corpus: Path) -> None:
    texts = read([str(corpus)])
    reader = reader_of(byte_level().files["tokenizer.json"], "bytes")
    (found,) = counted(texts, {"bytes": reader}, lambda _: None).values()
    assert (int(found.held.sum()), int(found.trained.sum())) == (texts.held_bytes, texts.trained_bytes)
    assert HELD_OUT <= texts.held_bytes / texts.total_bytes < 2 * HELD_OUT
    assert texts.held_characters < texts.held_bytes
    assert found.trained[ord("a")] == sum(text.count("a") for text in training_part(corpus))


def test_one_long_document_is_not_held_out_whole(tmp_path: Path) -> None:
    (tmp_path / "long.txt").write_text(words(40_000))
    for i in range(30):
        (tmp_path / f"{i}.txt").write_text(words(100, seed=i))
    texts = read([str(tmp_path)])
    assert 0.1 <= texts.held_bytes / texts.total_bytes < 0.2
    assert sum(size for _, size, held in texts.parts() if held) == texts.held_bytes


def test_merges_and_counts_known_by_hand() -> None:
    """`ab` is seen most often, then ` ab`: the third merge joins what the first has made."""
    merges = trained_merges(iter(["ab ab ab ab ab cd cd"]), 260)
    assert merges == [("a", "b"), ("Ġ", "ab"), ("c", "d")]
    ids = ids_of(merges)
    assert ids["Ġab"] == SMALLEST + 1
    counts = np.zeros(260, dtype=np.int64)
    counts[[ids["ab"], ids["Ġab"], ids["Ġ"], ids["cd"]]] = (1, 4, 2, 2)  # ab, four times " ab", twice " " and "cd"
    undone = smaller(Counts(counts, 2 * counts), merges, 258)
    by_piece = {piece: int(undone.trained[i]) for piece, i in ids.items() if i < 258 and undone.trained[i]}
    assert by_piece == {"ab": 5, "Ġ": 6, "c": 2, "d": 2}
    assert undone.held.tolist() == (2 * undone.trained).tolist()
    assert counts.sum() == 9  # its input is as it was


def test_entropy_and_rare_entries_by_hand() -> None:
    """Training counts 30, 10, 0 with ½ each: p = 30.5/41.5, 10.5/41.5, 0.5/41.5; held out 3, 0, 1."""
    found = Counts(np.array([30, 10, 0]), np.array([3, 0, 1]))
    assert found.unigram_nats() == pytest.approx(-(3 * np.log(30.5 / 41.5) + np.log(0.5 / 41.5)) / 4)
    assert found.rare == pytest.approx(2 / 3)
    assert found.per_entry == pytest.approx(40 / 3)
    assert RARE == 20


def test_a_merge_that_makes_what_is_there_is_left_out() -> None:
    assert distinct([["a", "b"], ["ab", "c"], ["b", "c"], ["a", "bc"]]) == [("a", "b"), ("ab", "c"), ("b", "c")]


def test_what_stops_the_texts_stops_the_training() -> None:
    """An error of the texts is the command's, also when the package would hide it in a thread."""

    def broken() -> Iterator[str]:
        yield "one"
        raise UsageError("a.txt: expected text, got nothing; give some")

    with pytest.raises(UsageError, match=r"a\.txt"):
        in_a_thread(broken(), lambda texts: [None for _ in texts] and None)
    with pytest.raises(Exception, match=r"a\.txt"):
        trained_merges(broken(), 300)


def test_saved_tokenizers_are_read_by_export(tmp_path: Path, corpus: Path) -> None:
    merges = trained_merges(iter(training_part(corpus)), 500)
    for name, content in byte_level(merges).files.items():
        (tmp_path / name).write_bytes(content)
    for given in (tmp_path, tmp_path / "tokenizer.json"):
        assert (tokenizer_for(str(given)).size, tokenizer_for(str(given)).eos) == (500, SMALLEST - 1)
    text = words(50, seed=7) + "naïve 東京 <|endoftext|>"
    reader = reader_of((tmp_path / "tokenizer.json").read_bytes(), "saved")
    assert reader.decode(reader.encode(text, add_special_tokens=False).ids, skip_special_tokens=False) == text
