"""Where a fitted law comes from travels with a run, into every answer of its folder."""

import json
from pathlib import Path

import pytest

from nas.answer.progress import RunFollower
from nas.commands.requests import RunRequest
from nas.commands.run import execute
from nas.record.folder import open_run
from nas.search.assembly import assemble
from nas.study.catalogue import changed, load_law
from objectives.loss_law.law import Law

LAW = """
name: ours
form: depth_width
coefficients: {kappa_l: 6.0, alpha_l: 1.2, kappa_d: 300.0, beta: 0.9, l_inf: 2.4}
residual_sd: 0.02
tokens: 8.0e+6
provenance:
  rows: 42
  form: depth_width
  tables: [{name: trained/trainings.csv, sha256: 0123456789abcdef, rows: 42}]
  tokens: [2.0e+6, 8.0e+6]
  verdict: "Not settled by these rows: the picks."
"""
LINE = "Law ours: depth_width, 42 rows of trained/trainings.csv (01234567), 2e+06 to 8e+06 tokens"
FLAGS = {"algo": "lhs", "evaluations": 20, "law": "law.yaml"}


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    """A run under a law file of the current folder; what it printed is left in `capsys`."""
    monkeypatch.chdir(tmp_path)
    Path("law.yaml").write_text(LAW, encoding="utf-8")
    return execute(RunRequest(flags=FLAGS, out=Path("RUN"), pictures=False, verbose=True))


def test_a_run_says_where_its_law_comes_from(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = " ".join(capsys.readouterr().out.split())
    assert LINE in said
    assert "file law.yaml (" in said
    assert "Verdict of the law's fit: Not settled by these rows: the picks." in said
    law = json.loads((run / "summary.json").read_text())["law"]
    assert (law["name"], law["form"], law["residual_sd"], law["tokens"]) == ("ours", "depth_width", 0.02, 8e6)
    assert law["origin"]["tables"] == [{"name": "trained/trainings.csv", "sha256": "0123456789abcdef"}]
    assert law["origin"]["file"]["name"] == "law.yaml"
    assert "\n".join(RunFollower(run).look().lines()).count(LINE) == 1
    assert Law.model_validate(open_run(run).resolved["law"]).provenance["file"] == law["origin"]["file"]


def test_a_file_that_has_changed_is_said_when_the_run_goes_on(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    execute(RunRequest(flags={"evaluations": 24}, resume=run, pictures=False))
    assert "has changed" not in capsys.readouterr().err
    Path("law.yaml").write_text(LAW.replace("2.4}", "2.5}"), encoding="utf-8")
    execute(RunRequest(flags={"evaluations": 28}, resume=run, pictures=False))
    said = " ".join(capsys.readouterr().err.split())
    assert "Warning: law: law.yaml has changed since (" in said
    assert "--config RUN --law FILE" in said
    Path("law.yaml").unlink()
    execute(RunRequest(flags={"evaluations": 30}, resume=run, pictures=False))
    assert "has changed" not in capsys.readouterr().err


@pytest.mark.parametrize("name", ["/etc/hostname", "", "../\0", "nowhere.yaml", "."])
def test_a_strangers_file_name_is_looked_at_only_where_it_is_a_plain_file_beside(name: str, tmp_path: Path) -> None:
    law = Law.model_validate(
        {
            "form": "parameters_power",
            "coefficients": {"kappa": 400.0, "alpha": 0.3, "l_inf": 1.7},
            "provenance": {"file": {"name": name, "sha256": "0"}},
        }
    )
    assert changed(law) == ""


def test_a_shipped_law_and_one_written_out_have_no_file(tmp_path: Path) -> None:
    assert "file" not in load_law("hw_codesign").provenance
    path = tmp_path / "law.yaml"
    path.write_text(LAW, encoding="utf-8")
    law = load_law(str(path))
    assert law.provenance["file"]["name"] == "law.yaml"  # no folder of the machine
    again = assemble({"law": law.mapping()}, {}).problem.scenario.law
    assert again.provenance["file"] == law.provenance["file"]
