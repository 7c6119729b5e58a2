"""Which candidates are measured, and with which of their layers."""

from pathlib import Path

import pytest

from nas.errors import UsageError
from nas.study.baselines import baseline
from plas_board.calibrate.command import resolve
from plas_board.measure.designs import _buildable, designs_to_measure

SHAPE = {"depth": "6", "width": "256", "n_kv_heads": "2", "expert_size": "512"}
WINDOWS = {**SHAPE, "n_local": "4", "window": "64"}
CONVOLUTIONS = {**SHAPE, "n_conv": "4", "conv_kernel": "3"}


@pytest.fixture
def candidates(tmp_path: Path) -> Path:
    """A file with windows, and with convolutions."""
    lines = ["id,depth,width,n_kv_heads,expert_size,n_local,window,n_conv,conv_kernel", "a,6,256,2,512,4,64,0,0"]
    (tmp_path / "windows.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "both.csv").write_text("\n".join([*lines, "b,6,256,2,512,0,0,4,3"]) + "\n")
    return tmp_path


def test_what_is_built_has_full_attention(candidates: Path) -> None:
    assert designs_to_measure(candidates / "windows.csv", "frontier", [], None)["a"].get("n_local", 0) == 0
    with pytest.raises(UsageError, match="b: expected attention and an FFN in every layer, got n_conv 4"):
        designs_to_measure(candidates / "both.csv", "frontier", [], None)


@pytest.mark.parametrize(
    "columns",
    [
        {"qk_norm": "no", "latent_size": 64, "latent_rope": 16, "value_dim": 32},
        {"n_local": 3, "window": 64, "full_head_dim": 128, "full_kv_heads": 2},
    ],
)
def test_latent_attention_and_heads_of_full_attention_alone_are_not_built(columns: dict[str, int | str]) -> None:
    design = {"depth": 4, "width": 768, "n_kv_heads": 4, "expert_size": 768, **columns}
    with pytest.raises(UsageError, match="expected attention and an FFN in every layer"):
        _buildable("x", baseline(design).architecture)


def test_files_are_measured_as_they_are(candidates: Path) -> None:
    found = designs_to_measure(candidates / "both.csv", "frontier", [], None, files=True)
    assert (found["a"]["n_local"], found["a"]["window"]) == (4, 64)
    assert (found["b"]["n_conv"], found["b"]["conv_kernel"]) == (4, 3)


def test_a_calibration_prices_columns_as_they_stand_and_names_with_full_attention() -> None:
    assert resolve(WINDOWS)[1].n_local.tolist() == [4]
    assert resolve(CONVOLUTIONS)[1].n_conv.tolist() == [4]
    assert resolve({"model": "gemma_3_1b"})[1].n_local.tolist() == [0]
