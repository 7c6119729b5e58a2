"""What assembled mixtures say of a library, and names that a spreadsheet or a page must not obey."""

from pathlib import Path

import numpy as np
import pytest
from plas_blocks.additivity import Additivity, read_additivity, write_additivity
from plas_blocks.checking import Meaning
from plas_blocks.files import read_library, write_library

from nas.errors import UsageError


def test_rank_error_and_bias(tmp_path: Path) -> None:
    found = Additivity(np.array([2, 3, 4]), np.array([1.0, 2.0, 3.0]), np.array([1.5, 1.75, 4.0]))
    assert found.rank_correlation == pytest.approx(1.0)
    assert (found.error, found.bias, found.worst) == (pytest.approx(1.75 / 3), pytest.approx(1.25 / 3), 1.0)
    write_additivity(tmp_path, found)
    again = read_additivity(tmp_path / "library.csv")
    assert again is not None
    assert again.content() == found.content()
    assert "rank correlation 1.000" in again.sentence("loss")


def test_nothing_beside_a_library_is_no_test_and_another_file_is_refused(tmp_path: Path) -> None:
    assert read_additivity(tmp_path) is None
    (tmp_path / "additivity.csv").write_text("a,b\n1,2\n")
    with pytest.raises(UsageError, match="expected the columns changed, predicted and real"):
        read_additivity(tmp_path)


def test_equal_scores_have_no_rank_correlation() -> None:
    assert np.isnan(Additivity(np.ones(3, dtype=int), np.ones(3), np.ones(3)).rank_correlation)


def test_a_name_like_a_formula_stays_a_name(tmp_path: Path) -> None:
    (tmp_path / "given.csv").write_text("layer,block,parent,score,memory_mib\n0,'=1+1,1,0,5\n0,<b>,0,1,4\n")
    library = read_library(tmp_path / "given.csv", Meaning())
    assert set(library.blocks) == {"=1+1", "<b>"}
    write_library(tmp_path, library)
    assert ",'=1+1," in (tmp_path / "library.csv").read_text()
    assert read_library(tmp_path, Meaning()).blocks == library.blocks


def test_a_control_character_in_a_name_is_refused(tmp_path: Path) -> None:
    (tmp_path / "given.csv").write_text("layer,block,parent,score\n0,a\x1b[31m,1,0\n")
    with pytest.raises(UsageError, match="control character"):
        read_library(tmp_path / "given.csv", Meaning())
