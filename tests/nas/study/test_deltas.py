"""Deltas of kinds of layers in a study: written out, as a file, beside a law's own; with their source, embedded in the run."""

from pathlib import Path

import numpy as np
import pytest

from nas.answer.sentences import deltas_in_words
from nas.answer.sureness import evidence_beside
from nas.errors import UsageError
from nas.search.assembly import assemble
from nas.study.catalogue import load_law
from nas.study.layers import layered
from objectives.layer_costs.costs import SEARCHED, priced_publicly, public_costs
from objectives.loss_law.law import Law

SOURCE = "12 trainings of ours"


@pytest.fixture
def deltas(tmp_path: Path) -> Path:
    path = tmp_path / "deltas.yaml"
    path.write_text(f"source: {SOURCE}\nconv: 0.03\nlocal: 0.005\n")
    return path


def law_of(flags: dict[str, object], *settings: str, config: Path | None = None) -> Law:
    return assemble(*layered(flags, list(settings), config and str(config))).problem.scenario.law


def test_a_file_of_deltas_is_read_with_its_source_and_embedded(deltas: Path) -> None:
    study = assemble(*layered({"space": "edge2026", "deltas": str(deltas)}, [], None))
    law = study.problem.scenario.law
    assert law.layer_deltas == {"local": 0.005, "conv": 0.03}
    assert deltas_in_words(law).endswith(f"local +0.005, conv +0.03 nats ({SOURCE})")
    deltas.unlink()
    again = assemble(study.resolved(), {})
    assert again.problem.scenario.law == law


def test_a_study_names_it_from_its_own_folder(deltas: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "study.yaml").write_text("deltas: deltas.yaml\n")
    monkeypatch.chdir("/")
    assert law_of({}, config=tmp_path / "study.yaml").layer_deltas["conv"] == 0.03
    with pytest.raises(UsageError, match=r"--set deltas.conv: expected deltas written out in the study, got the file"):
        law_of({}, "deltas.conv=0.1", config=tmp_path / "study.yaml")


def test_of_a_kind_the_studys_own_comes_before_that_of_the_laws_file() -> None:
    told = {"layer_deltas": {"conv": 0.1, "local": 0.2}, "layer_deltas_source": "the file"}
    law = load_law("hw_codesign").mapping() | told
    one_draw = " ".join("1" for _ in law["coefficients"])
    law |= {"draws": [one_draw], "layer_delta_draws": {"conv": "0.11", "local": "0.22"}}
    found = law_of({"law": law}, "deltas={conv: 0.3, source: mine}")
    assert found.layer_deltas == {"conv": 0.3, "local": 0.2}
    assert found.layer_deltas_source == "the file; mine"
    assert found.drawn[0].layer_deltas == {"conv": 0.3, "local": 0.22}
    assert law_of({"law": law}).layer_deltas == told["layer_deltas"]


def test_a_study_that_says_nothing_takes_the_costs_of_public_pairs_with_their_doubt() -> None:
    study = assemble(*layered({"space": "edge2026", "law": "evidence"}, [], None))
    law, costs = study.problem.scenario.law, public_costs()
    assert law.layer_deltas == {kind: costs.costs[kind].nats for kind in SEARCHED}
    assert "42 public pairs of 7 laboratories, widths 512 to 3,072" in deltas_in_words(law)
    assert "window for each halving of 4,096 tokens" in deltas_in_words(law)
    of_draws = {kind: np.array([float(n) for n in row.split()]) for kind, row in law.layer_delta_draws.items()}
    for kind, drawn in of_draws.items():
        assert len(drawn) == len(law.draws)
        assert drawn.mean() == pytest.approx(costs.costs[kind].nats, abs=1e-6)
        assert drawn.std() == pytest.approx(costs.costs[kind].sd, rel=0.15)
    assert assemble(study.resolved(), {}).problem.scenario.law == law


def test_no_costs_where_none_are_wanted_where_a_law_has_its_own_and_where_layers_are_alike() -> None:
    none = assemble(*layered({"space": "edge2026", "deltas": "none"}, [], None))
    assert not none.problem.scenario.law.layer_deltas
    assert not assemble(none.resolved(), {}).problem.scenario.law.layer_deltas
    own = load_law("hw_codesign").mapping() | {"layer_deltas": {"conv": 0.1}}
    assert law_of({"space": "edge2026", "law": own}).layer_deltas == {"conv": 0.1}
    assert law_of({"space": "edge2026"}, "deltas.conv=0.2").layer_deltas == {"conv": 0.2}
    assert law_of({"space": "edge2026", "deltas": "none"}, "deltas.conv=0.2").layer_deltas == {"conv": 0.2}
    assert not law_of({"space": "fine"}).layer_deltas


def test_what_public_pairs_say_is_told_from_what_was_measured_and_its_doubt_reaches_the_law_evidence() -> None:
    problem = assemble(*layered({"space": "edge2026"}, [], None)).problem
    measured = law_of({"space": "edge2026"}, "deltas.conv=0.2")
    assert priced_publicly(problem.scenario.law)
    assert not priced_publicly(measured)
    assert not priced_publicly(load_law("hw_codesign"))
    beside = evidence_beside(problem.scenario.law)
    assert beside.layer_deltas == problem.scenario.law.layer_deltas
    assert beside.layer_delta_draws.keys() == beside.layer_deltas.keys()
    assert not evidence_beside(measured).layer_delta_draws


def test_windows_are_counted_from_the_context_that_a_study_names() -> None:
    longer = law_of({"space": "edge2026"}, "deltas.context=32768")
    assert longer.layer_deltas == law_of({"space": "edge2026"}).layer_deltas
    assert longer.layer_context == 32_768
    assert "each halving of 32,768 tokens" in deltas_in_words(longer)


def test_windows_are_not_counted_twice() -> None:
    own = load_law("hw_codesign").mapping() | {"layer_deltas": {"window": 0.02, "conv": 0.1}}
    assert law_of({"law": own}, "deltas.local=0.01").layer_deltas == {"conv": 0.1, "local": 0.01}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("conf: 0.1\n", r"bad.yaml:1: conf: unknown key; did you mean conv\?"),
        ("conv: 11\n", "bad.yaml:1: conv: expected"),
        ("- conv\n", "bad.yaml:1: expected keys and values, got a list"),
        ("", "bad.yaml:1: expected keys and values, got an empty file; write {conv: 0.03}, or none"),
    ],
)
def test_a_file_of_something_else_is_refused_with_its_line(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text(text)
    with pytest.raises(UsageError, match=said):
        law_of({"deltas": str(tmp_path / "bad.yaml")})


def test_a_file_that_is_not_there_is_said(deltas: Path) -> None:
    with pytest.raises(
        UsageError, match=r"--set deltas: expected kinds of layers .* got '.*delta.yaml'; did you mean .*deltas.yaml"
    ):
        law_of({"deltas": str(deltas.with_name("delta.yaml"))})


def test_draws_of_deltas_are_one_a_draw_of_a_kind_that_has_one() -> None:
    content = load_law("hw_codesign").mapping() | {"layer_deltas": {"conv": 0.1}}
    with pytest.raises(ValueError, match=r"layer_delta_draws.local: expected a kind of layer_deltas"):
        Law.model_validate({**content, "layer_delta_draws": {"local": ""}})
    with pytest.raises(ValueError, match=r"layer_delta_draws.conv: expected 0 numbers, one a draw, got 2"):
        Law.model_validate({**content, "layer_delta_draws": {"conv": "1 2"}})
