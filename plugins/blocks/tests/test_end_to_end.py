"""A tiny real model: trained here, its blocks scored, the frontier, picks assembled, their real loss."""

import csv
import json
import sysconfig
from pathlib import Path

import pytest
from plas_blocks.__main__ import main as blocks
from typed_command import typed

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytestmark = pytest.mark.slow

TEXT = Path(sysconfig.get_path("stdlib")) / "argparse.py"
HOW = ("--text", str(TEXT), "--tokens", "2048", "--sequence-length", "128")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four layers that have learnt some of a text."""
    torch.manual_seed(0)
    shape = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 4, "num_attention_heads": 4}
    config = transformers.LlamaConfig(**shape, num_key_value_heads=2, vocab_size=257, tie_word_embeddings=True)
    network = transformers.LlamaForCausalLM(config)
    optimiser = torch.optim.AdamW(network.parameters(), lr=3e-3)
    ids = torch.tensor(list(TEXT.read_bytes()[:64_000]))
    generator = torch.Generator().manual_seed(0)
    for _ in range(120):
        starts = torch.randint(0, len(ids) - 129, (8,), generator=generator)
        batch = torch.stack([ids[s : s + 128] for s in starts.tolist()])
        optimiser.zero_grad()
        network(input_ids=batch, labels=batch).loss.backward()
        optimiser.step()
    folder = tmp_path_factory.mktemp("model")
    network.save_pretrained(folder)
    return folder


def test_measured_chosen_assembled(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    told = [str(model), "--measure", *HOW, "--mixtures", "12"]
    assert typed(blocks, monkeypatch, *told, "--out", "library") == 0
    assert "rank correlation" in capsys.readouterr().out
    rows = list(csv.DictReader(open("library/library.csv")))  # noqa: SIM115
    assert len(rows) == 4 * 15
    parent = {float(row["loss"]) for row in rows if row["parent"] == "1"}
    assert len(parent) == 1
    assert sum(float(row["loss"]) > min(parent) for row in rows) > 30

    whole = Path("library/scores.jsonl").read_text()
    Path("library/scores.jsonl").write_text(whole[: len(whole) // 2])
    table = Path("library/library.csv").read_bytes()
    assert typed(blocks, monkeypatch, *told, "--out", "library", "--resume") == 0
    assert Path("library/library.csv").read_bytes() == table
    assert typed(blocks, monkeypatch, *told, "--tokens", "1024", "--out", "library", "--resume") == 2

    asked = ["library", "--objective", "loss,memory_mib", "--real", str(model), "--text", str(TEXT), "--out", "answer"]
    assert typed(blocks, monkeypatch, *asked) == 0
    said = capsys.readouterr().out
    assert "rank correlation" in said
    assert "Assembled picks" in said
    picks = list(csv.DictReader(open("answer/picks.csv")))  # noqa: SIM115
    assert float(picks[0]["real_score"]) == pytest.approx(float(picks[0]["loss"]), abs=0.05)
    assert "rank correlation" in Path("answer/report.html").read_text()
    solutions = json.loads(Path("answer/solutions.json").read_text())
    assert all(len(s["chosen_block_configs"]) == 4 for s in solutions)


def test_a_mixture_of_one_layer_is_the_score_of_that_layer(model: Path) -> None:
    from plas_blocks.session import Reading, scorer

    found = scorer(model, Reading(TEXT, 1024, 128, 4))
    own = found.loss({})
    for variant in found.shapes[1].variants():
        again = found.loss({1: variant})
        assert found.loss({}) == own
        assert (again == own) == (variant == found.shapes[1].parent)
