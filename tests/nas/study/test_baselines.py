"""Baselines of a study that a config.json describes: read from the study's folder, embedded in the run, refused by name."""

import json
from pathlib import Path

import pytest

from nas.errors import UsageError
from nas.search.assembly import assemble
from nas.study.layers import layered

LFM2 = {
    "model_type": "lfm2", "hidden_size": 1024, "num_hidden_layers": 16, "num_attention_heads": 16, "num_key_value_heads": 8,
    "vocab_size": 65_536, "conv_L_cache": 3, "intermediate_size": 6656, "block_auto_adjust_ff_dim": True,
    "block_multiple_of": 256, "block_ffn_dim_multiplier": 1.0, "full_attn_idxs": [2, 5, 8, 10, 12, 14],
}  # fmt: skip


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """A study beside the folder of a model with short convolutions."""
    (tmp_path / "ours").mkdir()
    (tmp_path / "ours" / "config.json").write_text(json.dumps(LFM2))
    path = tmp_path / "study.yaml"
    path.write_text("baselines:\n  - smollm2_360m\n  - {config: ours/config.json}\n  - {name: again, config: ours}\n")
    return path


def test_a_mixed_family_stands_beside_published_names_and_in_the_run(
    study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("/")
    found = assemble(*layered({}, [], str(study)))
    assert [known.label for known in found.baselines] == ["SmolLM2-360M", "ours", "again"]
    ours = found.baselines[1].architecture
    assert (ours.n_conv[0], ours.conv_kernel[0], ours.depth[0]) == (10, 3, 16)
    (study.parent / "ours" / "config.json").unlink()
    again = assemble(found.resolved(), {})  # as another machine reads the run's folder
    assert again.baselines[1].mapping() == found.baselines[1].mapping()
    assert again.resolved() == found.resolved()


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("{config: nowhere.json}", r"study.yaml:1: baselines.0: .*nowhere.json: expected a Hugging Face config.json"),
        (
            "{config: other.json}",
            r"study.yaml:1: baselines.0: .*model_type: expected layers that columns hold, got 'deepseek_v4'",
        ),
        ("{config: 3}", r"study.yaml:1: baselines.0: config: expected the path of a config.json, got 3"),
        ("{config: other.json, towers: 1}", r"study.yaml:1: baselines.0: towers: expected true or false, got 1"),
        ("{config: other.json, depth: 3}", r"study.yaml:1: baselines.0: depth: expected config, name and towers alone"),
    ],
)
def test_what_is_no_such_model_is_refused_by_its_place(written: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text(json.dumps({"model_type": "deepseek_v4"}))
    (tmp_path / "study.yaml").write_text(f"baselines: [{written}]\n")
    with pytest.raises(UsageError, match=said):
        assemble(*layered({}, [], str(tmp_path / "study.yaml")))
