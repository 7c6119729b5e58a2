"""`python -m studies.scores`: a table becomes curves and their record on laboratories left out."""

from pathlib import Path

import pytest

from nas.errors import UsageError
from nas.files import yaml_source
from studies.scores.__main__ import main
from studies.scores.curves import Scores

ROWS = "model,bits_per_byte,m:m\na,1.0,26\nb,0.95,28\nc,0.9,35\nd,0.85,44\ne,0.8,52\nf,0.75,61\nchance,,25\ntop,,100\n"


def test_a_table_of_ones_own_becomes_a_file_that_a_study_takes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "t.csv").write_text(ROWS)
    monkeypatch.setattr("sys.argv", ["scores", str(tmp_path / "t.csv"), "--out", str(tmp_path / "s.yaml")])
    main()
    shown = capsys.readouterr().out
    assert "Of further models of yours, the only laboratory" in shown
    assert "No laboratory can be left out" in shown
    scores = Scores.model_validate(yaml_source.read(tmp_path / "s.yaml")[0])
    assert scores.families["m"].top == 100.0
    assert scores.fitted_on == (0.75, 1.0)
    assert not scores.new_laboratory
    with pytest.raises(UsageError, match="exist"):
        main()


@pytest.mark.slow
def test_each_laboratory_of_a_table_is_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    bits = [1.2 - 0.05 * i for i in range(12)]
    rows = [f"m{i},{'ab'[i % 2]},{b:.3f},{0.25 + 0.6 / (1 + 2.718 ** (8 * (b - 0.9))):.4f}" for i, b in enumerate(bits)]
    (tmp_path / "t.csv").write_text("\n".join(["model,laboratory,bits_per_byte,m:m", "chance,,,0.25", *rows]))
    monkeypatch.setattr("sys.argv", ["scores", str(tmp_path / "t.csv"), "--out", str(tmp_path / "s.yaml")])
    main()
    record = Scores.model_validate(yaml_source.read(tmp_path / "s.yaml")[0]).left_out["m"]
    assert record.rmse < 0.5 * record.mean_rmse
    assert "no better than a rule" not in capsys.readouterr().out
